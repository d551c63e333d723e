package gate

import (
	"context"

	"github.com/clarify-broker/clarify/events"
)

// Cancel calls the ticket's candidate off and returns when the task's log shows it. It is sent again at growing intervals
// until then. A [*Refused] says that it came too late: busy when an executor has the claim, not_pending when the step had
// ended otherwise, stale_version when a newer candidate replaced it. A [*Waiting] says that the context ended first; the
// cancel may be carried out all the same.
func (g *Gate) Cancel(ctx context.Context, t Ticket, reason string) error {
	req := events.CancelRequest{Agent: g.agent, Task: t.Task, Version: t.Version, Reason: reason}
	if err := req.Validate(); err != nil {
		return err
	}
	one := g.ears.join(t.Task)
	defer g.ears.leave(t.Task, one)
	id := events.NewID()
	for again := newResend(); ; again.listen(ctx, one) {
		reply, err := g.state(ctx, t.Task, t.Candidate, 0)
		v := reply.View
		switch {
		case ctx.Err() != nil:
			return t.unconfirmed(ctx, err)
		case hopeless(err):
			return t.impossible("cancel", err)
		case err != nil || v == nil:
		case v.Candidate == t.Candidate && v.Kind == events.Cancelled:
			return nil
		case tooLate(*v, t) != "":
			return &Refused{Case: caseOf(*v), Of: "cancel", Why: tooLate(*v, t), Current: v.Version}
		}
		if !again.isDue() {
			continue
		}
		if err := g.send(ctx, g.bus.Space().Cancel(g.agent, t.Task), t.Task, g.envelope(id, req)); hopeless(err) {
			return t.impossible("cancel", err)
		}
		again.wasSent()
	}
}

// tooLate says why the ticket's candidate can no longer be called off, and nothing while it can.
func tooLate(v events.View, t Ticket) events.Reason {
	if v.Candidate != t.Candidate {
		if v.Version < t.Version {
			return "" // the log has not come to the candidate yet
		}
		return events.StaleVersion
	}
	switch v.Kind {
	case events.Claimed, events.InDoubt:
		return events.Busy
	case events.Stopped, events.Conflicted, events.Denied, events.Cancelled, events.TimedOut, events.Undelivered, events.Superseded,
		events.Done, events.Failed, events.Reconciled:
		return events.NotPending
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Reached, events.Rerouted, events.Reminded, events.Overdue,
		events.Answered, events.Released:
	}
	return ""
}
