package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/policy"
)

// workers is how many messages of one stage a replica works on at once. They wait for the disk, not for each other.
const workers = 128

var errFrozen = errors.New("releases are frozen")

// intake takes candidates and cancels off their stream.
type intake struct {
	core
	room *room
}

func (i intake) run(ctx context.Context) error {
	return i.bus.Consume(ctx, bus.Consumer{Stream: bus.Candidates, Name: "intake", Workers: workers, Malformed: i.malformed}, i.handle)
}

func (i intake) handle(ctx context.Context, m bus.Message) error {
	switch v := m.Envelope.Data.(type) {
	case events.Candidate:
		v.ID = cmp.Or(v.ID, m.Envelope.ID)
		return i.propose(ctx, v, m.Envelope.ID)
	case events.CancelRequest:
		_, err := i.ledger.Apply(ctx, Key{v.Agent, v.Task}, func(s Snapshot, now time.Time) Change {
			return i.rules().Cancel(s, v, "agent "+string(v.Agent), moment(now, m.Envelope.ID))
		})
		return err
	}
	return bus.Poison("neither a candidate nor a cancel")
}

func (i intake) propose(ctx context.Context, c events.Candidate, cause string) error {
	if err := i.bus.EnsurePool(ctx, c.Agent); err != nil {
		return err
	}
	res, err := i.ledger.Begin(ctx, Key{c.Agent, c.Task}, func(s Snapshot, now time.Time) Change {
		change := i.rules().Propose(s, c, moment(now, cause))
		if i.room.full.Load() && change.Next != nil {
			return noRoom(s, c, now)
		}
		return change
	})
	switch {
	case err != nil:
		return err
	case res.Refusal != nil:
		return i.bus.Wake(i.bus.Space().Wake(c.Agent, c.Task, "refused"))
	case res.State.Candidate.ID != c.ID && before(res.State, c.ID).ID == "":
		return bus.Later(5*time.Second, errFrozen)
	}
	return nil
}

// noRoom refuses a candidate because the store is nearly full. The same candidate under another id may be sent later.
func noRoom(s Snapshot, c events.Candidate, now time.Time) Change {
	full := attempt{Key{c.Agent, c.Task}, "candidate", c.ID, c.Version}.refused(s, events.TooLarge, Moment{Now: now})
	full.Refusal.Detail = "the store is nearly full"
	return full
}

// malformed records that a candidate could not be read, so that whoever sent it can be told; the message itself ends in the
// dead letter.
func (i intake) malformed(ctx context.Context, m bus.Message) error {
	if m.Subject.Task == "" {
		return nil // its subject names no task: there is nobody to tell
	}
	id := cmp.Or(m.Envelope.ID, "unreadable")
	_, err := i.ledger.Apply(ctx, Key{m.Subject.Agent, m.Subject.Task}, func(s Snapshot, now time.Time) Change {
		return attempt{Key{m.Subject.Agent, m.Subject.Task}, "candidate", id, 0}.refused(s, events.Malformed, Moment{Now: now})
	})
	return err
}

// growth is what a state may have grown by until its last transition: answers, receipts, the tool's result.
const growth = 160 << 10

// small is how much an agent may send without its state being measured: the state holds it a few times at most.
const small = 32 << 10

// Propose is stage one: a candidate becomes a decision, and a pause, a release or an end.
func (r Rules) Propose(s Snapshot, c events.Candidate, m Moment) Change {
	this := attempt{Key{c.Agent, c.Task}, "candidate", c.ID, c.Version}
	refuse := func(reason events.Reason) Change { return this.refused(s, reason, m) }
	content := c.Content()
	switch {
	case !s.Known():
	case c.ID == s.State.Candidate.ID && content == s.State.Content:
		return Change{} // the same again: whoever sent it re-attaches to whatever has become of it
	case c.ID == s.State.Candidate.ID:
		return refuse(events.Changed)
	case before(s.State, c.ID).Content == content:
		return Change{} // an earlier candidate again
	case before(s.State, c.ID).ID != "":
		return refuse(events.Changed)
	case c.Version <= s.State.Version:
		return refuse(events.StaleVersion)
	case s.State.Kind == events.Claimed || s.State.Kind == events.InDoubt:
		return refuse(events.Busy)
	}
	next := events.State{
		Agent: c.Agent, Task: c.Task, Version: c.Version, At: m.Now, Cause: m.Cause, Candidate: c,
		Content: content, Asks: carry(s.State, c),
	}
	next = replace(next, s, m)
	next = r.settle(next, policy.Input{}, events.FromProceed, m)
	if next.Kind == events.Answered {
		return r.withhold(s, m)
	}
	if size(next) > events.MaxState-growth {
		return refuse(events.TooLarge)
	}
	return become(next)
}

