package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Filter chooses records. The zero Filter chooses all, which is what [Verify] needs.
type Filter struct {
	Agent events.Agent
	Task  events.Task // of Agent, which must then be given
	Since time.Time   // by the server's time of the message
	After uint64      // only records with a higher Seq
	Kinds []events.Kind
	// Refused chooses refusals beside the kinds; without Kinds they are chosen anyway.
	Refused Refusals
}

// Refusals says whether refusals are chosen when a Filter names kinds.
type Refusals string

// Whether refusals are chosen.
const (
	WithRefusals Refusals = "with"
	OnlyRefusals Refusals = "only"
)

// Validate says what a Filter cannot mean.
func (f Filter) Validate() error {
	if f.Task != "" && f.Agent == "" {
		return fmt.Errorf("task: is given without its agent; task ids are only unique for one agent")
	}
	for _, k := range f.Kinds {
		if !slices.Contains(events.Kinds(), k) {
			return fmt.Errorf("kind: %.40q is unknown; use one of %v", k, events.Kinds())
		}
	}
	switch f.Refused {
	case "", WithRefusals, OnlyRefusals:
		return nil
	}
	return fmt.Errorf("refused: %.40q is unknown; use with or only", f.Refused)
}

func (f Filter) subject(s events.Space) string {
	agent, task := f.Agent, f.Task
	if agent == "" {
		agent = "*"
	}
	if task == "" {
		task = "*"
	}
	return s.Audit(agent, task)
}

func (f Filter) matches(r events.Record) bool {
	switch {
	case r.Seq <= f.After || r.At.Before(f.Since):
		return false
	case f.Refused == OnlyRefusals:
		return r.Refusal != nil
	case len(f.Kinds) == 0:
		return true
	case r.Refusal != nil:
		return f.Refused == WithRefusals
	}
	return r.Transition != nil && slices.Contains(f.Kinds, r.Transition.Kind)
}

// Read returns the records that are there now, oldest first. An error ends them. Records of one agent or task do not stand
// in a chain.
func Read(ctx context.Context, b *bus.Bus, f Filter) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		if err := f.Validate(); err != nil {
			yield(events.Record{}, fmt.Errorf("read the audit: %w", err))
			return
		}
		end, err := b.Last(ctx, bus.Audit, f.subject(b.Space()))
		if errors.Is(err, bus.ErrNotFound) {
			return
		}
		if err != nil {
			yield(events.Record{}, fmt.Errorf("read the audit: %w", err))
			return
		}
		for r, err := range tail(ctx, b, f, end.Seq) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// Follow returns the records that are there and then those that come, until the context ends.
func Follow(ctx context.Context, b *bus.Bus, f Filter) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		if err := f.Validate(); err != nil {
			yield(events.Record{}, fmt.Errorf("follow the audit: %w", err))
			return
		}
		for r, err := range tail(ctx, b, f, 0) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// Show returns the records of one task, oldest first.
func Show(ctx context.Context, b *bus.Bus, agent events.Agent, task events.Task) ([]events.Record, error) {
	var all []events.Record
	for r, err := range Read(ctx, b, Filter{Agent: agent, Task: task}) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

var errEnd = errors.New("read to the end")

// tail reads up to and including the sequence end of the stream, or without end when it is 0. A record's Seq is its sequence
// in the stream, so reading starts where the filter says.
func tail(ctx context.Context, b *bus.Bus, f Filter, end uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		feed := make(chan bus.Message)
		var failed error
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(feed)
			failed = b.Tail(ctx, bus.Audit, f.After+1, []string{f.subject(b.Space())}, func(ctx context.Context, m bus.Message) error {
				select {
				case feed <- m:
				case <-ctx.Done():
					return ctx.Err()
				}
				if end > 0 && m.Seq >= end {
					return errEnd
				}
				return nil
			})
		})
		defer wg.Wait()
		defer cancel()
		for m := range feed {
			r, err := record(m)
			if err != nil || f.matches(r) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
		if failed != nil && !errors.Is(failed, errEnd) && ctx.Err() == nil {
			yield(events.Record{}, fmt.Errorf("read the audit: %w", failed))
		} else if end > 0 && ctx.Err() != nil {
			yield(events.Record{}, fmt.Errorf("read the audit: %w", context.Cause(ctx)))
		}
	}
}

func record(m bus.Message) (events.Record, error) {
	r, ok := m.Envelope.Data.(events.Record)
	switch {
	case m.Problem != nil:
		return r, fmt.Errorf("message %d of the audit: %w", m.Seq, m.Problem)
	case !ok:
		return r, fmt.Errorf("message %d of the audit is no record", m.Seq)
	case r.Seq != m.Seq:
		return r, fmt.Errorf("message %d of the audit says it is record %d", m.Seq, r.Seq)
	}
	return r, nil
}
