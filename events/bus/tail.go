package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a tail holds in memory at most, and how long the server remembers one that went away.
const (
	tailMessages  = 512
	tailBytes     = 8 << 20
	tailForgotten = time.Minute
)

// Tail reads a stream in order from a sequence on (0 or 1: from its beginning), keeping nothing on the server, until the
// context ends, when it returns nil, or the handler returns an error, which it returns. It survives reconnects and starts
// again behind the last message that was handled. It has caught up when a message has Pending 0, never because none comes;
// compare with LastSeq where there may be no message at all. A message that cannot be read has its Problem set.
func (b *Bus) Tail(ctx context.Context, stream Stream, from uint64, filters []string, handle Handler) error {
	return b.tail(ctx, b.streamName(stream), from, filters, func(j jetstream.Msg) error {
		m, err := b.delivered(j)
		if err != nil {
			return err
		}
		return handle(ctx, m)
	})
}

// tail is Tail for any stream. It makes a new ordered consumer whenever the old one is in doubt, because the library's own
// recovery tries without end and without a context.
func (b *Bus) tail(ctx context.Context, stream string, from uint64, filters []string, handle func(jetstream.Msg) error) error {
	next := max(from, 1)
	for round := 1; ; round++ {
		before := next
		err := b.follow(ctx, stream, filters, &next, handle)
		if stop, ok := errors.AsType[*stopped](err); ok {
			return stop.err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the context ends a tail without an error, whatever it was reading
		}
		if b.nc.IsClosed() {
			return fmt.Errorf("tail %s: %w", stream, nats.ErrConnectionClosed)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) && next == max(from, 1) {
			return fmt.Errorf("tail %s: %w: make the streams first (clarify nats apply)", stream, err)
		}
		if next != before {
			round = 1
		}
		b.log.WarnContext(ctx, "tail interrupted", "stream", stream, "next", next, "error", err)
		if !wait(ctx, min(backoff(round), againAtLeast)) {
			return nil
		}
	}
}

// stopped is an error of the handler, to tell it from the server's.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }

func (b *Bus) follow(ctx context.Context, stream string, filters []string, next *uint64, handle func(jetstream.Msg) error) error {
	source, err := b.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects:    filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       *next,
		MaxResetAttempts:  1,
		InactiveThreshold: tailForgotten,
	})
	if err != nil {
		return err
	}
	it, err := source.Messages(jetstream.PullMaxMessagesWithBytesLimit(tailMessages, tailBytes))
	if err != nil {
		return err
	}
	defer it.Stop()
	for {
		j, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		md, err := j.Metadata()
		if err != nil {
			return err
		}
		if err := handle(j); err != nil {
			return &stopped{err}
		}
		*next = md.Sequence.Stream + 1
	}
}
