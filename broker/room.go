package broker

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// roomShare is how full the store may be before candidates are refused: what is under way needs the rest, and a server
	// whose store is full can neither take an answer nor fire a timer.
	roomShare = 0.7
	roomEvery = 2 * time.Second
)

// room knows whether there is place for another task.
type room struct {
	core
	full atomic.Bool
}

func (r *room) run(ctx context.Context) error {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		r.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *room) look(ctx context.Context) {
	store, err := r.bus.Store(ctx)
	if err != nil {
		return // what was known stays; a server that does not answer takes no candidates either
	}
	full := store.Full(roomShare)
	if was := r.full.Swap(full); was != full {
		r.log.Warn("store", "full", full, "used_bytes", store.Used, "limit_bytes", store.Limit)
	}
}
