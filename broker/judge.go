package broker

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// submission is what an answer and an approval are judged by alike.
type submission struct {
	attempt
	question  events.QuestionID
	responder events.Responder
	kinds     []events.PauseKind // of pauses it may answer
}

// refused also says whose submission it was, and which field it is about, if one.
func (a submission) refused(s Snapshot, reason events.Reason, field string, m Moment) Change {
	c := a.attempt.refused(s, reason, m)
	c.Refusal.Responder, c.Refusal.Field = &a.responder, field
	return c
}

// judge says why a submission cannot be considered at all, in the order that tells a person the truth: is there such a
// question, is it of this kind, may they answer it, is it still open. Nil means it can.
func judge(s Snapshot, a submission, m Moment) *events.Refusal {
	refuse := func(reason events.Reason) *events.Refusal { return a.refused(s, reason, "", m).Refusal }
	p := s.State.Pause
	if !s.Known() || a.version > s.State.Version {
		return refuse(events.UnknownTask)
	}
	if p != nil && a.version == p.Version {
		switch {
		case a.question != p.Question:
			return refuse(events.UnknownTask)
		case !slices.Contains(a.kinds, p.Kind):
			return refuse(events.WrongKind)
		case !allowed(p.Responders, a.responder) || !asked(p, a.responder.Channel):
			return refuse(events.NotAllowed)
		}
	}
	if acc, ok := acceptedAt(s.State, a.version); ok {
		dup := refuse(events.Duplicate)
		dup.AnsweredBy, dup.AnsweredAt = &acc.Responder, acc.At
		return dup
	}
	switch {
	case p == nil || a.version != p.Version:
		return refuse(events.StaleVersion)
	case p.Status != events.PauseWaiting:
		return refuse(events.NotPending)
	}
	return nil
}

// asked reports that the question's route leads to the channel: no other may answer it.
func asked(p *events.Pause, c events.Channel) bool {
	return slices.ContainsFunc(p.Plan.Route, func(step events.RouteStep) bool {
		return slices.ContainsFunc(step.Targets, func(t events.RouteTarget) bool { return t.Channel == c })
	})
}

func acceptedAt(s events.State, v events.Version) (events.Accepted, bool) {
	for _, a := range s.Accepted {
		if a.Version == v {
			return a, true
		}
	}
	return events.Accepted{}, false
}

// movedBy reports that a submission of a channel moved the task.
func movedBy(s Snapshot, c events.Channel, id events.SubmissionID) bool {
	return s.State.Cause == string(id) || slices.Contains(s.State.Settled, id) ||
		slices.ContainsFunc(s.State.Accepted, func(a events.Accepted) bool { return a.Submission == id && a.Responder.Channel == c })
}

// judged reports that the task already moved for this very submission: the same id on the same question from the same person
// and, where values are given, with the same values. An id that is used again for something else is another submission.
func judged(s Snapshot, a submission, given []events.Given) bool {
	for _, acc := range s.State.Accepted {
		if acc.Submission == events.SubmissionID(a.id) {
			return acc.Version == a.version && acc.Question == a.question && slices.Contains(a.kinds, acc.Kind) &&
				acc.Responder.Channel == a.responder.Channel && acc.Responder.Subject == a.responder.Subject &&
				slices.EqualFunc(acc.Values, given, func(x, y events.Given) bool {
					return x.Field == y.Field && x.Option == y.Option && x.Value.Equal(y.Value)
				})
		}
	}
	p := s.State.Pause
	moved := s.State.Cause == a.id && p != nil && p.Version == a.version && p.Question == a.question
	return moved || a.version < s.State.Candidate.Version && slices.Contains(s.State.Settled, events.SubmissionID(a.id))
}
