package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the bus warns of what these tests do to it
	m.Run()
}

var intake = bus.Consumer{Stream: bus.Candidates, Name: "intake"}

func (w world) consume(t testing.TB, c bus.Consumer, h bus.Handler) (stop func() error) {
	t.Helper()
	return start(t, func(ctx context.Context) error { return w.Consume(ctx, c, h) })
}

// letters collects dead letters.
func (w world) letters(t testing.TB) <-chan bus.DeadLetter {
	t.Helper()
	out := make(chan bus.DeadLetter, 16)
	start(t, func(ctx context.Context) error {
		return w.DeadLetters(ctx, 0, func(d bus.DeadLetter) error {
			out <- d
			return nil
		})
	})
	return out
}

func TestConsume_redelivers(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.propose(t, "t-1")
		begin := time.Now()
		var at []time.Duration
		var deliveries []int
		handled := make(chan struct{})
		w.consume(t, intake, func(_ context.Context, m bus.Message) error {
			at, deliveries = append(at, time.Since(begin)), append(deliveries, m.Deliveries)
			switch len(at) {
			case 1:
				return bus.Later(30*time.Minute, errAtWork)
			case 2:
				return bus.Later(time.Hour, errAtWork)
			}
			close(handled)
			return nil
		})
		receive(t, handled)
		if diff := cmp.Diff([]time.Duration{0, 30 * time.Minute, 90 * time.Minute}, at); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{1, 2, 3}, deliveries); diff != "" {
			t.Error(diff)
		}
		synctest.Wait()
		if got := count(t, w, "CLARIFY_CANDIDATES"); got != 0 {
			t.Errorf("%d messages are left in the queue", got)
		}
	})
}

// A handler may take far longer than AckWait without the message going to anybody else, and messages behind it do not wait
// in this process.
func TestConsume_long_handler(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for _, task := range []events.Task{"long-1", "long-2", "next", "last"} {
			w.propose(t, task)
		}
		var mu sync.Mutex
		var got []string
		done := make(chan struct{}, 4)
		handler := func(who string) bus.Handler {
			return func(_ context.Context, m bus.Message) error {
				mu.Lock()
				got = append(got, fmt.Sprintf("%s %s %d", who, m.Subject.Task, m.Deliveries))
				mu.Unlock()
				if strings.HasPrefix(string(m.Subject.Task), "long") {
					time.Sleep(time.Hour)
				}
				done <- struct{}{}
				return nil
			}
		}
		two, one := intake, intake
		two.Workers = 2
		w.consume(t, two, handler("first"))
		synctest.Wait()
		w.consume(t, one, handler("second"))
		for range 4 {
			receive(t, done)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"first long-1 1", "first long-2 1", "second last 1", "second next 1"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConsume_failures_back_off_and_end(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		seq := w.propose(t, "t-1")
		var at []time.Time
		w.consume(t, intake, func(context.Context, bus.Message) error {
			at = append(at, time.Now())
			return errors.New("always")
		})
		dead := receive(t, w.letters(t))
		want := bus.DeadLetter{Stream: bus.Candidates, Consumer: "intake", Seq: seq, Deliveries: 20, Reason: "failed too often", Advisory: 1}
		dead.At = time.Time{}
		if diff := cmp.Diff(want, dead); diff != "" {
			t.Error(diff)
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < 100*time.Millisecond || gap > time.Minute+time.Second {
				t.Errorf("delivery %d came after %s", i+1, gap)
			}
		}
		if first, last := at[1].Sub(at[0]), at[19].Sub(at[18]); last < 100*first {
			t.Errorf("delays went from %s to %s: they must grow", first, last)
		}
		if got := count(t, w, "CLARIFY_CANDIDATES"); got != 0 {
			t.Errorf("%d messages are left in the queue", got)
		}
	})
}

// What only could not be done now is never given up.
func TestConsume_unavailable_never_ends(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.propose(t, "t-1")
		tries := 0
		done := make(chan struct{})
		w.consume(t, intake, func(context.Context, bus.Message) error {
			if tries++; tries < 50 {
				return fmt.Errorf("apply: %w", bus.ErrReread)
			}
			close(done)
			return nil
		})
		receive(t, done)
	})
}

