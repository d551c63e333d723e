package broker

import (
	"context"
	"errors"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

const (
	watchEvery   = 2 * time.Second
	watchGrace   = 500 * time.Millisecond // a wake-up is this late at the most before the watchdog sees to the task itself
	watchSilence = 30 * time.Second       // a channel that has said nothing for so long may have lost the question
)

// watchdog sees to tasks that stand still although they should not: a timer that the server could not fire, a lease that is
// over, an answer that was accepted while releases were frozen, a question that was lost at a power cut on its way to a
// channel. It also forgets final tasks whose retention is over.
type watchdog struct {
	core
	index  *Index
	timers timers
}

func (w watchdog) run(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			w.each(ctx, w.index.late(w.rules().Wake, now, watchGrace), w.wake)
			w.each(ctx, w.index.unheard(now, watchSilence), w.askSilent)
		}
	}
}

func (w watchdog) each(ctx context.Context, tasks []Key, see func(context.Context, Key) error) {
	for _, k := range tasks {
		if err := see(ctx, k); err != nil && ctx.Err() == nil && !bus.Unavailable(err) {
			w.log.Warn("task not seen to", "agent", k.Agent, "task", k.Task, "error", err)
		}
	}
}

func (w watchdog) wake(ctx context.Context, k Key) error {
	if _, err := w.ledger.Apply(ctx, k, func(s Snapshot, now time.Time) Change {
		return w.rules().Redecide(s, moment(now, events.NewID()))
	}); err != nil {
		return err
	}
	if err := w.timers.wake(ctx, k, events.NewID()); err != nil {
		return err
	}
	s, err := w.ledger.Read(ctx, k)
	if err == nil && !s.Known() {
		w.index.forget(k)
		return nil
	}
	return errors.Join(err, w.arm(ctx, k, w.rules().Wake))
}
