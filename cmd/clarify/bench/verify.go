package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Verify waits until the audit has passed everything that is in the task log now, and checks all of it.
func Verify(ctx context.Context, b *bus.Bus) (audit.Report, error) {
	end, err := b.Last(ctx, bus.Tasks, b.Space().Task("*", "*", "*"))
	if err != nil {
		return audit.Report{}, fmt.Errorf("find the end of the log: %w", err)
	}
	passed := errors.New("passed")
	v := audit.NewVerifier()
	err = b.Tail(ctx, bus.Audit, 1, nil, func(_ context.Context, m bus.Message) error {
		r, ok := m.Envelope.Data.(events.Record)
		if !ok {
			return fmt.Errorf("message %d of the audit is no record", m.Seq)
		}
		v.Add(r)
		if r.Log >= end.Seq {
			return passed
		}
		return nil
	})
	if !errors.Is(err, passed) {
		return audit.Report{}, errors.Join(err, ctx.Err())
	}
	return v.Report(time.Now()), nil
}
