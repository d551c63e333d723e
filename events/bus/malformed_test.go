package bus_test

import (
	"context"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

func TestConsume_malformed(t *testing.T) {
	space := events.DefaultSpace
	sealed := func(data any) []byte {
		body, err := events.Seal(events.Envelope{ID: "event-1", Source: "/test", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	answer := events.Answer{Agent: agent, Task: "t-1", Version: 3, Submission: "s-1", Responder: events.Responder{Channel: "slack"}}
	approval := events.ApprovalAnswer{Agent: agent, Task: "t-1", Version: 3, Submission: "s-1", Verdict: events.Granted, Action: "sha256:0"}
	report := events.DeliveryReport{Agent: agent, Task: "t-1", Version: 3, Delivery: "d-1", Receipt: events.Receipt{State: events.Held}}
	place := events.Place{Channel: "slack", Agent: agent, Task: "t-1", Version: 3}
	other := func(change func(*events.Place)) events.Place {
		p := place
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		stream  bus.Stream
		subject string
		body    []byte
		id      string
	}{
		"not_an_event":          {bus.Candidates, space.Candidate(agent, "t-1"), []byte(`{"hello":1}`), "CLARIFY_CANDIDATES-1"},
		"not_json":              {bus.Candidates, space.Candidate(agent, "t-1"), []byte("\x00\xff"), "CLARIFY_CANDIDATES-1"},
		"literal_wildcard":      {bus.Candidates, "clarify.candidate.crm-bot.*", sealed(candidate("t-1")), "CLARIFY_CANDIDATES-1"},
		"another_agent":         {bus.Candidates, space.Candidate("thief", "t-1"), sealed(candidate("t-1")), "event-1"},
		"another_task":          {bus.Candidates, space.Candidate(agent, "t-2"), sealed(candidate("t-1")), "event-1"},
		"cancel_another_task":   {bus.Candidates, space.Cancel(agent, "t-2"), sealed(events.CancelRequest{Agent: agent, Task: "t-1", Version: 1}), "event-1"},
		"cancel_as_candidate":   {bus.Candidates, space.Candidate(agent, "t-1"), sealed(events.CancelRequest{Agent: agent, Task: "t-1", Version: 1}), "event-1"},
		"answer_as_approval":    {bus.Answers, space.Approval(place), sealed(answer), "event-1"},
		"approval_as_answer":    {bus.Answers, space.Answer(place), sealed(approval), "event-1"},
		"answer_other_version":  {bus.Answers, space.Answer(other(func(p *events.Place) { p.Version = 4 })), sealed(answer), "event-1"},
		"answer_other_agent":    {bus.Answers, space.Answer(other(func(p *events.Place) { p.Agent = "b" })), sealed(answer), "event-1"},
		"answer_other_channel":  {bus.Answers, space.Answer(other(func(p *events.Place) { p.Channel = "email" })), sealed(answer), "event-1"},
		"approval_other_task":   {bus.Answers, space.Approval(other(func(p *events.Place) { p.Task = "t-2" })), sealed(approval), "event-1"},
		"receipt_other_version": {bus.Answers, space.Receipt(other(func(p *events.Place) { p.Version = 1 })), sealed(report), "event-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			letters := w.letters(t)
			told := make(chan bus.Message, 1)
			c := bus.Consumer{Stream: test.stream, Name: "reader", Malformed: func(_ context.Context, m bus.Message) error {
				told <- m
				return nil
			}}
			w.consume(t, c, func(_ context.Context, m bus.Message) error {
				t.Errorf("it was handled: %+v", m.Subject)
				return nil
			})
			m := nats.NewMsg(test.subject)
			m.Header.Set("Content-Type", events.ContentType)
			m.Data = test.body
			if _, err := w.js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			heard := receive(t, told)
			if heard.Problem == nil || heard.Envelope.Data != nil || heard.Envelope.ID != test.id {
				t.Errorf("told of problem %v, event %q, want %q without data", heard.Problem, heard.Envelope.ID, test.id)
			}
			if dead := receive(t, letters); dead.Reason != "malformed" || dead.Seq != 1 {
				t.Errorf("dead letter %+v", dead)
			}
		})
	}
}

// What is right must still pass, or the test above proves nothing.
func TestConsume_well_formed(t *testing.T) {
	w := newWorld(t)
	place := events.Place{Channel: "slack", Agent: agent, Task: "t-1", Version: 3}
	got := make(chan any, 4)
	w.consume(t, bus.Consumer{Stream: bus.Answers, Name: "reader"}, func(_ context.Context, m bus.Message) error {
		got <- m.Envelope.Data
		return nil
	})
	answer := events.Answer{Agent: agent, Task: "t-1", Version: 3, Submission: "s-1"}
	for subject, data := range map[string]any{
		w.Space().Answer(place):   answer,
		w.Space().Approval(place): events.ApprovalAnswer{Agent: agent, Task: "t-1", Version: 3, Submission: "s-1", Verdict: events.Granted, Action: "sha256:0"},
		w.Space().Receipt(place):  events.DeliveryReport{Agent: agent, Task: "t-1", Version: 3, Delivery: "d", Receipt: events.Receipt{State: events.Held}},
	} {
		if _, err := w.Publish(t.Context(), subject, events.Envelope{Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if a, ok := receive(t, got).(events.Answer); ok && a.Responder.Channel != "slack" {
			t.Errorf("the responder came on channel %q, want the subject's", a.Responder.Channel)
		}
	}
}
