package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const headerKVOperation = "KV-Operation" // on the marker of a key that was deleted

// Keys of the bucket of what all brokers follow.
const (
	keyPolicy = "active"
	keyFreeze = "freeze"
)

func (b *Bus) followed(key string) string { return "$KV." + b.policyBucket() + "." + key }

// PutPolicy makes text the active policy of all brokers and returns its revision, which grows. The last 64 are kept.
func (b *Bus) PutPolicy(ctx context.Context, text []byte) (uint64, error) {
	if len(text) == 0 {
		return 0, errors.New("put the policy: it is empty")
	}
	rev, err := b.put(ctx, keyPolicy, text)
	if err != nil {
		return 0, fmt.Errorf("put the policy: %w", err)
	}
	return rev, nil
}

// Policy reads the active policy and its revision from the leader. ErrNotFound when none was ever put.
func (b *Bus) Policy(ctx context.Context) ([]byte, uint64, error) {
	text, rev, err := b.get(ctx, keyPolicy)
	if err != nil {
		return nil, 0, fmt.Errorf("read the policy: %w", err)
	}
	return text, rev, nil
}

// WatchPolicy tells the active policy, if there is one, and then each that is put, in order, until the context ends, when it
// returns nil. One that was deleted by hand is not told: the last one stays active.
func (b *Bus) WatchPolicy(ctx context.Context, hear func(text []byte, rev uint64)) error {
	return b.watch(ctx, keyPolicy, hear)
}

// Freeze withholds the releases of all brokers; with an empty Reason it lets them go again.
type Freeze struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// PutFreeze tells all brokers, those that are down too, once they run.
func (b *Bus) PutFreeze(ctx context.Context, f Freeze) error {
	body, err := json.Marshal(f)
	if err == nil {
		_, err = b.put(ctx, keyFreeze, body)
	}
	if err != nil {
		return fmt.Errorf("put a freeze: %w", err)
	}
	return nil
}

// WatchFreeze tells the last freeze that was put, the zero Freeze if none was, and then each, until the context ends, when it returns nil.
func (b *Bus) WatchFreeze(ctx context.Context, hear func(Freeze)) error {
	if _, _, err := b.get(ctx, keyFreeze); errors.Is(err, ErrNotFound) {
		hear(Freeze{})
	}
	return b.watch(ctx, keyFreeze, func(body []byte, _ uint64) {
		var f Freeze
		if err := events.Decode(body, 4*kib, &f); err != nil {
			f = Freeze{Reason: "an unreadable freeze was put"} // whoever put it meant to stop something
		}
		hear(f)
	})
}

func (b *Bus) put(ctx context.Context, key string, body []byte) (uint64, error) {
	m := nats.NewMsg(b.followed(key))
	m.Data = body
	return b.store(ctx, m)
}

func (b *Bus) get(ctx context.Context, key string) ([]byte, uint64, error) {
	got, err := b.fetch(ctx, "KV_"+b.policyBucket(), pick{LastFor: b.followed(key)})
	if err == nil && len(got.Message.Data) == 0 { // deleted by hand
		err = ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	return got.Message.Data, got.Message.Seq, nil
}

func (b *Bus) watch(ctx context.Context, key string, hear func(body []byte, rev uint64)) error {
	body, rev, err := b.get(ctx, key)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // a watch that was called off ends without an error, whatever it was reading
	case err == nil:
		hear(body, rev)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return b.tail(ctx, "KV_"+b.policyBucket(), rev+1, []string{b.followed(key)}, func(j jetstream.Msg) error {
		md, err := j.Metadata()
		if err == nil && j.Headers().Get(headerKVOperation) == "" && len(j.Data()) > 0 {
			hear(j.Data(), md.Sequence.Stream)
		}
		return err
	})
}
