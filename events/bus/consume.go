package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Handler handles one message. nil acknowledges it; Later and Poison say otherwise; any other error has it delivered again
// after a growing delay, and after 20 failures that were not [Unavailable] ends it in the dead letter.
type Handler func(context.Context, Message) error

// Consume makes the consumer if it is not there and handles its messages until the context ends, then waits for the
// handlers and returns nil. It survives reconnects and a lost consumer. It returns an error if it could not begin, if the
// server denies it the consumer (ErrDenied), or once the connection is closed. No message waits in this process: one is asked
// for when a worker is free.
func (b *Bus) Consume(ctx context.Context, c Consumer, handle Handler) error {
	r := &run{
		Consumer: c, bus: b, handle: handle,
		ackWait:  c.config().AckWait,
		serving:  ctx,
		failures: map[uint64]int{},
		log:      b.log.With("stream", c.Stream, "consumer", c.Name),
	}
	defer r.workers.Wait()
	begun := c.Bind
	for round := 1; ; round++ {
		source, err := b.ensure(ctx, c)
		if err == nil {
			begun = true
			var handled int
			if handled, err = r.pull(ctx, source); handled > 0 {
				round = 1
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrDenied), !begun:
			return err
		case b.nc.IsClosed():
			return fmt.Errorf("consume %s of %s: %w", c.Name, c.Stream, nats.ErrConnectionClosed)
		}
		if round == 1 || !c.Bind { // one that nobody has made yet is waited for in silence
			r.log.WarnContext(ctx, "consumer interrupted", "error", err)
		}
		if !wait(ctx, min(backoff(round), againAtLeast)) {
			return nil
		}
	}
}

// againAtLeast is how long a consumer that was made, or is there again, goes unnoticed.
const againAtLeast = 5 * time.Second

// wait reports whether the time passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// run is one call of Consume.
type run struct {
	Consumer
	bus     *Bus
	handle  Handler
	ackWait time.Duration
	serving context.Context //nolint:containedctx // the one of the Consume this is: handlers outlive a request for messages
	workers sync.WaitGroup
	log     *slog.Logger

	mu       sync.Mutex
	failures map[uint64]int // by sequence in the stream
}

// pullers is how many requests for messages a consumer has under way: a request is renewed when it is used up, and meanwhile
// the others' workers have something to do.
const pullers = 4

// A process that gets no processor for a while must not take that for a lost server: messages that are on their way to a
// request it gives up come again only after AckWait.
const pullHeartbeat = 10 * time.Second

// pull handles messages until asking for more fails, and returns how many it took.
func (r *run) pull(ctx context.Context, source jetstream.Consumer) (int, error) {
	asking, stop := r.bus.unlessDenied(ctx, "$JS.API.CONSUMER.MSG.NEXT."+r.bus.streamName(r.Stream)+"."+r.Name)
	defer stop()
	asking, end := context.WithCancelCause(asking)
	defer end(nil)
	var all sync.WaitGroup
	workers, n := max(r.Workers, 1), min(pullers, max(r.Workers, 1))
	handled := make([]int, n)
	for i := range n {
		share := workers / n
		if i < workers%n {
			share++
		}
		all.Go(func() {
			var err error
			handled[i], err = r.puller(asking, source, make(chan struct{}, share))
			end(err)
		})
	}
	all.Wait()
	sum := 0
	for _, h := range handled {
		sum += h
	}
	if errors.Is(context.Cause(asking), ErrDenied) {
		return sum, fmt.Errorf("consume %s of %s: %w", r.Name, r.Stream, ErrDenied)
	}
	return sum, context.Cause(asking)
}

// puller asks for as many messages at once as its workers are free, so that each has one waiting for it: AckWait runs from
// when the server sends a message, and one that waited here behind a long handler could have gone to another process.
func (r *run) puller(asking context.Context, source jetstream.Consumer, busy chan struct{}) (handled int, err error) {
	for {
		n := reserve(asking, busy)
		if n == 0 {
			return handled, asking.Err()
		}
		taken, err := r.fetch(asking, source, busy, n)
		handled += taken
		for range n - taken {
			<-busy
		}
		if err != nil {
			return handled, err
		}
	}
}

