package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

const (
	writers = 12
	rounds  = 60
)

// race has all writers append to one task at once, each by another connection, and returns how many were stored.
func race(t *testing.T, w world, append func(writer int, s events.State, last uint64) error) (most int) {
	t.Helper()
	kinds := []events.Kind{events.Answered, events.TimedOut, events.Cancelled, events.Undelivered}
	for round := range rounds {
		task := events.Task(fmt.Sprintf("t-%d", round))
		last := w.append(t, state(task, 1, events.Asked), 0)
		results := make([]error, writers)
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for i := range writers {
			wg.Go(func() {
				<-gate
				results[i] = append(i, state(task, 1, kinds[i%len(kinds)]), last)
			})
		}
		close(gate)
		wg.Wait()
		stored := 0
		for _, err := range results {
			if err == nil {
				stored++
			} else if !errors.Is(err, bus.ErrReread) {
				t.Fatal(err)
			}
		}
		if stored == 0 {
			t.Fatalf("round %d: nobody was first", round)
		}
		most = max(most, stored)
	}
	return most
}

func TestAppend_race(t *testing.T) {
	t.Run("one_winner", func(t *testing.T) {
		w := newWorld(t)
		buses := make([]world, writers)
		for i := range buses {
			buses[i] = worldOn(t, w.server)
		}
		most := race(t, w, func(i int, s events.State, last uint64) error {
			_, err := buses[i].Append(t.Context(), buses[i].entry(s, last))
			return err
		})
		if most != 1 {
			t.Errorf("%d of %d writers won one race", most, writers)
		}
		if got, want := count(t, w, "CLARIFY_TASKS"), uint64(2*rounds); got != want {
			t.Errorf("%d messages in the log, want %d", got, want)
		}
	})
	// What the guard is worth: the same race by writers without it must have more than one winner, or the race is none.
	t.Run("many_winners_without_the_guard", func(t *testing.T) {
		w := newWorld(t)
		most := race(t, w, func(_ int, s events.State, _ uint64) error {
			body, err := events.Seal(events.Envelope{Source: "/test", Data: s})
			if err != nil {
				return err
			}
			m := nats.NewMsg(w.Space().Task(s.Agent, s.Task, s.Kind))
			m.Header.Set("Content-Type", events.ContentType)
			m.Data = body
			_, err = w.js.PublishMsg(t.Context(), m)
			return err
		})
		if most < 2 {
			t.Errorf("%d writers won a race without a guard", most)
		}
	})
}

