package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

// stored lets a world write to a real log, guarded as a broker does.
func stored(t *testing.T, b *bus.Bus) func(bus.Message) uint64 {
	return func(m bus.Message) uint64 {
		space, s := b.Space(), m.Subject
		subject := space.Task(s.Agent, s.Task, s.Kind)
		if s.Family == "refused" {
			subject = space.Refused(s.Agent, s.Task, s.ID)
		}
		seq, err := b.Append(t.Context(), bus.Entry{Subject: subject, Envelope: m.Envelope, Guard: space.TaskAll(s.Agent, s.Task), Last: m.After})
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
}

func realWorld(t *testing.T, b *bus.Bus, seed uint64) *world {
	w := newWorld(seed)
	w.store = stored(t, b)
	return w
}

// started runs a writer until the returned function is called, which waits for its end.
func started(t *testing.T, b *bus.Bus, alarm func(error)) (*Writer, func()) {
	t.Helper()
	w := NewWriter(b, testKey, slog.New(slog.DiscardHandler), alarm)
	w.poll = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return w, stop
}

func noAlarm(t *testing.T) func(error) {
	return func(err error) { t.Errorf("alarm: %v", err) }
}

// until follows the audit until the message of the log is on record.
func until(t *testing.T, b *bus.Bus, log uint64) {
	t.Helper()
	untilAfter(t, b, 0, log)
}

// untilAfter is until, among the records behind one.
func untilAfter(t *testing.T, b *bus.Bus, after, log uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it hangs otherwise when it fails
	defer cancel()
	for r, err := range Follow(ctx, b, Filter{After: after}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Log == log {
			return
		}
	}
	t.Fatalf("message %d is not on record", log)
}

func readAll(t *testing.T, b *bus.Bus, f Filter) []events.Record {
	t.Helper()
	var all []events.Record
	for r, err := range Read(t.Context(), b, f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// exactlyOnce checks that the audit has the whole log, once, in order, and that it verifies.
func exactlyOnce(t *testing.T, b *bus.Bus, log []bus.Message) {
	t.Helper()
	until(t, b, log[len(log)-1].Seq)
	all := readAll(t, b, Filter{})
	if got, want := logs(all), sequences(log); !slices.Equal(got, want) {
		t.Errorf("recorded messages\n%v, the log has\n%v", got, want)
	}
	if report := Verify(each(all)); !report.OK() {
		t.Errorf("the audit does not verify: %v", report.Violations[0])
	}
}

func TestWriterRecordsTheLog(t *testing.T) {
	b := bustest.Start(t)
	world := realWorld(t, b, 11)
	world.run(40)
	w, _ := started(t, b, noAlarm(t))
	exactlyOnce(t, b, world.log)
	first := world.log[len(world.log)-1].Seq
	world.run(300)
	exactlyOnce(t, b, world.log)
	if got := w.Cursor(); got < first {
		t.Errorf("cursor %d, although the next batch is on record behind %d", got, first)
	}
	for _, r := range readAll(t, b, Filter{}) {
		if r.Transition != nil && r.After == 0 {
			return
		}
	}
	t.Error("no record is the first of its task")
}

func TestWriterGoesOnWhereItStopped(t *testing.T) {
	b := bustest.Start(t)
	world := realWorld(t, b, 12)
	for round := range 8 {
		_, stop := started(t, b, noAlarm(t))
		world.run(40)
		if round%2 == 0 {
			until(t, b, world.log[len(world.log)-20].Seq)
		}
		stop() // in the middle of a batch, or before its acknowledgement
	}
	started(t, b, noAlarm(t))
	exactlyOnce(t, b, world.log)
}

func TestWritersTakeTurns(t *testing.T) {
	b := bustest.Start(t)
	world := realWorld(t, b, 13)
	var stops []func()
	for range 3 {
		_, stop := started(t, b, noAlarm(t))
		stops = append(stops, stop)
	}
	for _, stop := range stops {
		world.run(60)
		until(t, b, world.log[len(world.log)-1].Seq)
		stop()
		_, next := started(t, b, noAlarm(t))
		stops = append(stops, next)
	}
	world.run(60)
	exactlyOnce(t, b, world.log)
}

// said passes on what a writer logs.
type said struct {
	slog.Handler
	by   int
	said chan<- int
}

func (s said) Enabled(context.Context, slog.Level) bool { return true }

func (s said) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "another audit writer is active" {
		s.said <- s.by
	}
	return nil
}

func TestWriterTakesOver(t *testing.T) {
	b := bustest.Start(t)
	world := realWorld(t, b, 19)
	standing := make(chan int, 100)
	var stops [2]func()
	for i := range stops {
		w := NewWriter(b, testKey, slog.New(said{slog.DiscardHandler, i, standing}), noAlarm(t))
		w.poll = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Run(ctx) })
		stops[i] = func() { cancel(); wg.Wait() }
		t.Cleanup(stops[i])
	}
	var idle int
	for found := false; !found; { // both follow the log until one finds the other writing
		world.run(5)
		until(t, b, world.log[len(world.log)-1].Seq)
		select {
		case idle = <-standing:
			found = true
		default:
		}
	}
	stops[1-idle]()
	world.run(20)
	exactlyOnce(t, b, world.log)
}

func TestWriterCountsTheFirstRefusal(t *testing.T) {
	b := bustest.Start(t)
	world := realWorld(t, b, 14)
	l := world.tasks[0]
	world.propose(l)
	refuse := func() {
		world.refuse(l, events.Refusal{Of: "cancel", ID: "once", Version: l.state.Version, Reason: events.NotPending})
	}
	refuse()
	refuse()
	kept := slices.Clone(world.log[:len(world.log)-1])
	_, stop := started(t, b, noAlarm(t))
	until(t, b, kept[len(kept)-1].Seq)
	refuse()
	world.propose(l)
	kept = append(kept, world.log[len(world.log)-1])
	until(t, b, kept[len(kept)-1].Seq)
	stop()
	refuse()
	world.propose(l)
	kept = append(kept, world.log[len(world.log)-1])
	started(t, b, noAlarm(t))
	exactlyOnce(t, b, kept)
}
