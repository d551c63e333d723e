package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// lap is the times of one cycle.
type lap struct{ pause, release, whole time.Duration }

// cycle has one action asked about, answered, released and run.
func (m *bench) cycle(ctx context.Context, task events.Task) (lap, error) {
	asked, freed := make(chan events.Question, 1), make(chan time.Time, 1)
	m.asked.Store(task, asked)
	m.freed.Store(task, freed)
	defer m.asked.Delete(task)
	defer m.freed.Delete(task)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var l lap
	start := time.Now()
	var agent sync.WaitGroup
	agent.Go(func() {
		if _, err := m.gate.Do(ctx, candidate(task), func(context.Context, events.Grant) (any, error) {
			m.effects.Add(1)
			return "ok", nil
		}); err != nil {
			fail(err)
		}
	})
	if err := m.person(ctx, asked, freed, start, &l); err != nil {
		fail(err)
	}
	agent.Wait()
	l.whole = time.Since(start)
	return l, context.Cause(ctx)
}

// person answers the question of a cycle and sees the release.
func (m *bench) person(ctx context.Context, asked <-chan events.Question, freed <-chan time.Time, start time.Time, l *lap) error {
	var q events.Question
	select {
	case q = <-asked:
		l.pause = time.Since(start)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answered := time.Now()
	v, err := m.desk.Submit(ctx, events.Answer{
		Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question, Submission: events.NewSubmissionID(),
		Responder: events.Responder{Subject: "bench", Assurance: events.Platform},
		Values:    []events.Given{{Field: "record", Option: q.Content.Fields[0].Options[1].ID}},
	})
	if err != nil {
		return err
	}
	if !v.Accepted {
		return fmt.Errorf("answer refused: %s", v.Refusal.Reason)
	}
	select {
	case at := <-freed:
		l.release = at.Sub(answered)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func candidate(task events.Task) events.Candidate {
	no := false
	c := events.Candidate{
		Agent: agent, Task: task, ID: string(task) + ":update", Version: 1, Step: "update",
		Tool: events.Tool{
			Name: "bench.update", Server: "mcp://bench",
			Annotations: &events.Annotations{ReadOnly: &no, Destructive: &no, OpenWorld: &no},
			InputSchema: events.Raw(`{"type":"object","properties":{"record":{"type":"string"},"phone":{"type":"string"}},"required":["record"]}`),
		},
		Arguments: events.Arguments{"phone": events.SecretOf("+34 600 000 000")},
	}
	c.Provenance = map[string]events.Provenance{"phone": {From: events.FromUser}}
	c.Missing = []events.Missing{{Field: "record", Question: "Which one?"}}
	for _, id := range []string{"c-101", "c-207", "c-311"} {
		c.Candidates = append(c.Candidates, events.Alternative{Arguments: events.Arguments{"record": events.SecretOf(id)}, Label: "Juan " + id, Weight: 1})
	}
	return c
}

// questions is the bench's channel: each question is reported as accepted and handed to whoever runs its cycle.
func (m *bench) questions(ctx context.Context) error {
	consumer := bus.Consumer{
		Stream: bus.Questions, Name: "channel-" + string(channel),
		Filters: []string{m.bus.Space().Questions(channel)}, Workers: 128,
	}
	return m.bus.Consume(ctx, consumer, func(ctx context.Context, msg bus.Message) error {
		q, ok := msg.Envelope.Data.(events.Question)
		if !ok || q.Phase != events.PhaseAsk {
			return nil
		}
		report := events.DeliveryReport{
			Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question,
			Delivery: q.Delivery.ID, Receipt: events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID, Attempt: 1},
		}
		var reply events.EffectReply
		if err := m.bus.Ask(ctx, m.bus.Space().Report(msg.Subject.Place()), report, &reply); err != nil {
			return err
		}
		if to, ok := m.asked.LoadAndDelete(q.Task); ok {
			to.(chan events.Question) <- q
		}
		return nil
	})
}

// releases notes when the wake-up of a release is heard.
func (m *bench) releases(ctx context.Context) error {
	return m.bus.Listen(ctx, m.bus.Space().Wake(agent, "*", events.Released), func(msg bus.Message) {
		if to, ok := m.freed.LoadAndDelete(msg.Subject.Task); ok {
			to.(chan time.Time) <- time.Now()
		}
	})
}
