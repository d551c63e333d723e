package broker

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events/bus"
)

// freeze withholds releases: because an operator said so, to all replicas; because the log has lost what was acknowledged; or
// because this replica has just started and does not know yet. An operator thaws the first two.
type freeze struct {
	log     *slog.Logger
	checked func() bool // the audit has compared the log with what it has seen of it

	mu    sync.Mutex
	heard bool   // what operators said last is known
	said  string // by an operator
	alarm string // by the audit
}

const starting = "starting: not known yet whether releases are frozen"

func (f *freeze) why() string {
	checked := f.checked()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.heard || !checked {
		return cmp.Or(f.alarm, starting)
	}
	return cmp.Or(f.alarm, f.said)
}

// await returns when it is known whether releases are frozen.
func (f *freeze) await(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for f.why() == starting {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// raise freezes releases because acknowledged messages are gone.
func (f *freeze) raise(err error) {
	f.log.Error("data loss: releases are frozen until an operator thaws them", "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alarm = "data loss: " + err.Error()
}

// follow does what operators say, to this replica or another.
func (f *freeze) follow(b *bus.Bus) func(context.Context) error {
	return func(ctx context.Context) error { return b.WatchFreeze(ctx, f.hear) }
}

// hear takes an operator's word. Only one that is said from now on ends an alarm: what was said before does not know of it.
func (f *freeze) hear(said bus.Freeze) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard {
		f.log.Warn("releases", "frozen", said.Reason, "by", said.By)
		if said.Reason == "" {
			f.alarm = ""
		}
	}
	f.heard, f.said = true, said.Reason
}