// replace notes what a newer candidate supersedes: a pause that waits, or a release nobody has claimed.
func replace(next events.State, s Snapshot, m Moment) events.State {
	if waiting(s.State) {
		next.Left = ended(s.State.Pause, events.PauseSuperseded, m)
	}
	if waiting(s.State) || s.State.Kind == events.Released || s.State.Kind == events.Answered {
		next.Superseded = s.State.Version
	}
	next.Settled = settled(s.State)
	if s.Known() {
		past := append(slices.Clip(s.State.Past), events.Past{ID: s.State.Candidate.ID, Content: s.State.Content, Seq: s.Seq})
		next.Past = past[max(0, len(past)-maxPast):]
	}
	return next
}

// maxPast is how many of a task's earlier candidates are known by their ids.
const maxPast = 64

// before finds an earlier candidate of the task; the zero Past is none.
func before(s events.State, id string) events.Past {
	for _, p := range s.Past {
		if p.ID == id {
			return p
		}
	}
	return events.Past{}
}

// maxSettled bounds what is kept of earlier candidates' submissions. They are only needed while one may still be delivered
// again, which is minutes.
const maxSettled = 16

// settled are the submissions that moved the task so far: those accepted, and a person's cancel.
func settled(s events.State) []events.SubmissionID {
	all := slices.Clone(s.Settled)
	for _, a := range s.Accepted {
		all = append(all, a.Submission)
	}
	if id, err := events.ParseSubmission(s.Cause); err == nil && s.Kind == events.Cancelled {
		all = append(all, id)
	}
	return all[max(0, len(all)-maxSettled):]
}

// withhold keeps a candidate that may proceed from being released while releases are frozen. What it replaces is superseded
// all the same; the candidate itself is decided when it is delivered again.
func (r Rules) withhold(s Snapshot, m Moment) Change {
	if !waiting(s.State) && s.State.Kind != events.Released && s.State.Kind != events.Answered {
		return Change{}
	}
	next := step(s.State, m)
	if waiting(next) {
		return become(end(next, events.Superseded, events.PauseSuperseded, m))
	}
	next.Kind = events.Superseded
	return become(next)
}

// carry keeps the counters of a task over its candidates: the total for the task, the rest for the same step.
func carry(s events.State, c events.Candidate) events.Asks {
	if s.Candidate.Step == c.Step && s.Kind != events.Done {
		return s.Asks
	}
	return events.Asks{Total: s.Asks.Total}
}

// size is what the state takes in the log, in bytes: with its values, which stand in it once more for each option.
// size is what a state takes up, in bytes. A state around a small candidate fits, and is not measured.
func size(s events.State) int {
	c := s.Candidate
	heavy := len(c.Tool.InputSchema) + len(c.Context)
	for _, v := range c.Arguments {
		heavy += len(v.Reveal())
	}
	for _, v := range c.State {
		heavy += len(v.Reveal())
	}
	for _, a := range c.Candidates {
		heavy += len(a.Label)
		for _, v := range a.Arguments {
			heavy += len(v.Reveal())
		}
	}
	if heavy < small {
		return heavy
	}
	raw, err := events.Seal(events.Envelope{ID: "size", Source: "/", Data: s})
	if err != nil {
		return events.MaxState
	}
	return len(raw)
}

// Cancel calls a step off for an agent or operator, while its pause waits or its release is unclaimed.
func (r Rules) Cancel(s Snapshot, c events.CancelRequest, by string, m Moment) Change {
	this := attempt{Key{c.Agent, c.Task}, "cancel", m.Cause, c.Version}
	refuse := func(reason events.Reason) Change { return this.refused(s, reason, m) }
	switch {
	case !s.Known():
		return refuse(events.UnknownTask)
	case s.State.Cause == m.Cause:
		return Change{}
	case c.Version < s.State.Candidate.Version || c.Version > s.State.Version:
		return refuse(events.StaleVersion)
	case s.State.Kind == events.Claimed || s.State.Kind == events.InDoubt:
		return refuse(events.Busy)
	case Final(s.State.Kind):
		return refuse(events.NotPending)
	}
	next := step(s.State, m)
	next.By, next.Note = by, c.Reason
	if waiting(next) {
		return become(end(next, events.Cancelled, events.PauseCancelled, m))
	}
	next.Kind = events.Cancelled
	return become(next)
}
