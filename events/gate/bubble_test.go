package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

// In these tests time is fake: it passes when everything waits.

func TestWait_giving_up_does_not_cancel(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Asked))
		g := gated(t, b)
		var tool counted
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := g.Do(ctx, updateRecord(), tool.run)
		waiting, ok := errors.AsType[*gate.Waiting](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || waiting.Kind != events.Clarification || waiting.Question == "" {
			t.Fatalf("got %v", err)
		}
		g.Close()
		synctest.Wait()
		if n := s.said().cancels; n != 0 {
			t.Errorf("%d cancels", n)
		}

		// After a restart the same candidate, and its ticket, re-attach.
		again := gated(t, b)
		s.move("t-42", events.Released, nil)
		if _, err := again.Wait(t.Context(), waiting.Ticket); err != nil {
			t.Errorf("the ticket: %v", err)
		}
		if _, err := again.Do(t.Context(), updateRecord(), tool.run); err != nil || tool.runs.Load() != 1 {
			t.Errorf("the candidate: %d runs, %v", tool.runs.Load(), err)
		}
		if n := s.said().candidates; n != 1 {
			t.Errorf("sent %d candidates", n)
		}
	})
}

func TestWait_nobody_answers(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		g := gated(t, bustest.Start(t))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ticket, err := g.Submit(ctx, updateRecord())
		if _, ok := errors.AsType[*gate.Waiting](err); !ok || !errors.Is(err, context.DeadlineExceeded) || ticket.Candidate == "" {
			t.Errorf("got %+v, %v", ticket, err)
		}
	})
}

func TestWait_a_lost_wake_up_costs_a_poll(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Asked))
		g := gated(t, b)
		ticket, err := g.Submit(t.Context(), updateRecord())
		if err != nil {
			t.Fatal(err)
		}
		g.Close() // it hears nothing from now on
		done := make(chan error)
		go func() {
			_, err := g.Wait(t.Context(), ticket)
			done <- err
		}()
		time.Sleep(10 * time.Minute)
		s.move("t-42", events.Released, nil)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(40 * time.Second):
			t.Error("not noticed within the longest delay between two looks")
			s.move("t-42", events.Denied, nil)
			<-done
		}
	})
}

func TestWait_a_wake_up_is_heard_at_once(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Asked))
		g := gated(t, b)
		ticket, err := g.Submit(t.Context(), updateRecord())
		if err != nil {
			t.Fatal(err)
		}
		var released time.Time
		move := time.AfterFunc(10*time.Minute, func() {
			released = time.Now()
			s.move("t-42", events.Released, nil)
		})
		defer move.Stop()
		if _, err := g.Wait(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(released); late > time.Second {
			t.Errorf("heard %s later", late)
		}
	})
}

func TestWait_superseded_meanwhile(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		script(t, b, always(events.Asked))
		g := gated(t, b)
		ticket, err := g.Submit(t.Context(), updateRecord())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := g.Wait(t.Context(), ticket)
			done <- err
		}()
		synctest.Wait()
		newer := updateRecord()
		newer.Arguments["phone"] = events.SecretOf("1")
		if _, err := g.Submit(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		if _, ok := errors.AsType[*gate.Superseded](<-done); !ok {
			t.Errorf("got %v", err)
		}
	})
}

func TestDo_renews_its_lease_while_the_tool_runs(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Released))
		s.lease = 30 * time.Second
		_, err := gated(t, b).Do(t.Context(), updateRecord(), func(ctx context.Context, _ events.Grant) (any, error) {
			time.Sleep(95 * time.Second)
			return nil, ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		effects := s.said().effects
		if len(effects) != 10 || effects[8].Status != events.EffectRunning || effects[9].Status != events.EffectDone {
			t.Errorf("%d reports: want a renewal every 10 s for 95 s, and the outcome", len(effects))
		}
	})
}

// interruptible is a tool that waits for its context to end, and says so or not.
func interruptible(cause *error, then func(context.Context) error) gate.Tool {
	return func(ctx context.Context, _ events.Grant) (any, error) {
		<-ctx.Done()
		*cause = context.Cause(ctx)
		return nil, then(ctx)
	}
}

func TestDo_loses_its_lease(t *testing.T) {
	gaveUp := func(ctx context.Context) error { return ctx.Err() }
	finished := func(context.Context) error { return nil }
	for name, tt := range map[string]struct {
		spoil func(*scripted)
		then  func(context.Context) error
		doubt bool
	}{
		"refused":                 {func(s *scripted) { s.move("t-42", events.InDoubt, nil) }, gaveUp, true},
		"unanswered":              {func(s *scripted) { s.change(func() { s.deaf = true }) }, gaveUp, true},
		"tool_finished_after_all": {func(s *scripted) { s.move("t-42", events.InDoubt, nil) }, finished, false},
	} {
		t.Run(name, func(t *testing.T) {
			bustest.Bubble(t, func(t *testing.T) {
				b := bustest.Start(t)
				s := script(t, b, always(events.Released))
				s.lease = 30 * time.Second
				spoil := time.AfterFunc(15*time.Second, func() { tt.spoil(s) })
				defer spoil.Stop()
				var cause error
				out, err := gated(t, b).Do(t.Context(), updateRecord(), interruptible(&cause, tt.then))
				if _, ok := errors.AsType[*gate.InDoubt](cause); !ok {
					t.Errorf("the tool was told %v", cause)
				}
				if _, ok := errors.AsType[*gate.InDoubt](err); ok != tt.doubt || !out.Ran {
					t.Errorf("the caller was told %v", err)
				}
				for _, e := range s.said().effects {
					if e.Status == events.EffectFailed {
						t.Error("an interrupted tool was reported as failed")
					}
				}
			})
		})
	}
}

func TestDo_outcome_that_cannot_be_reported(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Released))
		s.deaf = true
		var tool counted
		out, err := gated(t, b).Do(t.Context(), updateRecord(), tool.run)
		if _, ok := errors.AsType[*gate.InDoubt](err); !ok || !out.Ran || out.Result.IsZero() {
			t.Errorf("got %v", err)
		}
		if n := len(s.said().effects); n < 5 {
			t.Errorf("reported %d times only", n)
		}
	})
}

func TestDo_caller_gives_up_while_it_claims(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Released))
		s.lose["claim"] = 3
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		s.asked = giveUp
		var tool counted
		out, err := gated(t, b).Do(ctx, updateRecord(), tool.run)
		if !errors.Is(err, context.Canceled) || out.Ran || tool.runs.Load() != 0 {
			t.Fatalf("got %v and %d runs", err, tool.runs.Load())
		}
		effects := s.said().effects
		if len(effects) != 1 || effects[0].Status != events.EffectFailed || effects[0].Error != "not_started" {
			t.Errorf("a claim was left to run out: %+v", effects)
		}
	})
}

func TestDo_interrupted_by_its_caller_is_in_doubt(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		s := script(t, b, always(events.Released))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var cause error
		out, err := gated(t, b).Do(ctx, updateRecord(), interruptible(&cause, func(ctx context.Context) error { return ctx.Err() }))
		if _, ok := errors.AsType[*gate.InDoubt](err); !ok || !out.Ran || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		for _, e := range s.said().effects {
			if e.Status != events.EffectRunning {
				t.Errorf("reported %s", e.Status)
			}
		}
	})
}
