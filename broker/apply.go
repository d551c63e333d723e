package broker

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// refusalTTL is how long a refusal of a task nobody knows is kept: there is no task whose retention would remove it.
const refusalTTL = 24 * time.Hour

// Ledger is the one place that appends to tasks.
type Ledger struct {
	bus   *bus.Bus
	log   *committer
	cache *cache
	seed  maphash.Seed
	locks [256]chan struct{} // one writer per task in this process: two would only make each other read again
}

// NewLedger returns the ledger of a bus.
func NewLedger(b *bus.Bus) *Ledger {
	l := &Ledger{bus: b, log: newCommitter(b), cache: newCache(), seed: maphash.MakeSeed()}
	for i := range l.locks {
		l.locks[i] = make(chan struct{}, 1)
	}
	return l
}

// Key names a task.
type Key struct {
	Agent events.Agent
	Task  events.Task
}

// Result is what has become of an Apply: the task as it is now, whether this call moved it, and the refusal that was
// recorded, if that is what it came to.
type Result struct {
	Snapshot
	Moved   bool
	Refusal *events.Refusal
}

// Apply reads the task, asks fn what to do, and appends that under the guard of what was read, again and again until an
// append is acknowledged or there is nothing to append. fn must be pure but for the moment it is given; it is told of a
// cached state first, and what it says then only counts when the guard holds. The error is the context's, or one that no
// other try would mend, such as bus.ErrTooLarge.
func (l *Ledger) Apply(ctx context.Context, k Key, fn func(Snapshot, time.Time) Change) (Result, error) {
	return l.apply(ctx, k, func() (Snapshot, bool) { return l.cache.get(k) }, fn)
}

// Begin is Apply for what is probably the first that is heard of a task: a task this replica knows nothing of is taken to be
// new, and the guard decides.
func (l *Ledger) Begin(ctx context.Context, k Key, fn func(Snapshot, time.Time) Change) (Result, error) {
	return l.apply(ctx, k, func() (Snapshot, bool) {
		s, _ := l.cache.get(k)
		return s, true
	}, fn)
}

func (l *Ledger) apply(ctx context.Context, k Key, guess func() (Snapshot, bool), fn func(Snapshot, time.Time) Change) (Result, error) {
	lock := l.locks[maphash.Comparable(l.seed, k)%uint64(len(l.locks))]
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for the task's other writers: %w", ctx.Err())
	}
	snap, cached := guess()
	for try := 0; ; try++ {
		if !cached {
			var err error
			if snap, err = l.Read(ctx, k); err != nil {
				if !bus.Unavailable(err) {
					return Result{}, fmt.Errorf("read task: %w", err)
				}
				if err := pause(ctx, try, err); err != nil {
					return Result{}, fmt.Errorf("read task: %w", err)
				}
				continue
			}
		}
		change := fn(snap, time.Now().UTC())
		if change.Next == nil && cached {
			cached = false // a refusal, or that there is nothing to do, is only said after a leader's read
			continue
		}
		res, err := l.append(ctx, k, snap, change)
		if err == nil {
			return res, nil
		}
		l.cache.drop(k)
		cached = false
		if !bus.Unavailable(err) {
			return Result{}, fmt.Errorf("append to task: %w", err)
		}
		if err := pause(ctx, try, err); err != nil {
			return Result{}, fmt.Errorf("append to task: %w", err)
		}
	}
}

// ReadAtLeast reads a task as it was at a sequence of the log, or later: what this replica last wrote of it will do if it is
// new enough. 0 is the latest there is.
func (l *Ledger) ReadAtLeast(ctx context.Context, k Key, seq uint64) (Snapshot, error) {
	if s, ok := l.cache.get(k); ok && seq > 0 && s.Seq >= seq {
		return s, nil
	}
	return l.Read(ctx, k)
}

// Read reads a task from the stream's leader. A task that is not there is the zero Snapshot, which only a guarded append
// confirms.
func (l *Ledger) Read(ctx context.Context, k Key) (Snapshot, error) {
	m, err := l.bus.Last(ctx, bus.Tasks, l.bus.Space().TaskAll(k.Agent, k.Task))
	if errors.Is(err, bus.ErrNotFound) {
		return Snapshot{}, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	s, ok := m.Envelope.Data.(events.State)
	if !ok {
		return Snapshot{}, fmt.Errorf("message %d of the log is not a state", m.Seq)
	}
	return Snapshot{State: s, Seq: m.Seq}, nil
}

func (l *Ledger) append(ctx context.Context, k Key, s Snapshot, c Change) (Result, error) {
	space := l.bus.Space()
	entry := bus.Entry{Guard: space.TaskAll(k.Agent, k.Task), Last: s.Seq}
	switch {
	case c.Next != nil:
		entry.Subject = space.Task(k.Agent, k.Task, c.Next.Kind)
		entry.Envelope = events.Envelope{Source: l.bus.Source(), Time: c.Next.At, Data: *c.Next}
	case c.Refusal != nil && recorded(c.Refusal.Of):
		entry.Subject = space.Refused(k.Agent, k.Task, c.Refusal.ID)
		entry.Envelope = events.Envelope{Source: l.bus.Source(), Time: c.Refusal.At, Data: *c.Refusal}
		if !s.Known() {
			entry.TTL = refusalTTL
		}
	default:
		return Result{Snapshot: s, Refusal: c.Refusal}, nil
	}
	seq, err := l.log.append(ctx, entry)
	if err != nil {
		return Result{}, err
	}
	if c.Next == nil {
		return Result{Snapshot: s, Refusal: c.Refusal}, nil
	}
	now := Snapshot{State: *c.Next, Seq: seq}
	l.cache.put(k, now)
	return Result{Snapshot: now, Moved: true}, nil
}

// recorded says which refusals are part of the log: those of what people and agents stored. Claims and reports are answered
// on the spot, to whoever asked.
func recorded(of string) bool {
	return of == "answer" || of == "approval" || of == "candidate" || of == "cancel"
}

// Refused returns the refusal that is on record for a submission or candidate, if any. Only the first one counts.
func (l *Ledger) Refused(ctx context.Context, k Key, id string) (*events.Refusal, error) {
	m, err := l.bus.First(ctx, bus.Tasks, l.bus.Space().Refused(k.Agent, k.Task, id))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r, ok := m.Envelope.Data.(events.Refusal); ok {
		return &r, nil
	}
	return nil, fmt.Errorf("message %d of the log is not a refusal", m.Seq)
}

// pause waits before another try, longer each time. Conflicts and outages are not told apart: the next read does that.
func pause(ctx context.Context, try int, err error) error {
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	limit := min(time.Millisecond<<min(try, 10), time.Second)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(limit)))) //nolint:gosec // jitter
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), err)
	case <-timer.C:
		return nil
	}
}

// cache holds the last (state, sequence) this replica wrote, per task. The guard decides whether it still holds.
type cache struct {
	mu    sync.Mutex
	items map[Key]Snapshot
}

const cacheSize = 1 << 12

func newCache() *cache { return &cache{items: map[Key]Snapshot{}} }

func (c *cache) get(k Key) (Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.items[k]
	return s, ok
}

func (c *cache) put(k Key, s Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if Final(s.State.Kind) {
		delete(c.items, k) // seldom asked for again
		return
	}
	if len(c.items) >= cacheSize {
		for old := range c.items { // any: a task that is missed is read again
			delete(c.items, old)
			break
		}
	}
	c.items[k] = s
}

func (c *cache) drop(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.items, k)
}
