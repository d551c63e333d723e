package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// outbox is stage two, route: what follows from a transition is derived from the log. A crash means that it is done again,
// under the same ids.
type outbox struct{ core }

func (o outbox) run(ctx context.Context) error {
	filters := []string{}
	for _, k := range events.Kinds() {
		if !quiet(k) {
			filters = append(filters, o.bus.Space().Task("*", "*", k))
		}
	}
	return o.bus.Consume(ctx, bus.Consumer{Stream: bus.Tasks, Name: "outbox", Filters: filters, Workers: workers}, o.handle)
}

// quiet reports that nothing follows from transitions of a kind: no pause begins, ends or asks somebody in them.
func quiet(k events.Kind) bool {
	switch k {
	case events.Reached, events.Overdue, events.Claimed, events.Done, events.Failed, events.InDoubt, events.Reconciled:
		return true
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Rerouted, events.Reminded, events.Answered, events.Released,
		events.Stopped, events.Conflicted, events.Denied, events.Cancelled, events.TimedOut, events.Undelivered, events.Superseded:
	}
	return false
}

// armAfter is how long a pause stands before its timer is armed: one that is answered at once never needs one. Until then
// the log's own delivery is what brings the broker back to it.
const armAfter = 500 * time.Millisecond

var errArmLater = errors.New("the pause's timer is armed if it still stands in a moment")

func (o outbox) handle(ctx context.Context, m bus.Message) error {
	s, ok := m.Envelope.Data.(events.State)
	if !ok {
		return bus.Poison("not a state")
	}
	if m.Deliveries > 1 {
		return o.again(ctx, s, m.Seq)
	}
	for _, q := range follows(s) {
		if err := o.send(ctx, q, s.At); err != nil {
			return err
		}
	}
	if opens(s) {
		return bus.Later(armAfter, errArmLater)
	}
	return nil
}

// again is for a message that was delivered before: to arm a timer, or because somebody crashed or could not publish. What
// the first delivery may have left undone is done: closings and reminders once more, questions where they are not on their
// way, the timer if the pause still stands.
func (o outbox) again(ctx context.Context, s events.State, seq uint64) error {
	for _, q := range follows(s) {
		if q.Phase == events.PhaseAsk {
			continue
		}
		if err := o.send(ctx, q, s.At); err != nil {
			return err
		}
	}
	k := Key{s.Agent, s.Task}
	now, err := o.ledger.ReadAtLeast(ctx, k, seq)
	if err != nil || !waiting(now.State) {
		return err
	}
	if s.Steps {
		if err := o.askSilent(ctx, k); err != nil {
			return err
		}
	}
	if opens(s) {
		return o.arm(ctx, k, o.rules().Bound)
	}
	return nil
}

// place is where a channel is asked a question.
func (c core) place(q events.Question) string {
	return c.bus.Space().Question(events.Place{Channel: q.Channel, Agent: q.Agent, Task: q.Task, Version: q.Version})
}

func (c core) send(ctx context.Context, q events.Question, at time.Time) error {
	_, err := c.bus.Publish(ctx, c.place(q), events.Envelope{Source: c.bus.Source(), Time: at, Data: q})
	return err
}

// askSilent asks what no channel has said anything about: questions that are neither on their way nor reported on. Whoever
// did get one knows it by the delivery's id.
func (c core) askSilent(ctx context.Context, k Key) error {
	s, err := c.ledger.Read(ctx, k)
	if err != nil || !waiting(s.State) {
		return err
	}
	for _, d := range s.State.Pause.Deliveries {
		if !silent(d) {
			continue
		}
		q := question(s.State, s.State.Pause, d, events.PhaseAsk)
		_, err := c.bus.Last(ctx, bus.Questions, c.place(q))
		if errors.Is(err, bus.ErrNotFound) {
			err = c.send(ctx, q, s.State.At)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// opens reports that the state opened a pause, and so may need a timer. Whatever becomes of the pause, that timer looks at
// the task when it fires and arms the next.
func opens(s events.State) bool {
	return s.Kind == events.Asked || s.Kind == events.ApprovalAsked || s.Kind == events.Escalated
}

// arm schedules the task's next wake-up for when says, under the guard of what was read.
func (c core) arm(ctx context.Context, k Key, when func(events.State) time.Time) error {
	for try := 0; ; try++ {
		s, err := c.ledger.Read(ctx, k)
		if err == nil {
			at := when(s.State)
			if !s.Known() || at.IsZero() {
				return nil
			}
			if err = c.bus.Arm(ctx, events.Timer{Agent: k.Agent, Task: k.Task, Due: at}, s.Seq); err == nil {
				return nil
			}
		}
		if !bus.Unavailable(err) {
			return err // no other try would mend it
		}
		if err := pause(ctx, try, err); err != nil {
			return err
		}
	}
}

// follows are the questions, reminders and closings that a transition has adapters told.
func follows(s events.State) []events.Question {
	var out []events.Question
	if s.Left != nil {
		out = append(out, closings(s, s.Left)...)
	}
	p := s.Pause
	switch {
	case p == nil:
	case s.Closes:
		out = append(out, closings(s, p)...)
	case s.Steps && waiting(s):
		for _, d := range p.Deliveries {
			if d.Step == p.Next-1 {
				out = append(out, question(s, p, d, events.PhaseAsk))
			}
		}
	case s.Kind == events.Reminded:
		for _, d := range p.Deliveries {
			if d.Receipt.State.Reached() {
				out = append(out, question(s, p, d, events.PhaseRemind))
			}
		}
	}
	return out
}

// closings tell every surface of a pause what became of it.
func closings(s events.State, p *events.Pause) []events.Question {
	var out []events.Question
	for _, d := range p.Deliveries {
		q := question(s, p, d, events.PhaseClose)
		q.Closed = &events.Closed{Status: p.Status, Kind: s.Kind, At: s.At}
		if acc, ok := acceptedAt(s, p.Version); ok {
			q.Closed.By, q.Closed.At = &acc.Responder, acc.At
		}
		out = append(out, q)
	}
	return out
}

// question is what an adapter gets: no option carries its value.
func question(s events.State, p *events.Pause, d events.Delivery, phase events.Phase) events.Question {
	return events.Question{
		Agent: s.Agent, Task: s.Task, Version: p.Version, Question: p.Question, Kind: p.Kind, Phase: phase,
		Channel: d.Target.Channel, Delivery: d, Content: content(s, p),
	}
}

func content(s events.State, p *events.Pause) events.Content {
	c := events.Content{
		Lang: s.Candidate.Lang, Step: p.Step, Tool: s.Candidate.Tool.Name, Fields: bare(p.Fields), Shown: p.Shown,
		Action: p.Action, AgentSays: s.Candidate.Context, Reason: p.Reason,
		Deadline: p.Plan.Deadline, NotAfter: p.Cap, AfterDeadline: p.Plan.AfterDeadline,
	}
	if r := s.Candidate.Requester; r != nil {
		c.Requester = r.Name
	}
	return c
}

// bare takes the values out of fields.
func bare(fields []events.Field) []events.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Options = slices.Clone(out[i].Options)
		for j := range out[i].Options {
			out[i].Options[j].Value = events.Secret{}
		}
	}
	return out
}
