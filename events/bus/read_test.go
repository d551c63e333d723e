package bus_test

import (
	"errors"
	"math"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestLast(t *testing.T) {
	w := newWorld(t)
	all := w.Space().TaskAll(agent, "t-1")
	t.Run("not_found", func(t *testing.T) {
		if _, err := w.Last(t.Context(), bus.Tasks, all); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("missing_stream_is_not_absence", func(t *testing.T) {
		if _, err := w.Last(t.Context(), "NOWHERE", all); err == nil || errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v, want another error than ErrNotFound", err)
		}
	})
	first := w.append(t, state("t-1", 1, events.Asked), 0)
	second := w.append(t, state("t-1", 2, events.Reached), first)
	w.append(t, state("t-11", 7, events.Asked), 0)
	t.Run("found", func(t *testing.T) {
		m, err := w.Last(t.Context(), bus.Tasks, all)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := m.Envelope.Data.(events.State)
		if !ok || s.Version != 2 || m.Seq != second || m.Subject.Kind != events.Reached || m.Stored.IsZero() {
			t.Errorf("got %+v at %d", m.Subject, m.Seq)
		}
		if m.Envelope.Source != "/clarify/test" || m.Envelope.ID == "" || m.Envelope.Time.IsZero() {
			t.Errorf("envelope without its origin: %+v", m.Envelope)
		}
	})
	t.Run("first", func(t *testing.T) {
		if m, err := w.First(t.Context(), bus.Tasks, all); err != nil || m.Seq != first {
			t.Errorf("got %d (%v), want %d", m.Seq, err, first)
		}
		if _, err := w.First(t.Context(), bus.Tasks, w.Space().TaskAll(agent, "t-9")); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		ack, err := w.js.Publish(t.Context(), w.Space().Task(agent, "t-2", events.Asked), []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.Last(t.Context(), bus.Tasks, w.Space().TaskAll(agent, "t-2"))
		if err == nil || errors.Is(err, bus.ErrNotFound) || m.Seq != ack.Sequence {
			t.Errorf("got %v at %d, want another error than ErrNotFound at %d", err, m.Seq, ack.Sequence)
		}
	})
	t.Run("leader_only", func(t *testing.T) {
		asked := make(chan *nats.Msg, 16)
		sub, err := w.nc.ChanSubscribe("$JS.API.DIRECT.>", asked)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Last(t.Context(), bus.Tasks, all); err != nil {
			t.Fatal(err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 0 {
			t.Error("it was read by a direct get, which can be stale")
		}
	})
}

func TestPurge(t *testing.T) {
	w := newWorld(t)
	space := w.Space()
	first := w.append(t, state("t-1", 1, events.Asked), 0)
	second := w.append(t, state("t-1", 1, events.Reached), first)
	third := w.append(t, state("t-1", 1, events.Answered), second)
	other := w.append(t, state("t-2", 1, events.Asked), 0)

	t.Run("refuses_more_than_one_task", func(t *testing.T) {
		for _, subject := range []string{space.TaskAll(agent, "*"), "clarify.task.>", ">", "clarify.task.*.t-1.*", ""} {
			if err := w.Purge(t.Context(), bus.Tasks, subject, third); err == nil {
				t.Errorf("purged %q", subject)
			}
		}
	})
	t.Run("refuses_what_the_server_takes_for_all", func(t *testing.T) {
		for _, upTo := range []uint64{0, math.MaxUint64} {
			if err := w.Purge(t.Context(), bus.Tasks, space.TaskAll(agent, "t-1"), upTo); err == nil {
				t.Errorf("purged up to %d", upTo)
			}
		}
	})
	if err := w.Purge(t.Context(), bus.Tasks, space.TaskAll(agent, "t-1"), second); err != nil {
		t.Fatal(err)
	}
	var left []uint64
	tail := w.tail(t, 0)
	for m := receive(t, tail); ; m = receive(t, tail) {
		left = append(left, m.Seq)
		if m.Pending == 0 {
			break
		}
	}
	if diff := cmp.Diff([]uint64{third, other}, left); diff != "" {
		t.Error(diff)
	}
}

func TestPublish(t *testing.T) {
	w := newWorld(t)
	t.Run("full", func(t *testing.T) {
		drift(t, w, "CLARIFY_QUESTIONS", func(c *jetstream.StreamConfig) { c.MaxBytes = 100 })
		q := events.Question{Agent: agent, Task: "t-1", Version: 1, Channel: "slack", Phase: events.PhaseAsk}
		subject := w.Space().Question(events.Place{Channel: "slack", Agent: agent, Task: "t-1", Version: 1})
		if _, err := w.Publish(t.Context(), subject, events.Envelope{Data: q}); !errors.Is(err, bus.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		verdict := w.Space().Verdict(events.Place{Channel: "slack", Agent: agent, Task: "t-1", Version: 1}) // no stream has it
		data := events.Verdict{Agent: agent, Task: "t-1", Version: 1}
		if _, err := w.Publish(t.Context(), verdict, events.Envelope{Data: data}); !errors.Is(err, bus.ErrNobody) {
			t.Errorf("got %v, want ErrNobody", err)
		}
	})
	t.Run("too_large", func(t *testing.T) {
		c := candidate("t-1")
		c.Arguments["blob"] = events.SecretOf(string(make([]byte, 300<<10)))
		_, err := w.Publish(t.Context(), w.Space().Candidate(agent, "t-1"), events.Envelope{Data: c})
		if !errors.Is(err, bus.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	})
	t.Run("not_a_subject", func(t *testing.T) {
		if _, err := w.Publish(t.Context(), "clarify.candidate.a.*", events.Envelope{Data: candidate("t-1")}); err == nil {
			t.Error("a wildcard was published on")
		}
	})
}
