package gate

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// ears are those who wait for a task to move. One subscription of the process serves them all: a consumer for each would
// cost the server 40 kB, an ear costs it nothing.
type ears struct {
	mu     sync.Mutex
	byTask map[events.Task]map[*ear]struct{}
}

// ear is one waiter. Wake-ups that come before it looks are one; last is the newest sequence of the log
// they named, until somebody has asked for it.
type ear struct {
	heard chan struct{}
	last  atomic.Uint64
}

func newEars() *ears { return &ears{byTask: map[events.Task]map[*ear]struct{}{}} }

func (e *ears) join(t events.Task) *ear {
	one := &ear{heard: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byTask[t] == nil {
		e.byTask[t] = map[*ear]struct{}{}
	}
	e.byTask[t][one] = struct{}{}
	return one
}

func (e *ears) leave(t events.Task, one *ear) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byTask[t], one)
	if len(e.byTask[t]) == 0 {
		delete(e.byTask, t)
	}
}

func (e *ears) wake(t events.Task, seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for one := range e.byTask[t] {
		one.last.Store(max(one.last.Load(), seq))
		one.wake()
	}
}

func (e *ears) wakeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.byTask {
		for one := range all {
			one.wake()
		}
	}
}

func (one *ear) wake() {
	select {
	case one.heard <- struct{}{}:
	default:
	}
}

// listen keeps the subscription to the agent's wake-ups until the context ends. Without it waiters still poll.
func (g *Gate) listen(ctx context.Context) {
	for pace := newPace(time.Second, 30*time.Second); ; {
		err := g.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		g.log.Warn("no wake-ups", "error", err)
		pace.sleep(ctx)
	}
}

// hear wakes everybody once it hears, for what moved before.
func (g *Gate) hear(ctx context.Context) error {
	s, err := g.bus.Subscribe(ctx, g.bus.Space().Wake(g.agent, "*", "*"))
	if err != nil {
		return err
	}
	g.ears.wakeAll()
	return s.Hear(ctx, func(m bus.Message) {
		switch m.Subject.Kind {
		case events.Reached, events.Rerouted, events.Reminded, events.Overdue: // still waiting: nothing a waiter would do
		default:
			g.ears.wake(m.Subject.Task, m.Seq)
		}
	})
}

// hearReconnects has every waiter ask again after a reconnect, since wake-ups were lost meanwhile.
func (g *Gate) hearReconnects(ctx context.Context, back <-chan nats.Status) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-back:
			if !open {
				return
			}
			g.ears.wakeAll()
		}
	}
}

// pace is a growing delay with jitter of a fifth to either side.
type pace struct{ first, most, next time.Duration }

func newPace(first, most time.Duration) *pace { return &pace{first: first, most: most, next: first} }

func (p *pace) reset() { p.next = p.first }

func (p *pace) delay() time.Duration {
	d := p.next
	p.next = min(2*p.next, p.most)
	return d - d/5 + rand.N(2*d/5) //nolint:gosec // jitter
}

// sleep waits for the next delay or the context's end.
func (p *pace) sleep(ctx context.Context) {
	t := time.NewTimer(p.delay())
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// listen waits for a wake-up, the next delay or the context's end. A wake-up starts the delays over.
func (p *pace) listen(ctx context.Context, one *ear) {
	if one.hears(ctx, p.delay()) {
		p.reset()
	}
}

// hears waits for a wake-up, for d or for the context's end, and reports whether it was a wake-up.
func (one *ear) hears(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-one.heard:
		return true
	case <-t.C:
	}
	return false
}

// resend is the pace at which an event is sent until the log shows it. A wake-up only has the log looked at.
type resend struct {
	pace *pace
	due  time.Time
	sent int
}

func newResend() *resend { return &resend{pace: newPace(200*time.Millisecond, 10*time.Second)} }

func (r *resend) isDue() bool { return !time.Now().Before(r.due) }

func (r *resend) wasSent() {
	r.sent++
	r.due = time.Now().Add(r.pace.delay())
}

func (r *resend) listen(ctx context.Context, one *ear) { one.hears(ctx, time.Until(r.due)) }
