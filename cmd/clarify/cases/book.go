package cases

import (
	"context"
	"sync"

	"github.com/clarify-broker/clarify/events"
)

// book is what is known of the cases that are on their way.
type book struct {
	mu    sync.Mutex
	turns map[events.Task]*turn
}

func newBook() *book { return &book{turns: map[events.Task]*turn{}} }

// open starts a case's turn. The context ends when nothing more will be said to it.
func (b *book) open(ctx context.Context, c Case) (context.Context, *turn) {
	ctx, cancel := context.WithCancel(ctx)
	t := &turn{c: c, giveUp: cancel}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns[c.Task()] = t
	return ctx, t
}

func (b *book) turn(task events.Task) *turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns[task]
}

// turn is one case on its way.
type turn struct {
	c      Case
	giveUp context.CancelFunc

	mu       sync.Mutex
	ran      int             // times the tool ran
	answered int             // answers that were accepted
	refused  []events.Reason // answers that were refused
	problem  error
	seq      uint64 // of the log, when the agent stopped waiting
}

func (t *turn) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran++
}

func (t *turn) answer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered++
}

func (t *turn) refuse(r events.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = append(t.refused, r)
}

func (t *turn) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.problem == nil {
		t.problem = err
	}
}
