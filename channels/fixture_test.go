package channels_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// provider is an adapter whose every attempt the test scripts.
type provider struct {
	mu       sync.Mutex
	script   []func(events.Question) (events.Receipt, error) // the last goes on for ever
	attempts []time.Time
	keys     []string
	updates  chan events.Question
}

func (p *provider) Name() events.Channel { return "chat" }

func (p *provider) Deliver(_ context.Context, q events.Question) (events.Receipt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts, p.keys = append(p.attempts, time.Now()), append(p.keys, channels.Key(q))
	return p.script[min(len(p.attempts), len(p.script))-1](q)
}

func (p *provider) times() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.attempts...)
}

// updating is a provider that can change what it delivered.
type updating struct{ *provider }

func (p updating) Update(_ context.Context, q events.Question) (events.Receipt, error) {
	p.updates <- q
	return events.Receipt{}, nil
}

// reconciling is a provider that can be asked what it has.
type reconciling struct {
	*provider
	found func() (events.Receipt, error)
}

func (p reconciling) Reconcile(context.Context, events.Question) (events.Receipt, error) {
	return p.found()
}

// compacting is a provider with a smaller rendering.
type compacting struct {
	*provider
	compact func() (events.Receipt, error)
}

func (p compacting) DeliverCompact(context.Context, events.Question) (events.Receipt, error) {
	return p.compact()
}

func accepted(id string) func(events.Question) (events.Receipt, error) {
	return func(events.Question) (events.Receipt, error) {
		return events.Receipt{State: events.ReachAccepted, ProviderID: id}, nil
	}
}

func failing(f *channels.Error) func(events.Question) (events.Receipt, error) {
	return func(events.Question) (events.Receipt, error) { return events.Receipt{}, f }
}

func question() events.Question {
	return events.Question{
		Agent: "crm-bot", Task: "t-42", Version: 7, Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Kind: events.Clarification,
		Phase: events.PhaseAsk, Channel: "chat", Delivery: events.Delivery{ID: "01K9-7-ana", Target: events.RouteTarget{Channel: "chat", Who: "ana"}},
		Content: events.Content{Step: "update-record", Tool: "crm.update_record", Action: "sha256:00", Next: "", NotAfter: time.Now().Add(time.Hour)},
	}
}

func ask(t *testing.T, b *bus.Bus, q events.Question) {
	t.Helper()
	place := events.Place{Channel: q.Channel, Agent: q.Agent, Task: q.Task, Version: q.Version}
	if _, err := b.Publish(t.Context(), b.Space().Question(place), events.Envelope{Source: b.Source(), Data: q}); err != nil {
		t.Fatal(err)
	}
}

func startCourier(t *testing.T, b *bus.Bus, adapters ...channels.Adapter) (stop func()) {
	t.Helper()
	c, err := channels.NewCourier(b, adapters, channels.CourierConfig{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return channeltest.Background(t, c.Run)
}

var errBroken = errors.New("it broke")
