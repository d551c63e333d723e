package broker

import (
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Approve is stage four for an approval. It authorises exactly the digest that was shown; what it releases is decided again.
func (r Rules) Approve(s Snapshot, a events.ApprovalAnswer, m Moment) Change {
	a.Responder = r.People.identify(a.Responder)
	sub := submission{
		attempt{Key{a.Agent, a.Task}, "approval", string(a.Submission), a.Version},
		a.Question, a.Responder,
		[]events.PauseKind{events.Approval},
	}
	if judged(s, sub, nil) {
		return Change{}
	}
	if refusal := judge(s, sub, m); refusal != nil {
		return Change{Refusal: refusal}
	}
	if a.Responder.Assurance != events.Login && a.Responder.Assurance != events.Platform && a.Responder.Assurance != events.Sender {
		return sub.refused(s, events.NotAllowed, "assurance", m) // whoever holds a link may answer a question, not authorise
	}
	if a.Action != s.State.Pause.Action {
		return sub.refused(s, events.InvalidValue, "action", m)
	}
	next := accept(step(s.State, m), a.Responder, a.Submission, nil, m)
	if a.Verdict != events.Granted {
		next.Kind, next.By, next.Note = events.Denied, who(a.Responder), a.Note
		return become(next)
	}
	return become(r.settle(next, policy.Input{Granted: s.State.Pause.Action}, events.FromApproval, m))
}
