package channels

import (
	"net/http"

	"github.com/clarify-broker/clarify/events"
)

// Status is the HTTP status that tells a caller what became of a submission: 200 saved, 409 somebody or something was
// first, 422 not an answer to this question, 403 not allowed, 404 not known.
func Status(v events.Verdict) int {
	if v.Accepted && v.Refusal == nil {
		return http.StatusOK
	}
	if v.Refusal == nil {
		return http.StatusUnprocessableEntity
	}
	switch v.Refusal.Reason {
	case events.Duplicate, events.StaleVersion, events.NotPending, events.Busy, events.Changed, events.Taken, events.NotReleased:
		return http.StatusConflict
	case events.NotAllowed:
		return http.StatusForbidden
	case events.UnknownTask:
		return http.StatusNotFound
	case events.TooLarge:
		return http.StatusRequestEntityTooLarge
	case events.Frozen:
		return http.StatusServiceUnavailable
	case events.WrongKind, events.Incomplete, events.NotAnOption, events.InvalidValue, events.Malformed:
		return http.StatusUnprocessableEntity
	}
	return http.StatusUnprocessableEntity
}
