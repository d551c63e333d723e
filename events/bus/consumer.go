package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go/jetstream"
)

// Consumer is a durable consumer that any number of processes share.
type Consumer struct {
	Stream    Stream
	Name      string
	Filters   []string
	Workers   int           // handlers at once; 1 when 0
	AckWait   time.Duration // 10 s when 0; a handler may take longer, it is only how soon another process takes over
	Bind      bool          // only use the consumer, and wait until somebody has made it: for credentials that may not make one
	Malformed Handler       // told of a message that cannot be read, before it ends in the dead letter; Envelope is zero but for ID
}

// Pool is the consumer of one agent's releases, which all its workers share. It reads from the beginning of the log.
func (b *Bus) Pool(agent events.Agent) Consumer {
	return Consumer{Stream: Tasks, Name: "pool-" + string(agent), Filters: []string{b.space.Task(agent, "*", events.Released)}}
}

// poolTrust is how long a pool that was seen is taken to be there still.
const poolTrust = time.Minute

// EnsurePool makes an agent's Pool, for workers who may only use it. It is cheap to repeat.
func (b *Bus) EnsurePool(ctx context.Context, agent events.Agent) error {
	if _, err := events.ParseAgent(string(agent)); err != nil {
		return fmt.Errorf("make a pool: %w", err)
	}
	if seen, ok := b.pools.Load(agent); ok && time.Since(seen.(time.Time)) < poolTrust {
		return nil
	}
	if err := b.Ensure(ctx, b.Pool(agent)); err != nil {
		return err
	}
	b.pools.Store(agent, time.Now())
	return nil
}

// config is the one place where settings of consumers are made. MaxDeliver is unlimited, since a message past it would stay
// in a work queue for ever; Consume ends messages itself. MaxAckPending is unlimited, since messages that wait for Later
// count and would hold up the rest; what is handed out is bounded by the workers.
func (c Consumer) config() jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		Durable:       c.Name,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: -1,
	}
	if cfg.AckWait == 0 {
		cfg.AckWait = 10 * time.Second
	}
	if len(c.Filters) == 1 {
		cfg.FilterSubject = c.Filters[0]
	} else {
		cfg.FilterSubjects = c.Filters
	}
	return cfg
}

// Ensure makes the consumer if it is not there, and gives it these settings if it has others: for a consumer that somebody
// else will use, who may not make one.
func (b *Bus) Ensure(ctx context.Context, c Consumer) error {
	_, err := b.ensure(ctx, c)
	return err
}

func (b *Bus) ensure(ctx context.Context, c Consumer) (jetstream.Consumer, error) {
	if _, err := events.ParseTask(c.Name); err != nil {
		return nil, fmt.Errorf("consumer of %s: %w", c.Stream, err)
	}
	stream := b.streamName(c.Stream)
	inner, stop := b.unlessDenied(ctx, "$JS.API.CONSUMER.INFO."+stream+"."+c.Name, createSubject(stream, c))
	defer stop()
	made, err := b.bind(inner, stream, c)
	switch {
	case err == nil:
		return made, nil
	case ctx.Err() == nil && errors.Is(context.Cause(inner), ErrDenied):
		err = ErrDenied
	case errors.Is(err, jetstream.ErrStreamNotFound):
		err = fmt.Errorf("%w: make the streams first (clarify nats apply)", err)
	}
	return nil, fmt.Errorf("consumer %s of %s: %w", c.Name, c.Stream, err)
}

// bind finds the consumer, or makes it, or gives it the settings it should have.
func (b *Bus) bind(ctx context.Context, stream string, c Consumer) (jetstream.Consumer, error) {
	want := c.config()
	have, err := b.js.Consumer(ctx, stream, c.Name)
	switch {
	case err == nil && (c.Bind || same(have.CachedInfo().Config, want)):
		return have, nil
	case err == nil:
		return b.js.UpdateConsumer(ctx, stream, want)
	case c.Bind || !errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, err
	}
	have, err = b.js.CreateConsumer(ctx, stream, want)
	if errors.Is(err, jetstream.ErrConsumerExists) { // another process was first, perhaps with other settings
		return b.js.UpdateConsumer(ctx, stream, want)
	}
	return have, err
}

// createSubject is where the library makes a consumer: with one filter it is part of the subject, so that permissions see it.
func createSubject(stream string, c Consumer) string {
	subject := "$JS.API.CONSUMER.CREATE." + stream + "." + c.Name
	if len(c.Filters) == 1 {
		subject += "." + c.Filters[0]
	}
	return subject
}

func same(have, want jetstream.ConsumerConfig) bool {
	return have.AckWait == want.AckWait && have.FilterSubject == want.FilterSubject &&
		slices.Equal(have.FilterSubjects, want.FilterSubjects) && have.MaxAckPending == want.MaxAckPending
}
