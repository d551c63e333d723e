package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

// ledger counts effects by task.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int
}

func (l *ledger) run(_ context.Context, g events.Grant) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[g.Arguments["customer_id"].RevealString()]++
	return nil, nil
}

// serving runs workers until the test has ended.
func serving(t *testing.T, g *gate.Gate, handlers map[string]gate.Handler) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var worker sync.WaitGroup
	worker.Go(func() {
		if err := g.Serve(ctx, handlers); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); worker.Wait() })
}

func TestServe_workers_share_the_releases(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	l := &ledger{runs: map[string]int{}}
	for range 4 {
		serving(t, gated(t, b), map[string]gate.Handler{"crm.update_record": {Run: l.run}})
	}
	const releases = 50
	g := gated(t, b)
	var proposed []gate.Ticket
	for i := range releases {
		c := updateRecord()
		c.Task, c.Arguments["customer_id"] = events.Task(fmt.Sprintf("t-%d", i)), events.SecretOf(fmt.Sprint(i))
		ticket, err := g.Submit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		proposed = append(proposed, ticket)
	}
	for _, ticket := range proposed {
		if out, err := g.Result(t.Context(), ticket); err != nil || out.Ran {
			t.Fatal(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range releases {
		if n := l.runs[fmt.Sprint(i)]; n != 1 {
			t.Errorf("release %d was run %d times", i, n)
		}
	}
	if n := len(s.said().effects); n != releases {
		t.Errorf("%d outcomes were reported", n)
	}
}

func TestServe_leaves_a_tool_it_does_not_know_to_another_worker(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Released))
		l := &ledger{runs: map[string]int{}}
		g := gated(t, b)
		serving(t, g, map[string]gate.Handler{"crm.delete_record": {Run: l.run}})
		ticket, err := g.Submit(t.Context(), updateRecord())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := len(s.said().claims); n != 0 {
			t.Errorf("%d claims by a worker without a handler", n)
		}
		serving(t, g, map[string]gate.Handler{"crm.update_record": {Run: l.run}})
		if _, err := g.Result(t.Context(), ticket); err != nil || l.runs["c-207"] != 1 {
			t.Errorf("ran %d times, %v", l.runs["c-207"], err)
		}
	})
}

func TestServe_lets_the_tool_that_runs_finish(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		script(t, b, always(events.Released))
		g := gated(t, b)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		slow := func(ctx context.Context, _ events.Grant) (any, error) {
			stop()
			time.Sleep(10 * time.Minute)
			return "finished", ctx.Err()
		}
		ticket, err := g.Submit(t.Context(), updateRecord())
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Serve(ctx, map[string]gate.Handler{"crm.update_record": {Run: slow}}); err != nil {
			t.Fatal(err)
		}
		if out, err := g.Result(t.Context(), ticket); err != nil || out.Result.RevealString() != "finished" {
			t.Errorf("got %v", err)
		}
	})
}

func TestServe_recheck_gets_the_answered_candidate(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	g := gated(t, b)
	l := &ledger{runs: map[string]int{}}
	serving(t, g, map[string]gate.Handler{"crm.update_record": {Run: l.run, Recheck: func(_ context.Context, c events.Candidate) (map[string]events.Secret, error) {
		return map[string]events.Secret{"record.id": c.Arguments["customer_id"]}, nil
	}}})
	ticket, err := g.Submit(t.Context(), updateRecord())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Result(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	if claims := s.said().claims; len(claims) != 1 || claims[0].Recheck["record.id"].RevealString() != "c-207" {
		t.Errorf("%d claims, or without the facts", len(claims))
	}
}

func TestServe_handler_without_a_tool(t *testing.T) {
	g := gated(t, bustest.Start(t))
	if _, ok := errors.AsType[*events.Invalid](g.Serve(t.Context(), map[string]gate.Handler{"crm.update_record": {}})); !ok {
		t.Error("was taken")
	}
}
