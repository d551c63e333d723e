package broker

import (
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// handover is what the owner of an escalated case does with it: end it, or hand it back to be decided again. It never
// releases directly.
func (r Rules) handover(s Snapshot, sub submission, a events.Answer, m Moment) Change {
	next := step(s.State, m)
	switch a.Handover {
	case events.TakeOver, events.EndIt:
		next = accept(next, a.Responder, a.Submission, nil, m)
		next.Kind, next.By, next.Note = events.Stopped, who(a.Responder), string(a.Handover)
		return become(next)
	case events.HandBack:
	default:
		return sub.refused(s, events.Incomplete, "handover", m)
	}
	got, reason, field := values(next.Pause.Fields, a.Values)
	if reason != "" && (reason != events.Incomplete || len(a.Values) > 0) {
		return sub.refused(s, reason, field, m)
	}
	next = accept(next, a.Responder, a.Submission, a.Values, m)
	next = merge(next, got, a.Submission)
	next.Asks = events.Asks{}
	return become(r.settle(next, policy.Input{}, events.FromAnswer, m))
}
