package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func (w world) tail(t testing.TB, from uint64, filters ...string) <-chan bus.Message {
	t.Helper()
	out := make(chan bus.Message, 4096)
	start(t, func(ctx context.Context) error {
		return w.Tail(ctx, bus.Tasks, from, filters, func(_ context.Context, m bus.Message) error {
			out <- m
			return nil
		})
	})
	return out
}

func (w world) fill(t testing.TB, prefix string, n int) {
	t.Helper()
	for i := range n {
		w.append(t, state(events.Task(fmt.Sprintf("%s-%d", prefix, i)), 1, events.Asked), 0)
	}
}

func TestTail(t *testing.T) {
	t.Run("from_a_sequence", func(t *testing.T) {
		w := newWorld(t)
		w.fill(t, "t", 5)
		tail := w.tail(t, 3)
		for want := uint64(3); want <= 5; want++ {
			m := receive(t, tail)
			if m.Seq != want || m.Pending != 5-want || m.Stored.IsZero() {
				t.Errorf("sequence %d with %d to come, want %d with %d", m.Seq, m.Pending, want, 5-want)
			}
		}
		w.fill(t, "later", 1)
		if m := receive(t, tail); m.Seq != 6 || m.Pending != 0 {
			t.Errorf("sequence %d with %d to come, want 6 with 0", m.Seq, m.Pending)
		}
	})
	t.Run("filters", func(t *testing.T) {
		w := newWorld(t)
		w.fill(t, "t", 3)
		tail := w.tail(t, 0, w.Space().TaskAll(agent, "t-0"), w.Space().TaskAll(agent, "t-2"))
		if a, b := receive(t, tail), receive(t, tail); a.Subject.Task != "t-0" || b.Subject.Task != "t-2" || b.Pending != 0 {
			t.Errorf("got %s and %s with %d to come", a.Subject.Task, b.Subject.Task, b.Pending)
		}
	})
	t.Run("handlers_error_ends_it", func(t *testing.T) {
		w := newWorld(t)
		w.fill(t, "t", 2)
		seen := 0
		err := w.Tail(t.Context(), bus.Tasks, 0, nil, func(context.Context, bus.Message) error {
			seen++
			return errAtWork
		})
		if !errors.Is(err, errAtWork) || seen != 1 {
			t.Errorf("got %v after %d messages", err, seen)
		}
	})
	t.Run("unreadable_is_told", func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.js.Publish(t.Context(), w.Space().Task(agent, "t-1", events.Asked), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		w.fill(t, "t", 1)
		tail := w.tail(t, 0)
		if m := receive(t, tail); m.Problem == nil || m.Envelope.Data != nil || m.Subject.Task != "t-1" {
			t.Errorf("problem %v of %s", m.Problem, m.Subject.Task)
		}
		if m := receive(t, tail); m.Problem != nil {
			t.Errorf("the next one has problem %v", m.Problem)
		}
	})
	t.Run("without_streams", func(t *testing.T) {
		b := bustest.Open(t, bustest.Server(t, embedded.Options{}), bus.Options{})
		if err := b.Tail(t.Context(), bus.Tasks, 0, nil, nil); err == nil {
			t.Error("it tails a stream that is not there")
		}
	})
}

func TestTail_lost_consumer(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(t, "t", 3)
		tail := w.tail(t, 0)
		synctest.Wait()
		s, err := w.js.Stream(t.Context(), "CLARIFY_TASKS")
		if err != nil {
			t.Fatal(err)
		}
		for name := range s.ConsumerNames(t.Context()).Name() {
			if err := s.DeleteConsumer(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		w.fill(t, "later", 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []uint64
		for len(tail) > 0 {
			got = append(got, (<-tail).Seq)
		}
		if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A tail whose consumer is gone and cannot be made again for a while goes on behind what it has handled.
func TestTail_kept_from_its_consumer(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(t, "t", 3)
		tail := w.tail(t, 0)
		synctest.Wait()
		s, err := w.js.Stream(t.Context(), "CLARIFY_TASKS")
		if err != nil {
			t.Fatal(err)
		}
		var own []string
		for name := range s.ConsumerNames(t.Context()).Name() {
			own = append(own, name)
		}
		if err := w.EnsurePool(t.Context(), agent); err != nil { // takes the only place there will be
			t.Fatal(err)
		}
		drift(t, w, "CLARIFY_TASKS", func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 })
		for _, name := range own {
			if err := s.DeleteConsumer(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		w.fill(t, "later", 2)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(tail) != 3 {
			t.Fatalf("%d messages without a consumer, want the 3 from before", len(tail))
		}
		drift(t, w, "CLARIFY_TASKS", func(c *jetstream.StreamConfig) { c.MaxConsumers = 10 })
		time.Sleep(time.Minute)
		synctest.Wait()
		var got []uint64
		for len(tail) > 0 {
			got = append(got, (<-tail).Seq)
		}
		if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A tail over a restart of the server misses nothing and repeats nothing.
func TestTail_reconnects(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, err := bus.Open(t.Context(), nc, bus.Options{Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := world{Bus: b}
	w.fill(t, "before", 20)
	tail := w.tail(t, 0)
	for want := uint64(1); want <= 10; want++ {
		receive(t, tail)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	s, err = embedded.Start(t.Context(), embedded.Options{Dir: dir, Host: "127.0.0.1", Port: portOf(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	for i := range 5 { // an append whose acknowledgement was lost is stored: read before the next
		e := w.entry(state(events.Task(fmt.Sprintf("after-%d", i)), 1, events.Asked), 0)
		for {
			_, err := w.Append(t.Context(), e)
			if err == nil {
				break
			}
			if _, err := w.Last(t.Context(), bus.Tasks, e.Guard); err == nil {
				break
			}
		}
	}
	for want := uint64(11); want <= 25; want++ {
		if m := receive(t, tail); m.Seq != want {
			t.Fatalf("got sequence %d, want %d", m.Seq, want)
		}
	}
}
