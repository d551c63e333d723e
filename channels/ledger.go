package channels

import (
	"sync"

	"github.com/clarify-broker/clarify/events"
)

// maxLedger bounds what one process remembers. Forgetting costs a report or an attempt more, never a delivery.
const maxLedger = 10_000

// ledger is what this process remembers of the deliveries it is at, by [Key]. It saves reports and attempts; nothing rests
// on it, since any replica may get the next redelivery.
type ledger struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	code   string          // of the last failure that was reported
	absent bool            // the last attempt was certainly not accepted
	kept   *events.Receipt // made, and not stored yet
}

func (l *ledger) read(key string) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

func (l *ledger) write(key string, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil || len(l.entries) >= maxLedger {
		l.entries = make(map[string]entry)
	}
	l.entries[key] = e
}

func (l *ledger) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}