// reserve waits for a free worker and takes all that are; none when the context ends.
func reserve(ctx context.Context, busy chan struct{}) (n int) {
	select {
	case busy <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n = 1; ; n++ {
		select {
		case busy <- struct{}{}:
		default:
			return n
		}
	}
}

// fetch hands up to n messages to the workers that are reserved for them, one goroutine each, and returns how many it did.
func (r *run) fetch(asking context.Context, source jetstream.Consumer, busy chan struct{}, n int) (taken int, err error) {
	batch, err := source.Fetch(n, jetstream.FetchContext(asking), jetstream.FetchHeartbeat(pullHeartbeat))
	if err != nil {
		return 0, err
	}
	for j := range batch.Messages() {
		if asking.Err() != nil {
			_ = j.NakWithDelay(handBack) // to another process; it comes back after AckWait if this is lost
			continue
		}
		taken++
		r.workers.Go(func() {
			defer func() { <-busy }()
			r.one(r.serving, j)
		})
	}
	return taken, batch.Error()
}

func (r *run) one(ctx context.Context, j jetstream.Msg) {
	m, err := r.bus.delivered(j)
	if err != nil { // not a message of a consumer: there is nothing to acknowledge
		r.log.ErrorContext(ctx, "message without metadata", "error", err)
		return
	}
	stop := keep(j, r.ackWait/2)
	if m.Problem != nil {
		err = r.malformed(ctx, m)
	} else {
		err = r.handle(ctx, m)
	}
	stop()
	r.settle(ctx, j, m, err)
}

// keep tells the server every so often that the message is still being handled.
func keep(j jetstream.Msg, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				_ = j.InProgress() // if it is lost the message is delivered again, which is allowed
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

func (r *run) malformed(ctx context.Context, m Message) error {
	if r.Malformed != nil {
		if err := r.Malformed(ctx, m); err != nil {
			return err
		}
	}
	return Poison("malformed")
}

// settle is the only place that acknowledges. Whatever it sends may be lost: the message is then delivered again.
func (r *run) settle(ctx context.Context, j jetstream.Msg, m Message, err error) {
	later, isLater := errors.AsType[*later](err)
	poison, isPoison := errors.AsType[*poison](err)
	var sent error
	switch {
	case err == nil:
		r.forget(m.Seq)
		sent = j.Ack()
	case isPoison:
		sent = r.term(ctx, j, m, poison.reason)
	case ctx.Err() != nil:
		sent = j.NakWithDelay(handBack)
	case isLater:
		sent = j.NakWithDelay(later.after)
	case Unavailable(err), errors.Is(err, ErrDenied): // a wrong credential must not cost messages
		sent = j.NakWithDelay(backoff(m.Deliveries))
	case r.failed(m.Seq) >= maxFailures:
		r.log.ErrorContext(ctx, "message failed too often", "seq", m.Seq, "family", m.Subject.Family, "error", err)
		sent = r.term(ctx, j, m, "failed too often")
	default:
		r.log.WarnContext(ctx, "message failed", "seq", m.Seq, "family", m.Subject.Family, "deliveries", m.Deliveries, "error", err)
		sent = j.NakWithDelay(backoff(m.Deliveries))
	}
	if sent != nil {
		r.log.WarnContext(ctx, "message not settled", "seq", m.Seq, "error", sent)
	}
}

func (r *run) term(ctx context.Context, j jetstream.Msg, m Message, reason string) error {
	r.forget(m.Seq)
	r.log.ErrorContext(ctx, "message ends in the dead letter", "seq", m.Seq, "family", m.Subject.Family,
		"reason", reason)
	return j.TermWithReason(reason)
}

// maxRemembered bounds what is known of failures. Messages that another process handled in the end are never forgotten
// otherwise; a message that is forgotten too early only gets more attempts.
const maxRemembered = 10_000

func (r *run) failed(seq uint64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) >= maxRemembered {
		clear(r.failures)
	}
	r.failures[seq]++
	return r.failures[seq]
}

func (r *run) forget(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failures, seq)
}