func TestAppend(t *testing.T) {
	w := newWorld(t)
	space := w.Space()
	first := w.append(t, state("t-1", 1, events.Asked), 0)

	t.Run("stale", func(t *testing.T) {
		_, err := w.Append(t.Context(), w.entry(state("t-1", 2, events.Asked), 0))
		if !errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want ErrReread", err)
		}
	})
	t.Run("refusal_does_not_move_the_task", func(t *testing.T) {
		refusal := bus.Entry{
			Subject:  space.Refused(agent, "t-1", "submission-1"),
			Envelope: events.Envelope{Data: events.Refusal{Agent: agent, Task: "t-1", Version: 1, Of: "answer", ID: "submission-1", Reason: events.NotAllowed}},
			Guard:    space.TaskAll(agent, "t-1"), Last: first,
		}
		for range 2 {
			if _, err := w.Append(t.Context(), refusal); err != nil {
				t.Fatal(err)
			}
		}
		refusal.Last++
		if _, err := w.Append(t.Context(), refusal); !errors.Is(err, bus.ErrReread) {
			t.Errorf("a refusal behind a wrong sequence: got %v, want ErrReread", err)
		}
	})
	t.Run("ended_context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.Append(ctx, w.entry(state("t-1", 1, events.Reached), first))
		if !errors.Is(err, context.Canceled) || errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want the context's error alone", err)
		}
	})
	t.Run("refused_before_it_is_sent", func(t *testing.T) {
		otherGuard, noGuard, expiring, foreign := w.entry(state("t-1", 1, events.Reached), first), w.entry(state("t-1", 1, events.Reached), first),
			w.entry(state("t-1", 1, events.Reached), first), w.entry(state("t-1", 1, events.Reached), first)
		otherGuard.Guard = space.Task(agent, "t-1", events.Asked)
		noGuard.Guard = ""
		expiring.TTL = time.Hour
		foreign.Subject = "elsewhere.task.crm-bot.t-1.asked"
		for name, e := range map[string]bus.Entry{"other_guard": otherGuard, "no_guard": noGuard, "expiring_state": expiring, "foreign_subject": foreign} {
			if _, err := w.Append(t.Context(), e); err == nil || errors.Is(err, bus.ErrReread) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("too_large", func(t *testing.T) {
		s := state("t-1", 1, events.Reached)
		s.Note = string(make([]byte, 2<<20))
		if _, err := w.Append(t.Context(), w.entry(s, first)); !errors.Is(err, bus.ErrTooLarge) || errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	})
	m, err := w.Last(t.Context(), bus.Tasks, space.TaskAll(agent, "t-1"))
	if err != nil || m.Seq != first {
		t.Errorf("the task stands at %d (%v), want %d: refused writes must not move it", m.Seq, err, first)
	}
}

func TestAppendAll(t *testing.T) {
	w := newWorld(t)
	entries := make([]bus.Entry, 3)
	for i := range entries {
		entries[i] = w.entry(state(events.Task(fmt.Sprintf("t-%d", i)), 1, events.Asked), 0)
	}
	before := count(t, w, "CLARIFY_TASKS")

	t.Run("nothing_when_one_is_stale", func(t *testing.T) {
		stale := append([]bus.Entry{}, entries...)
		stale[1].Last = 99
		if _, err := w.AppendAll(t.Context(), stale); !errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want ErrReread", err)
		}
		if got := count(t, w, "CLARIFY_TASKS"); got != before {
			t.Errorf("%d messages were stored", got-before)
		}
	})
	t.Run("refuses_one_task_twice", func(t *testing.T) {
		twice := []bus.Entry{entries[0], w.entry(state("t-0", 1, events.Reached), 0)}
		if _, err := w.AppendAll(t.Context(), twice); err == nil || errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want a programming error", err)
		}
		if got := count(t, w, "CLARIFY_TASKS"); got != before {
			t.Errorf("%d messages were stored", got-before)
		}
	})
	t.Run("all", func(t *testing.T) {
		seqs, err := w.AppendAll(t.Context(), entries)
		if err != nil {
			t.Fatal(err)
		}
		var stored []uint64
		for _, e := range entries {
			m, err := w.Last(t.Context(), bus.Tasks, e.Guard)
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, m.Seq)
		}
		if diff := cmp.Diff(stored, seqs); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("again_is_stale", func(t *testing.T) {
		if _, err := w.AppendAll(t.Context(), entries); !errors.Is(err, bus.ErrReread) {
			t.Errorf("got %v, want ErrReread", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if seqs, err := w.AppendAll(t.Context(), nil); err != nil || len(seqs) != 0 {
			t.Errorf("got %v, %v", seqs, err)
		}
	})
}

func TestAppendAll_concurrent(t *testing.T) {
	w := newWorld(t)
	const batches, size = 8, 16
	errs := make([]error, batches)
	var wg sync.WaitGroup
	for i := range batches {
		wg.Go(func() { _, errs[i] = w.AppendAll(t.Context(), w.batch(i, size)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := count(t, w, "CLARIFY_TASKS"); got != batches*size {
		t.Errorf("%d messages in the log, want %d", got, batches*size)
	}
}

func (w world) batch(i, size int) []bus.Entry {
	entries := make([]bus.Entry, size)
	for j := range entries {
		entries[j] = w.entry(big(events.Task(fmt.Sprintf("t-%d-%d", i, j))), 0)
	}
	return entries
}

func TestAppendAudit(t *testing.T) {
	b := bustest.Start(t)
	record := func(seq uint64) events.Envelope {
		return events.Envelope{Data: events.Record{Seq: seq, Agent: agent, Task: "t-1"}}
	}
	last, err := b.AppendAudit(t.Context(), 0, []events.Envelope{record(1)})
	if err != nil || last != 1 {
		t.Fatalf("one record: got %d, %v", last, err)
	}
	if last, err = b.AppendAudit(t.Context(), last, []events.Envelope{record(2), record(3), record(4)}); err != nil || last != 4 {
		t.Fatalf("three records: got %d, %v", last, err)
	}
	for _, batch := range [][]events.Envelope{{record(3)}, {record(3), record(4)}} {
		if _, err := b.AppendAudit(t.Context(), 2, batch); !errors.Is(err, bus.ErrReread) {
			t.Errorf("a second writer: got %v, want ErrReread", err)
		}
	}
	if got, err := b.LastSeq(t.Context(), bus.Audit); err != nil || got != 4 {
		t.Errorf("the audit ends with %d (%v), want 4", got, err)
	}
	if _, err := b.AppendAudit(t.Context(), 4, []events.Envelope{{Data: candidate("t-1")}}); err == nil {
		t.Error("a candidate was recorded in the audit")
	}
}
