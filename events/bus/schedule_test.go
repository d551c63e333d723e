package bus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
)

// due sends the time at which each wake-up was handled.
func due(t *testing.T, w world) <-chan bus.Message {
	t.Helper()
	fired := make(chan bus.Message, 16)
	c := bus.Consumer{Stream: bus.Tasks, Name: "due", Filters: []string{w.Space().Due("*", "*")}}
	start(t, func(ctx context.Context) error {
		return w.Consume(ctx, c, func(_ context.Context, m bus.Message) error {
			fired <- m
			return nil
		})
	})
	return fired
}

func TestArm_fires(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		fired := due(t, w)
		begin := time.Now()
		last := w.append(t, state("t-1", 1, events.Asked), 0)
		timer := events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(2 * time.Hour)}
		if err := w.Arm(t.Context(), timer, last); err != nil {
			t.Fatal(err)
		}
		m := receive(t, fired)
		if got := time.Since(begin); got != 2*time.Hour {
			t.Errorf("fired after %s, want 2h", got)
		}
		if got, ok := m.Envelope.Data.(events.Timer); !ok || got.Task != "t-1" || !got.Due.Equal(timer.Due) {
			t.Errorf("delivered %+v", m.Envelope.Data)
		}
	})
}

func TestArm_replaces_the_one_before(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		fired := due(t, w)
		begin := time.Now()
		last := w.append(t, state("t-1", 1, events.Asked), 0)
		for _, after := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
			if err := w.Arm(t.Context(), events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(after)}, last); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if len(fired) != 1 {
			t.Fatalf("fired %d times, want once", len(fired))
		}
		if got := (<-fired).Stored.Sub(begin); got != 2*time.Hour {
			t.Errorf("fired after %s, want 2h", got)
		}
	})
}

// An arm that the task has overtaken must not replace the timer of those who were faster.
func TestArm_guarded(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		fired := due(t, w)
		begin := time.Now()
		first := w.append(t, state("t-1", 1, events.Asked), 0)
		last := w.append(t, state("t-1", 1, events.Reached), first)
		if err := w.Arm(t.Context(), events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(time.Hour)}, last); err != nil {
			t.Fatal(err)
		}
		late := events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(2 * time.Hour)}
		for _, stale := range []uint64{first, 0, last + 1} {
			if err := w.Arm(t.Context(), late, stale); !errors.Is(err, bus.ErrReread) {
				t.Errorf("armed behind %d while the task is at %d: got %v, want ErrReread", stale, last, err)
			}
		}
		if got := receive(t, fired).Stored.Sub(begin); got != time.Hour {
			t.Errorf("fired after %s, want 1h", got)
		}
	})
}

func TestArm_in_the_past_fires_at_once(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		fired := due(t, w)
		begin := time.Now()
		last := w.append(t, state("t-1", 1, events.Asked), 0)
		if err := w.Arm(t.Context(), events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(-time.Hour)}, last); err != nil {
			t.Fatal(err)
		}
		receive(t, fired)
		if got := time.Since(begin); got > time.Second {
			t.Errorf("fired after %s", got)
		}
	})
}

func TestArm_survives_a_restart(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		begin := time.Now()
		armed := func() {
			s, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			nc, err := s.Connect()
			if err != nil {
				t.Fatal(err)
			}
			b, err := bus.Open(t.Context(), nc, bus.Options{Instance: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			w := world{Bus: b}
			last := w.append(t, state("t-1", 1, events.Asked), 0)
			if err := b.Arm(t.Context(), events.Timer{Agent: agent, Task: "t-1", Due: begin.Add(2 * time.Hour)}, last); err != nil {
				t.Fatal(err)
			}
			nc.Close()
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
		}
		armed()
		time.Sleep(time.Hour)
		w := worldOn(t, bustest.Server(t, embedded.Options{Dir: dir}))
		receive(t, due(t, w))
		if got := time.Since(begin); got != 2*time.Hour {
			t.Errorf("fired after %s, want 2h", got)
		}
	})
}

// A wake-up that nobody took is not kept for ever, and a state is.
func TestArm_wake_up_expires(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		last := w.append(t, state("t-1", 1, events.Asked), 0)
		if err := w.Arm(t.Context(), events.Timer{Agent: agent, Task: "t-1", Due: time.Now()}, last); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s, err := w.js.Stream(t.Context(), "CLARIFY_TASKS")
		if err != nil {
			t.Fatal(err)
		}
		for subject, want := range map[string]string{w.Space().Due(agent, "t-1"): "604800s", w.Space().TaskAll(agent, "t-1"): ""} {
			m, err := s.GetLastMsgForSubject(t.Context(), subject)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Header.Get("Nats-TTL"); got != want {
				t.Errorf("%s expires after %q, want %q", m.Subject, got, want)
			}
		}
	})
}
