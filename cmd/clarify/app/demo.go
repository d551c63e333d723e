package app

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
)

// DemoAgent is the agent of the demo.
const DemoAgent events.Agent = "crm-bot"

// Demo is an agent that wants to update the record of one of three customers with the same name, and does not know which.
// It reaches the broker as any agent does, over the network and through a gate.
type Demo struct {
	Task events.Task

	server *Server
	gate   *gate.Gate
	ran    atomic.Int64
}

// NewDemo connects the demo agent. It goes on with the task an earlier run left open, if there is one, and otherwise takes
// a new one.
func (s *Server) NewDemo(ctx context.Context) (*Demo, error) {
	g, err := gate.Connect(ctx, s.URL, gate.WithAgent(string(DemoAgent)), gate.WithWorker("demo"), gate.WithLogger(s.log))
	if err != nil {
		return nil, fmt.Errorf("connect the demo agent: %w", err)
	}
	s.parts.push("demo agent", func() error { g.Close(); return nil })
	d := &Demo{server: s, gate: g}
	d.Task, err = d.open(ctx)
	return d, err
}

// open is the first of demo-1, demo-2, … that has not ended.
func (d *Demo) open(ctx context.Context) (events.Task, error) {
	for n := 1; ; n++ {
		task := events.Task(fmt.Sprintf("demo-%d", n))
		v, err := d.server.view(ctx, DemoAgent, task)
		if err != nil {
			return "", err
		}
		if v == nil || !ended(v.Kind) {
			return task, nil
		}
	}
}

// ended reports that nothing more becomes of a step by itself, or that only a person can say what did.
func ended(k events.Kind) bool {
	switch k {
	case events.Stopped, events.Conflicted, events.Denied, events.Cancelled, events.TimedOut, events.Undelivered, events.Superseded,
		events.Done, events.Failed, events.InDoubt, events.Reconciled:
		return true
	default:
		return false
	}
}

// view asks the broker for a task; nil when there is none. It waits for the broker to be there.
func (s *Server) view(ctx context.Context, agent events.Agent, task events.Task) (*events.View, error) {
	var reply events.StateReply
	if err := s.Bus.Ask(ctx, s.Bus.Space().AgentState(agent, task), events.StateRequest{}, &reply); err != nil {
		return nil, fmt.Errorf("ask for task %s: %w", task, err)
	}
	return reply.View, nil
}

// Run proposes the action and runs the tool when it is released. say is told when the tool ran.
func (d *Demo) Run(ctx context.Context, say func(text string)) (gate.Outcome, error) {
	return d.gate.Do(ctx, d.candidate(), func(_ context.Context, g events.Grant) (any, error) {
		n := d.ran.Add(1)
		say(fmt.Sprintf("%s ran %s with customer_id %s (task %s; runs so far: %d)",
			DemoAgent, g.Tool.Name, g.Arguments["customer_id"].RevealString(), d.Task, n))
		return map[string]string{"updated": g.Arguments["customer_id"].RevealString()}, nil
	})
}

// Blocked returns the task once people can answer it or it will not be asked about, and what is known after five seconds
// otherwise.
func (d *Demo) Blocked(ctx context.Context) (events.View, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	moved := make(chan struct{}, 1)
	var listening sync.WaitGroup
	listening.Go(func() { // who hears nothing looks again all the same
		b := d.server.Bus
		_ = b.Listen(ctx, b.Space().Wake(DemoAgent, d.Task, "*"), func(bus.Message) {
			select {
			case moved <- struct{}{}:
			default:
			}
		})
	})
	defer func() { cancel(); listening.Wait() }()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	var last events.View
	for {
		v, err := d.server.view(ctx, DemoAgent, d.Task)
		switch {
		case ctx.Err() != nil:
			return last, nil
		case err != nil:
			return last, err
		case v != nil:
			last = *v
			if ended(v.Kind) || v.Kind == events.Released || v.Pause != nil && !v.Pause.Deadline.IsZero() {
				return last, nil
			}
		}
		select {
		case <-moved:
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

func (d *Demo) candidate() events.Candidate {
	no, yes := false, true
	juan := func(id, label string) events.Alternative {
		return events.Alternative{Arguments: events.Arguments{"customer_id": events.SecretOf(id)}, Label: label, Weight: 1}
	}
	c := events.Candidate{
		Task: d.Task, ID: string(d.Task) + ":update-record", Step: "update-record",
		Tool: events.Tool{
			Name: "crm.update_record", Server: "mcp://crm",
			Annotations: &events.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
			InputSchema: events.Raw(`{"type":"object","properties":{"customer_id":{"type":"string"},"phone":{"type":"string"}},` +
				`"required":["customer_id","phone"]}`),
		},
		Arguments: events.Arguments{"phone": events.SecretOf("+34 600 000 000")},
	}
	c.Provenance = map[string]events.Provenance{"phone": {From: events.FromUser}}
	c.Missing = []events.Missing{{Field: "customer_id", Question: "Which Juan should be updated?"}}
	c.Candidates = []events.Alternative{juan("c-101", "Juan Pérez, Lima"), juan("c-207", "Juan Gómez, Quito"), juan("c-311", "Juan Ruiz, Madrid")}
	c.Context = "The customer asked to change their phone number."
	return c
}
