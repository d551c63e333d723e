// Package cases feeds recorded tool calls through a running broker, as an agent, a channel and an executor would, and holds
// what becomes of them against the decisions that are acceptable for each.
//
// Nothing here calls the policy: a case is proposed as an event, decided by the broker, asked on a channel, answered through
// the channel's desk, and run through the gate by a tool that counts. What was decided is read from the audit, which is
// verified on the way.
package cases
