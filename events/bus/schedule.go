package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Headers of a scheduled message (JetStream ADR-51).
const (
	headerSchedule    = "Nats-Schedule"
	headerScheduleFor = "Nats-Schedule-Target"
	headerScheduleTTL = "Nats-Schedule-TTL"
)

// dueKept is how long a wake-up waits for a broker. Later ones come from the watchdog, which re-arms what is overdue.
const dueKept = 7 * 24 * time.Hour

// Arm schedules a task's next wake-up under the task's guard, replacing the one before. The server delivers it on Space.Due
// at t.Due by its own clock, never early and at most about a second late; a time that has passed is delivered at once.
// ErrReread as with Append.
func (b *Bus) Arm(ctx context.Context, t events.Timer, last uint64) error {
	m, err := b.sealed(b.space.Timer(t.Agent, t.Task), events.Envelope{Data: t})
	if err != nil {
		return fmt.Errorf("arm: %w", err)
	}
	guard(m, b.space.TaskAll(t.Agent, t.Task), last)
	m.Header[headerSchedule] = []string{"@at " + t.Due.UTC().Format(time.RFC3339Nano)}
	m.Header[headerScheduleFor] = []string{b.space.Due(t.Agent, t.Task)}
	m.Header[headerScheduleTTL] = []string{seconds(dueKept)}
	if _, err := b.appendOne(ctx, m); err != nil {
		return fmt.Errorf("arm: %w", err)
	}
	return nil
}
