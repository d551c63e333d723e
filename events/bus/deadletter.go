package bus

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// DeadLetter is a message that ended without being handled. It is gone from a work queue; in the log it stays.
type DeadLetter struct {
	Stream     Stream
	Consumer   string
	Seq        uint64 // of the message in its stream
	Deliveries int
	Reason     string // as given to Poison, or malformed, failed too often, max deliveries
	At         time.Time
	Advisory   uint64 // where this is in Advisories: go on behind it
}

// DeadLetters tells the dead letters from a sequence of Advisories on, in order, until the context ends, when it returns nil,
// or the hearer returns an error.
func (b *Bus) DeadLetters(ctx context.Context, from uint64, hear func(DeadLetter) error) error {
	return b.tail(ctx, b.streamName(Advisories), from, nil, func(j jetstream.Msg) error {
		d, err := b.deadLetter(j)
		if err != nil {
			return err
		}
		return hear(d)
	})
}

func (b *Bus) deadLetter(j jetstream.Msg) (DeadLetter, error) {
	md, err := j.Metadata()
	if err != nil {
		return DeadLetter{}, err
	}
	var said struct {
		Stream     string `json:"stream"`
		Consumer   string `json:"consumer"`
		Seq        uint64 `json:"stream_seq"`
		Deliveries int    `json:"deliveries"`
		Reason     string `json:"reason"`
	}
	if err := json.Unmarshal(j.Data(), &said); err != nil {
		return DeadLetter{}, err
	}
	if said.Reason == "" {
		said.Reason = "max deliveries"
	}
	return DeadLetter{
		Stream:   Stream(strings.TrimPrefix(said.Stream, b.streamName(""))),
		Consumer: said.Consumer, Seq: said.Seq, Deliveries: said.Deliveries, Reason: said.Reason,
		At: md.Timestamp, Advisory: md.Sequence.Stream,
	}, nil
}
