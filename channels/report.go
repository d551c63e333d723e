package channels

import (
	"context"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// reportWait is how long a broker has to store a receipt before it is put into the stream instead.
const reportWait = 5 * time.Second

// Report gives the broker what became of a delivery, and returns when that is stored: by the broker, or in the stream of
// receipts when no broker answers. The courier reports attempts; an adapter reports what it learns later, such as a bounce.
// Receipt.At and Receipt.Seq are filled in when they are zero, so that a later word overrides an earlier one. The reply is
// zero when no broker answered.
func Report(ctx context.Context, b *bus.Bus, channel events.Channel, r events.DeliveryReport) (events.EffectReply, error) {
	if r.Receipt.At.IsZero() {
		r.Receipt.At = time.Now().UTC()
	}
	if r.Receipt.Seq == 0 {
		r.Receipt.Seq = uint64(max(r.Receipt.At.UnixMicro(), 1))
	}
	if err := r.Validate(); err != nil {
		return events.EffectReply{}, fmt.Errorf("report delivery on %s: %w", channel, err)
	}
	place := events.Place{Channel: channel, Agent: r.Agent, Task: r.Task, Version: r.Version}
	if reply, err := ask(ctx, b, place, r); err == nil {
		return reply, nil
	}
	_, err := b.Publish(ctx, b.Space().Receipt(place), events.Envelope{
		ID:     fmt.Sprintf("%s.%d", r.Delivery, r.Receipt.Seq),
		Source: b.Source(),
		Time:   r.Receipt.At,
		Data:   r,
	})
	if err != nil {
		return events.EffectReply{}, fmt.Errorf("store receipt of %s/%s v%d: %w", r.Agent, r.Task, r.Version, err)
	}
	return events.EffectReply{}, nil
}

func ask(ctx context.Context, b *bus.Bus, place events.Place, r events.DeliveryReport) (events.EffectReply, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	var reply events.EffectReply
	err := b.Ask(ctx, b.Space().Report(place), r, &reply)
	return reply, err
}
