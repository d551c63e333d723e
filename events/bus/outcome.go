package bus

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How a message that could not be handled comes back. An immediate redelivery would burn deliveries in no time.
const (
	firstDelay  = 200 * time.Millisecond
	lastDelay   = time.Minute
	handBack    = time.Millisecond // to another process, when this one stops
	maxFailures = 20               // of one message in one process, over about 15 minutes
)

type later struct {
	after time.Duration
	err   error
}

func (l *later) Error() string { return "later: " + l.err.Error() }
func (l *later) Unwrap() error { return l.err }

// Later has a message delivered again after d. It may be so as often as it takes.
func Later(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("not yet")
	}
	return &later{max(d, handBack), err}
}

type poison struct{ reason string }

func (p *poison) Error() string { return "poison: " + p.reason }

// Poison ends a message in the dead letter with its reason: no delivery could ever succeed. The reason is a fixed text, not
// what a person or tool gave.
func Poison(reason string) error { return &poison{reason} }

// Unavailable reports that an error says nothing about what was to be done, only that it could not be done now.
func Unavailable(err error) bool {
	for _, known := range []error{
		ErrReread, ErrFull, ErrNobody, errSilent, context.Canceled, context.DeadlineExceeded,
		nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// backoff grows with the delivery that failed, from 1, and spreads by a fifth.
func backoff(delivery int) time.Duration {
	d := firstDelay << min(max(delivery-1, 0), 16)
	d = min(d, lastDelay)
	return d - rand.N(d/5+1) //nolint:gosec // jitter
}
