package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Snapshot is a task as it was read: its state and the sequence of the message that holds it. The zero Snapshot is a task
// nobody has proposed.
type Snapshot struct {
	State events.State
	Seq   uint64
}

// Known reports that somebody has proposed the task.
func (s Snapshot) Known() bool { return s.Seq > 0 }

// Moment is what a transition may not find out by itself.
type Moment struct {
	Now      time.Time
	Question events.QuestionID // for the pause the transition may open
	Cause    string            // id of the event that causes it
}

// Change is what a transition wants done: Next is appended, or Refusal is recorded and nothing changes. The zero Change is
// "nothing to do".
type Change struct {
	Next    *events.State
	Refusal *events.Refusal
}

func become(s events.State) Change { return Change{Next: &s} }

// Rules are what transitions go by. Frozen withholds releases.
type Rules struct {
	Policy    *policy.Policy
	People    Directory
	Lease     time.Duration // of a claim
	Retention time.Duration // of a final task, unless the policy says otherwise
	Frozen    bool
}

// step starts a transition from s: the next state, not yet of any kind.
func step(s events.State, m Moment) events.State {
	s.At, s.Cause, s.Turn = m.Now, m.Cause, events.Turn{}
	if s.Pause != nil {
		pause := *s.Pause
		pause.Fields = slices.Clone(pause.Fields)
		pause.Deliveries = slices.Clone(pause.Deliveries)
		s.Pause = &pause
	}
	return s
}

// settle decides about the candidate as it stands now and moves the state to what the decision says. from is what a release
// would rest on.
func (r Rules) settle(s events.State, in policy.Input, from events.ReleaseBasis, m Moment) events.State {
	in.Candidate, in.Asks = s.Candidate, s.Asks
	decision := r.Policy.Decide(in)
	s.Decision = events.Decided{Decision: decision}
	switch d := decision.(type) {
	case events.Ask:
		return r.ask(s, d, m)
	case events.Approve:
		return r.askApproval(s, d, m)
	case events.Escalate:
		return r.escalate(s, d, m)
	case events.Proceed:
		return r.release(s, from, m)
	case events.Stop:
		s.Kind, s.Note = events.Stopped, d.Why.Reason
	case events.Reconcile:
		s.Kind, s.Note = events.Conflicted, d.Why.Reason
	}
	return s
}

func (r Rules) ask(s events.State, d events.Ask, m Moment) events.State {
	s.Asks = count(s.Asks, d)
	return r.open(s, events.Asked, events.Pause{
		Kind: events.Clarification, Fields: d.Fields, Delivering: events.Delivering{Plan: d.Plan},
		Responders: r.People.responders(d.Plan, s.Candidate.Requester, ""),
	}, m)
}

func (r Rules) askApproval(s events.State, d events.Approve, m Moment) events.State {
	return r.open(s, events.ApprovalAsked, events.Pause{
		Kind: events.Approval, Delivering: events.Delivering{Plan: d.Plan},
		Responders: r.People.approvers(d, s.Candidate.Requester),
	}, m)
}

func (r Rules) escalate(s events.State, d events.Escalate, m Moment) events.State {
	return r.open(s, events.Escalated, events.Pause{
		Kind: events.Escalation, Fields: d.Fields, Delivering: events.Delivering{Plan: d.Plan},
		Responders: r.People.owners(d.To, s.Candidate.Requester),
	}, m)
}

// decided is the candidate with what the policy assumed among its arguments: what the decision is about, people are shown,
// and would run.
func decided(s events.State) events.Candidate { return policy.Assume(s.Candidate, s.Decision.Basis()) }

// longest is the hard limit of a pause whose policy names none: nothing waits for ever unseen.
const longest = 7 * 24 * time.Hour

// open makes a pause. The first pause of a candidate takes the candidate's version, each further one the next.
func (r Rules) open(s events.State, kind events.Kind, p events.Pause, m Moment) events.State {
	if s.Pause != nil {
		left := *s.Pause
		s.Left, s.Closes, s.Version = &left, false, s.Version+1
	}
	p.Question, p.Version, p.Step, p.Status = m.Question, s.Version, s.Candidate.Step, events.PauseWaiting
	p.Action = s.Decision.Basis().Action
	p.Shown = r.Policy.Shown(decided(s), s.Decision.Basis())
	p.Reason = s.Decision.Basis().Reason
	s.Decision.Decision = bareDecision(s.Decision.Decision)
	p.Opened = m.Now
	p.Cap = m.Now.Add(cmp.Or(time.Duration(p.Plan.Cap), longest))
	s.Pause, s.Kind = &p, kind
	if lookup(s) {
		return s
	}
	return r.walk(s, m)
}

