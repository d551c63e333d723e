// Package webhook asks questions by HTTP: each is POSTed as a structured CloudEvent, signed as Standard Webhooks 1.0, to one
// configured URL, and answers come back as signed CloudEvents.
//
// The receiver's part: check webhook-signature over "<webhook-id>.<webhook-timestamp>.<body>", treat a webhook-id it has
// seen as the same message, answer 2xx only when it has taken the question over, and keep the highest version it has seen
// of a task, since a closing may overtake an asking.
package webhook
