package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// wait is one thing that may happen to a pause.
func (w *world) wait(l *life) {
	s := w.next(l, "input")
	p := s.Pause
	if ask, ok := s.Decision.Decision.(events.Ask); ok && ask.Lookup != "" {
		p.Status, p.Ended = events.PauseSuperseded, w.now
		w.settle(l, s, events.FromProceed)
		return
	}
	switch w.IntN(7) {
	case 0:
		w.receipt(l, s, events.ReachAccepted)
	case 1:
		w.receipt(l, s, events.NotDelivered)
	case 2:
		w.late(l, s)
	case 3:
		if p.Reached.IsZero() || !p.Reminded.IsZero() {
			return
		}
		s.Kind, p.Reminded = events.Reminded, w.now
		w.put(l, s)
	case 4:
		s.Kind, s.By, s.Note = events.Cancelled, "Ana Pérez", "not needed, sorry"
		p.Status, p.Ended = events.PauseCancelled, w.now
		w.put(l, s)
	default:
		w.answer(l, s)
	}
}

func (w *world) receipt(l *life, s events.State, state events.Reach) {
	p := s.Pause
	last := &p.Deliveries[len(p.Deliveries)-1]
	if last.Receipt.State == events.NotDelivered {
		return
	}
	last.Receipt = events.Receipt{State: state, ProviderID: "1700.42", At: w.now}
	switch {
	case state.Reached():
		s.Kind = events.Reached
		if p.Reached.IsZero() {
			p.Reached, p.Deadline = w.now, w.now.Add(time.Duration(p.Plan.Deadline))
		}
	case p.Next < len(p.Plan.Route):
		s.Kind, p.Reached, p.Deadline = events.Rerouted, time.Time{}, time.Time{}
		p.Deliveries = append(p.Deliveries, events.Delivery{ID: string(p.Question) + "-1", Target: p.Plan.Route[p.Next].Targets[0]})
		p.Next++
	default:
		s.Kind, p.Status, p.Ended = events.Undelivered, events.PauseUndelivered, w.now
		p.Reached, p.Deadline = time.Time{}, time.Time{}
	}
	w.put(l, s)
}

// late lets the time of a pause pass.
func (w *world) late(l *life, s events.State) {
	p := s.Pause
	if !p.Overdue.IsZero() {
		return
	}
	if p.Deadline.IsZero() {
		w.now = p.Cap.Add(time.Second)
		s.Kind, p.Status, p.Ended = events.Undelivered, events.PauseUndelivered, w.now
		w.put(l, s)
		return
	}
	if w.now.Before(p.Deadline) {
		w.now = p.Deadline
	}
	s.At = w.now
	if p.Plan.AfterDeadline == events.DeadlineHold {
		s.Kind, p.Overdue = events.Overdue, w.now
		w.put(l, s)
		return
	}
	p.Status, p.Ended = events.PauseTimedOut, w.now
	switch after := p.Plan.AfterDeadline; {
	case after == events.DeadlineDefault && p.Kind == events.Clarification:
		w.release(l, s, events.FromAfterDeadline, w.assume(s, "after_deadline"))
	case after == events.DeadlineEscalate && p.Kind == events.Clarification:
		w.open(l, s, events.Escalate{Why: w.basis(s), To: "luis", Plan: w.plan()}, events.Escalation, events.Escalated)
	default:
		s.Kind = events.TimedOut
		w.put(l, s)
	}
}

func (w *world) answer(l *life, s events.State) {
	p := s.Pause
	a := events.Accepted{
		Version: p.Version, Question: p.Question, Kind: p.Kind, Submission: events.SubmissionID(l.id("sub")), At: w.now,
		Responder: events.Responder{Person: "luis", Channel: "slack", Subject: "luis@example.com", Name: "Luis", Assurance: events.Platform},
	}
	s.Cause = string(a.Submission)
	p.Status, p.Ended = events.PauseAnswered, w.now
	if p.Kind == events.Clarification {
		a.Values = []events.Given{{Field: "amount", Value: events.SecretOf(w.IntN(1000))}}
		s.Candidate.Arguments = maps.Clone(s.Candidate.Arguments)
		s.Candidate.Arguments["amount"] = a.Values[0].Value
	}
	s.Accepted = append(slices.Clip(s.Accepted), a)
	from := events.FromAnswer
	switch {
	case p.Kind == events.Approval && w.chance(30):
		s.Kind, s.By = events.Denied, "luis"
		w.put(l, s)
		return
	case p.Kind == events.Escalation && w.chance(50):
		s.Kind, s.By = events.Stopped, "luis"
		w.put(l, s)
		return
	case w.chance(10): // frozen
		s.Kind = events.Answered
		w.put(l, s)
		return
	case p.Kind == events.Approval:
		from = events.FromApproval
	}
	w.settle(l, s, from)
}