// bareDecision leaves out of a decision what stands in the pause it led to: what is asked, and by which way.
func bareDecision(d events.Decision) events.Decision {
	switch v := d.(type) {
	case events.Ask:
		v.Fields, v.Plan = nil, events.Plan{}
		return v
	case events.Approve:
		v.Plan = events.Plan{}
		return v
	case events.Escalate:
		v.Fields, v.Plan = nil, events.Plan{}
		return v
	case events.Proceed, events.Stop, events.Reconcile:
	}
	return d
}

// lookup reports that the pause waits for the agent, not for a person.
func lookup(s events.State) bool {
	ask, ok := s.Decision.Decision.(events.Ask)
	return ok && ask.Lookup != ""
}

// walk asks the next step of the route that has somebody to ask. With none left and nobody reached or being tried, the
// question is undelivered.
func (r Rules) walk(s events.State, m Moment) events.State {
	p := s.Pause
	for p.Next < len(p.Plan.Route) {
		made := r.deliveries(s, p.Next)
		p.Next++
		if len(made) > 0 && len(p.Responders) > 0 {
			p.Deliveries, p.Stepped = append(p.Deliveries, made...), m.Now
			s.Steps = true
			return s
		}
	}
	if !inReach(p.Deliveries) {
		return end(s, events.Undelivered, events.PauseUndelivered, m)
	}
	return s
}

// deliveries are those of one step of the route. Their ids are the idempotency keys of everything about them.
func (r Rules) deliveries(s events.State, at int) []events.Delivery {
	var made []events.Delivery
	for i, target := range s.Pause.Plan.Route[at].Targets {
		to, found := r.People.resolve(target.Who, s.Candidate.Requester, ownerOf(s.Decision.Decision))
		if !found {
			continue
		}
		id := fmt.Sprintf("%s-%d-%d-%d", s.Pause.Question, s.Pause.Version, at, i)
		made = append(made, events.Delivery{ID: id, Step: at, Target: target, To: to})
	}
	return made
}

func ownerOf(d events.Decision) string {
	if e, ok := d.(events.Escalate); ok {
		return e.To
	}
	return ""
}

// inReach reports that a delivery is accepted, or may still be.
func inReach(all []events.Delivery) bool {
	return slices.ContainsFunc(all, func(d events.Delivery) bool { return d.Receipt.State != events.NotDelivered })
}

// reached reports that the latest receipt of some delivery is accepted or better.
func reached(all []events.Delivery) bool {
	return slices.ContainsFunc(all, func(d events.Delivery) bool { return d.Receipt.State.Reached() })
}

// end ends the pause and the step without a release.
func end(s events.State, kind events.Kind, status events.PauseStatus, m Moment) events.State {
	s.Kind = kind
	s.Pause, s.Closes = ended(s.Pause, status, m), true
	return s
}

func ended(p *events.Pause, status events.PauseStatus, m Moment) *events.Pause {
	done := *p
	done.Status, done.Ended = status, m.Now
	done.Fields = slices.Clone(done.Fields)
	for i := range done.Fields {
		if done.Fields[i].Outcome == "" {
			done.Fields[i].Outcome = events.FieldUnknown
		}
	}
	return &done
}

// count notes what an Ask asks, for the limits on questions.
func count(a events.Asks, d events.Ask) events.Asks {
	if d.Lookup != "" {
		a.Lookups = slices.Clone(a.Lookups)
		for _, f := range d.Fields {
			a.Lookups = append(a.Lookups, f.Name)
		}
		return a
	}
	per := make(map[string]int, len(a.PerField)+len(d.Fields))
	maps.Copy(per, a.PerField)
	for _, f := range d.Fields {
		per[f.Name]++
	}
	a.Total, a.Consecutive, a.PerField = a.Total+1, a.Consecutive+1, per
	return a
}

// waiting reports that a pause of the state is open.
func waiting(s events.State) bool { return s.Pause != nil && s.Pause.Status == events.PauseWaiting }

// Final reports that nothing more can happen to the state but a newer candidate.
func Final(k events.Kind) bool {
	switch k {
	case events.Stopped, events.Conflicted, events.Denied, events.Cancelled, events.TimedOut, events.Undelivered,
		events.Superseded, events.Done, events.Failed, events.Reconciled:
		return true
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Reached, events.Rerouted, events.Reminded, events.Overdue,
		events.Answered, events.Released, events.Claimed, events.InDoubt:
	}
	return false
}
