package broker

import (
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// lookupWait is how long an agent has to look a field up and propose again before a person is asked, unless the policy's
// cap is shorter.
const lookupWait = time.Minute

// Due is stage five: a wake-up. It does the one thing that is really due, what ends a pause before what only tells somebody, or
// nothing.
func (r Rules) Due(s Snapshot, m Moment) Change {
	due := func(t time.Time) bool { return !t.IsZero() && !m.Now.Before(t) }
	switch {
	case s.State.Kind == events.Claimed && due(s.State.Claim.Until):
		next := step(s.State, m)
		next.Kind = events.InDoubt
		return become(next)
	case !waiting(s.State):
		return Change{}
	case lookup(s.State):
		if due(lookupEnd(s.State.Pause)) && !r.Frozen {
			return r.giveUpLookup(s, m)
		}
		return Change{}
	}
	p := s.State.Pause
	switch {
	case due(p.Cap) && p.Overdue.IsZero():
		return r.pastCap(s, m)
	case due(p.Deadline) && p.Overdue.IsZero():
		return r.pastDeadline(s, m)
	case due(nextStep(p)):
		next := step(s.State, m)
		next.Kind = events.Rerouted
		return become(r.walk(next, m))
	case due(reminder(p)):
		next := step(s.State, m)
		next.Kind, next.Pause.Reminded = events.Reminded, m.Now
		return become(next)
	}
	return Change{}
}

func lookupEnd(p *events.Pause) time.Time {
	end := p.Opened.Add(lookupWait)
	if !p.Cap.IsZero() && p.Cap.Before(end) {
		return p.Cap
	}
	return end
}

// giveUpLookup decides again when the agent has not come back with what it was to look up: now a person is asked.
func (r Rules) giveUpLookup(s Snapshot, m Moment) Change {
	next := step(s.State, m)
	next.Pause, next.Closes = ended(next.Pause, events.PauseSuperseded, m), true
	return become(r.settle(next, policy.Input{}, events.FromProceed, m))
}

// pastCap ends a pause at its hard limit: undelivered when nobody is reached now, else as past its deadline.
func (r Rules) pastCap(s Snapshot, m Moment) Change {
	if !reached(s.State.Pause.Deliveries) {
		return become(end(step(s.State, m), events.Undelivered, events.PauseUndelivered, m))
	}
	if p := s.State.Pause; p.Deadline.IsZero() || m.Now.Before(p.Deadline) {
		if p.Plan.AfterDeadline == events.DeadlineHold {
			return hold(s, m)
		}
		return become(end(step(s.State, m), events.TimedOut, events.PauseTimedOut, m))
	}
	return r.pastDeadline(s, m)
}

func hold(s Snapshot, m Moment) Change {
	next := step(s.State, m)
	next.Kind, next.Pause.Overdue = events.Overdue, m.Now
	return become(next)
}

// pastDeadline does what the policy says silence means. It is never an answer: nothing is accepted and nobody is named.
func (r Rules) pastDeadline(s Snapshot, m Moment) Change {
	p := s.State.Pause
	timedOut := func() Change {
		return become(end(step(s.State, m), events.TimedOut, events.PauseTimedOut, m))
	}
	switch p.Plan.AfterDeadline {
	case events.DeadlineHold:
		return hold(s, m)
	case events.DeadlineDefault, events.DeadlineEscalate:
		if !decidesAgain(p) {
			return timedOut()
		}
		if r.Frozen {
			return Change{} // a default would release: it waits until releases are thawed
		}
		return r.withoutAnswer(s, m, timedOut)
	case events.DeadlineStop:
	}
	return timedOut()
}

// decidesAgain reports that silence has the candidate decided again, and not ended or held.
func decidesAgain(p *events.Pause) bool {
	return p.Kind == events.Clarification &&
		(p.Plan.AfterDeadline == events.DeadlineDefault || p.Plan.AfterDeadline == events.DeadlineEscalate)
}

// withoutAnswer decides again about what nobody answered: with the policy's documented default, or for its owner. Asking once
// more, or anything that route does not say, ends the pause as timed out.
func (r Rules) withoutAnswer(s Snapshot, m Moment, timedOut func() Change) Change {
	next := step(s.State, m)
	in, wanted := policy.Input{}, []events.Kind{events.Escalated}
	names := make([]string, 0, len(next.Pause.Fields))
	for _, f := range next.Pause.Fields {
		names = append(names, f.Name)
	}
	if next.Pause.Plan.AfterDeadline == events.DeadlineDefault {
		in.Overdue, wanted = names, []events.Kind{events.Released, events.ApprovalAsked}
	} else {
		in.Unanswered = names
	}
	next.Pause, next.Closes = ended(next.Pause, events.PauseTimedOut, m), true
	next = r.settle(next, in, events.FromAfterDeadline, m)
	switch {
	case next.Kind == events.Released && !defaulted(next.Decision.Basis(), names):
		return timedOut() // the policy no longer finds it missing: what nobody said is no reason to run
	case slices.Contains(append(wanted, events.Conflicted, events.Stopped), next.Kind):
		return become(next)
	}
	return timedOut()
}

// defaulted reports that every field has a documented default that the deadline let be used.
func defaulted(why events.Basis, fields []string) bool {
	for _, f := range fields {
		if !slices.ContainsFunc(why.Assumptions, func(a events.Assumption) bool { return a.Field == f && a.Source == "after_deadline" }) {
			return false
		}
	}
	return true
}

func nextStep(p *events.Pause) time.Time {
	if p.Next >= len(p.Plan.Route) || p.Plan.Route[p.Next].After == 0 {
		return time.Time{}
	}
	from := p.Stepped // a channel that says nothing at all is not waited for any longer
	if p.Reached.After(from) {
		from = p.Reached
	}
	return from.Add(time.Duration(p.Plan.Route[p.Next].After))
}

func reminder(p *events.Pause) time.Time {
	if p.Plan.Remind == 0 || p.Reached.IsZero() || !p.Reminded.IsZero() || !p.Overdue.IsZero() {
		return time.Time{}
	}
	return p.Reached.Add(time.Duration(p.Plan.Remind))
}

// Wake is when something is due next; zero when nothing ever is without a new input.
func (r Rules) Wake(s events.State) time.Time {
	switch {
	case s.Kind == events.Claimed:
		return s.Claim.Until
	case Final(s.Kind):
		return s.At.Add(r.keep(s))
	case !waiting(s):
		return time.Time{}
	case lookup(s):
		if r.Frozen {
			return time.Time{} // seen to when releases are thawed, as in Due
		}
		return lookupEnd(s.Pause)
	}
	p := s.Pause
	times := []time.Time{nextStep(p), reminder(p)}
	if p.Overdue.IsZero() && !(r.Frozen && decidesAgain(p)) {
		times = append(times, p.Cap, p.Deadline)
	}
	return earliest(times...)
}

// Bound is a time before which nothing of a new pause is due, whenever somebody is reached. A timer armed for it when the
// pause is made need not be armed again for every receipt.
func (r Rules) Bound(s events.State) time.Time {
	if !waiting(s) || lookup(s) {
		return r.Wake(s)
	}
	p := s.Pause
	times := []time.Time{p.Cap}
	intervals := []events.Duration{p.Plan.Deadline, p.Plan.Remind}
	if p.Next < len(p.Plan.Route) {
		intervals = append(intervals, p.Plan.Route[p.Next].After)
	}
	for _, d := range intervals {
		if d > 0 {
			times = append(times, s.At.Add(time.Duration(d)))
		}
	}
	return earliest(times...)
}

func (r Rules) keep(s events.State) time.Duration {
	if keep := time.Duration(s.Decision.Basis().Traits.Retention); keep > 0 {
		return keep
	}
	return r.Retention
}

func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