func TestConsume_poison(t *testing.T) {
	w := newWorld(t)
	letters := w.letters(t)
	seq := w.propose(t, "t-1")
	w.consume(t, intake, func(context.Context, bus.Message) error {
		return fmt.Errorf("intake: %w", bus.Poison("no such thing"))
	})
	dead := receive(t, letters)
	dead.At = time.Time{}
	want := bus.DeadLetter{Stream: bus.Candidates, Consumer: "intake", Seq: seq, Deliveries: 1, Reason: "no such thing", Advisory: 1}
	if diff := cmp.Diff(want, dead); diff != "" {
		t.Error(diff)
	}
	if got := count(t, w, "CLARIFY_CANDIDATES"); got != 0 {
		t.Errorf("%d messages are left in the queue", got)
	}
}

func TestConsume_lost_consumer(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		got := make(chan events.Task, 4)
		w.consume(t, intake, func(_ context.Context, m bus.Message) error {
			got <- m.Subject.Task
			return nil
		})
		w.propose(t, "before")
		if task := receive(t, got); task != "before" {
			t.Fatalf("got %s", task)
		}
		synctest.Wait()
		if err := w.js.DeleteConsumer(t.Context(), "CLARIFY_CANDIDATES", "intake"); err != nil {
			t.Fatal(err)
		}
		w.propose(t, "after")
		if task := receive(t, got); task != "after" {
			t.Errorf("got %s", task)
		}
	})
}

func TestConsume_reconnects(t *testing.T) {
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
	got := make(chan events.Task, 4)
	w.consume(t, intake, func(_ context.Context, m bus.Message) error {
		got <- m.Subject.Task
		return nil
	})
	w.propose(t, "before")
	receive(t, got)
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
	w.propose(t, "after")
	for receive(t, got) != "after" { // "before" may come again: its acknowledgement may have been lost
	}
}

func TestConsume_ends_when_the_handlers_have(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.propose(t, "t-1")
		begun := make(chan struct{})
		var ended atomic.Bool
		stop := w.consume(t, intake, func(ctx context.Context, _ bus.Message) error {
			close(begun)
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended.Store(true)
			return errAtWork
		})
		receive(t, begun)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !ended.Load() {
			t.Error("Consume returned before its handler")
		}
		// The message goes to the next process at once, not after AckWait or the delay of a failure.
		begin := time.Now()
		again := make(chan int, 1)
		w.consume(t, intake, func(_ context.Context, m bus.Message) error {
			again <- m.Deliveries
			return nil
		})
		if n := receive(t, again); n != 2 || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("delivery %d came after %s", n, time.Since(begin))
		}
	})
}

func TestConsume_workers(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		const tasks, workers = 20, 4
		for i := range tasks {
			w.propose(t, events.Task(fmt.Sprintf("t-%d", i)))
		}
		var busy, most atomic.Int64
		done := make(chan struct{}, tasks)
		c := intake
		c.Workers = workers
		begin := time.Now()
		w.consume(t, c, func(context.Context, bus.Message) error {
			most.Store(max(most.Load(), busy.Add(1)))
			time.Sleep(time.Second)
			busy.Add(-1)
			done <- struct{}{}
			return nil
		})
		for range tasks {
			receive(t, done)
		}
		if most.Load() != workers || time.Since(begin) != tasks/workers*time.Second {
			t.Errorf("%d at once, %s in all; want %d and %s", most.Load(), time.Since(begin), workers, tasks/workers*time.Second)
		}
	})
}

func TestConsume_bind_waits(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.append(t, state("t-1", 1, events.Released), 0)
		pool := w.Pool(agent)
		pool.Bind = true
		got := make(chan events.Task, 1)
		w.consume(t, pool, func(_ context.Context, m bus.Message) error {
			got <- m.Subject.Task
			return nil
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("a consumer that may only be used was made")
		}
		if err := w.EnsurePool(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		receive(t, got)
		if waited := time.Since(begin); waited > 10*time.Second {
			t.Errorf("the pool was noticed after %s", waited)
		}
	})
}

func TestConsume_without_streams(t *testing.T) {
	b := bustest.Open(t, bustest.Server(t, embedded.Options{}), bus.Options{})
	err := b.Consume(t.Context(), intake, func(context.Context, bus.Message) error { return nil })
	if err == nil {
		t.Fatal("it consumes a stream that is not there")
	}
	t.Log(err)
}