func (w *world) claim(l *life) {
	s := w.next(l, "nonce")
	switch w.IntN(6) {
	case 0:
		s.Kind, s.By = events.Cancelled, string(l.agent)
	case 1:
		why := w.basis(s)
		s.Kind, s.Decision = events.Conflicted, events.Decided{Decision: events.Reconcile{Why: why}}
	default:
		s.Kind = events.Claimed
		s.Claim = &events.Claim{Nonce: l.id("nonce"), Worker: "w1", Fence: l.last, Until: w.now.Add(time.Minute), Count: 1}
	}
	w.put(l, s)
}

func (w *world) effect(l *life) {
	s := w.next(l, "outcome")
	claim := *s.Claim
	s.Claim = &claim
	outcome := events.Effect{Status: events.EffectDone, Action: s.Release.Action, Fence: claim.Fence, Result: events.SecretOf("the result"), At: w.now}
	doubt := l.state.Kind == events.InDoubt
	switch choice := w.IntN(6); {
	case choice == 0 && !doubt:
		claim.Until = w.now.Add(time.Minute)
	case choice == 1 && !doubt:
		s.Kind = events.InDoubt
	case choice == 2 && doubt && s.Decision.Basis().Traits.Idempotent:
		s.Kind = events.Claimed
		claim.Nonce, claim.Fence, claim.Count, claim.Until = l.id("nonce"), l.last, claim.Count+1, w.now.Add(time.Minute)
	case choice == 3 && doubt:
		outcome.By = "ops"
		s.Kind, s.Effect, s.By = events.Reconciled, &outcome, "ops"
	case choice == 4:
		outcome.Status = events.EffectFailed
		s.Kind, s.Effect = events.Failed, &outcome
	default:
		s.Kind, s.Effect = events.Done, &outcome
	}
	w.put(l, s)
}

// refusal refuses something, truthfully.
func (w *world) refusal(l *life) {
	s := l.state
	luis := events.Responder{Person: "luis", Channel: "slack", Subject: "luis@example.com", Name: "Luis", Assurance: events.Platform}
	if l.last == 0 {
		w.refuse(l, events.Refusal{Of: "answer", Version: 3, Reason: events.UnknownTask, Responder: &luis})
		return
	}
	if len(s.Accepted) > 0 && w.chance(40) {
		a := s.Accepted[w.IntN(len(s.Accepted))]
		w.refuse(l, events.Refusal{
			Of: "answer", Version: a.Version, Reason: events.Duplicate, Responder: &luis,
			AnsweredBy: &a.Responder, AnsweredAt: a.At, Detail: "somebody was first",
		})
		return
	}
	if waiting(s) {
		mallory := events.Responder{Channel: "slack", Subject: "mallory@example.com", Assurance: events.Platform}
		all := []events.Refusal{
			{Reason: events.NotAllowed, Responder: &mallory},
			{Reason: events.Incomplete, Field: "amount"},
			{Reason: events.InvalidValue, Field: "amount"},
			{Reason: events.WrongKind},
		}
		r := all[w.IntN(len(all))]
		r.Of, r.Version = "answer", s.Version
		w.refuse(l, r)
		return
	}
	if s.Kind == events.Claimed || s.Kind == events.InDoubt {
		w.refuse(l, events.Refusal{Of: "candidate", Version: s.Version + 1, Reason: events.Busy})
		return
	}
	w.refuse(l, events.Refusal{Of: "candidate", Version: s.Version, Reason: events.StaleVersion})
}
