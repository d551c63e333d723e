package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// CourierConfig bounds what the courier does at once.
type CourierConfig struct {
	Budget  events.Duration `json:"budget,omitzero"`  // of one attempt; 15 s when 0
	Workers int             `json:"workers,omitzero"` // attempts at once on each channel; 8 when 0
}

// Validate checks the limits.
func (c CourierConfig) Validate() error {
	switch {
	case c.Workers < 0 || c.Workers > 1000:
		return errors.New("courier.workers: use 1 to 1000, or leave it out for 8")
	case c.Budget != 0 && time.Duration(c.Budget) < time.Second || time.Duration(c.Budget) > 2*time.Minute:
		return errors.New("courier.budget: use 1s to 2m, or leave it out for 15s")
	}
	return nil
}

// Courier hands the questions of each channel to its adapter and reports what became of them.
type Courier struct {
	bus      *bus.Bus
	adapters []Adapter
	budget   time.Duration
	workers  int
	log      *slog.Logger
	ledger   ledger
}

// NewCourier makes a courier for adapters whose names differ. A nil logger is slog.Default.
func NewCourier(b *bus.Bus, adapters []Adapter, c CourierConfig, log *slog.Logger) (*Courier, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	names := map[events.Channel]bool{}
	for _, a := range adapters {
		if _, err := events.ParseChannel(string(a.Name())); err != nil {
			return nil, err
		}
		if names[a.Name()] {
			return nil, fmt.Errorf("channels: two adapters are named %s; give each channel a name of its own", a.Name())
		}
		names[a.Name()] = true
	}
	courier := &Courier{bus: b, adapters: adapters, budget: time.Duration(c.Budget), workers: c.Workers, log: log}
	if courier.budget == 0 {
		courier.budget = 15 * time.Second
	}
	if courier.workers == 0 {
		courier.workers = 8
	}
	if log == nil {
		courier.log = slog.Default()
	}
	return courier, nil
}

// Run consumes the questions of all channels until the context ends or one of the consumers fails, and returns when all have
// ended.
func (c *Courier) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make([]error, len(c.adapters))
	var all sync.WaitGroup
	for i, a := range c.adapters {
		all.Go(func() {
			defer cancel()
			round := &round{Courier: c, adapter: a}
			if err := c.bus.Consume(ctx, c.consumer(a.Name()), round.handle); err != nil && !errors.Is(err, context.Canceled) {
				failures[i] = fmt.Errorf("channel %s: %w", a.Name(), err)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

func (c *Courier) consumer(channel events.Channel) bus.Consumer {
	return bus.Consumer{
		Stream:  bus.Questions,
		Name:    "channel-" + string(channel),
		Filters: []string{c.bus.Space().Questions(channel)},
		Workers: c.workers,
		AckWait: 3*c.budget + 3*reportWait, // more than the longest handling: attempt, compact attempt, reconciliation, report
	}
}

// round is the courier's way to one adapter.
type round struct {
	*Courier
	adapter Adapter
}

func (r *round) handle(ctx context.Context, m bus.Message) error {
	q, ok := m.Envelope.Data.(events.Question)
	if !ok {
		return bus.Poison("not_a_question")
	}
	if q.Phase == events.PhaseClose {
		return r.close(ctx, m, q)
	}
	return r.deliver(ctx, m, q)
}

func (r *round) place(q events.Question) events.Place {
	return events.Place{Channel: q.Channel, Agent: q.Agent, Task: q.Task, Version: q.Version}
}

// deliver takes an asked or reminded question one step further.
func (r *round) deliver(ctx context.Context, m bus.Message, q events.Question) error {
	if kept := r.ledger.read(Key(q)).kept; kept != nil {
		return r.settle(ctx, q, *kept)
	}
	if ended, err := r.ended(ctx, m, q); err == nil && ended != nil {
		r.ledger.forget(Key(q))
		return nil // nobody is told of a question that no answer would change
	}
	if limit := q.Content.NotAfter; !limit.IsZero() && !time.Now().Before(limit) {
		return r.undelivered(ctx, m, q, Fault(Permanent, CodeDeadline, nil))
	}
	receipt, err := r.attempt(ctx, m, q)
	if err != nil {
		return r.failed(ctx, m, q, faultOf(err))
	}
	receipt.Attempt = m.Deliveries
	return r.settle(ctx, q, receipt)
}

// failed has the question come again, or reports that its target cannot be reached.
func (r *round) failed(ctx context.Context, m bus.Message, q events.Question, f *Error) error {
	next := retry{fault: f, failed: m.Deliveries, notAfter: q.Content.NotAfter, jitter: 2*rand.Float64() - 1}.wait(time.Now()) //nolint:gosec // jitter
	if next == 0 {
		return r.undelivered(ctx, m, q, f)
	}
	known := r.ledger.read(Key(q))
	if known.code != f.Code && q.Phase == events.PhaseAsk {
		r.logged(q, slog.LevelWarn, f.reach(), f.Code)
		_, err := Report(ctx, r.bus, q.Channel, reportOf(q, events.Receipt{
			State: f.reach(), Attempt: m.Deliveries, Code: f.Code, RetryAfter: events.Duration(next),
		}))
		if err == nil {
			known.code = f.Code
		}
	}
	known.absent = f.Class == Transient
	r.ledger.write(Key(q), known)
	return bus.Later(next, f)
}

// undelivered reports that nothing more will be tried. A reminder that did not arrive says nothing of the question itself,
// which did: it is only logged.
func (r *round) undelivered(ctx context.Context, m bus.Message, q events.Question, f *Error) error {
	level := slog.LevelWarn
	if f.Class == Misconfigured {
		level = slog.LevelError
	}
	r.logged(q, level, events.NotDelivered, f.Code)
	if q.Phase == events.PhaseRemind {
		r.ledger.forget(Key(q))
		return nil
	}
	return r.settle(ctx, q, events.Receipt{State: events.NotDelivered, Attempt: m.Deliveries, Code: f.Code})
}

// settle stores the receipt. If that cannot be done it is kept for the redelivery, which then makes no second attempt.
func (r *round) settle(ctx context.Context, q events.Question, receipt events.Receipt) error {
	if receipt.At.IsZero() {
		receipt.At = time.Now().UTC()
	}
	reply, err := Report(ctx, r.bus, q.Channel, reportOf(q, receipt))
	if err != nil {
		r.ledger.write(Key(q), entry{kept: &receipt})
		return err
	}
	r.ledger.forget(Key(q))
	if !receipt.State.Reached() {
		return nil
	}
	r.logged(q, slog.LevelInfo, receipt.State, "")
	if !counted(reply.Kind) {
		r.closeLate(ctx, q, receipt)
	}
	return nil
}

func reportOf(q events.Question, receipt events.Receipt) events.DeliveryReport {
	return events.DeliveryReport{Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question, Delivery: q.Delivery.ID, Receipt: receipt}
}

func (r *round) logged(q events.Question, level slog.Level, reach events.Reach, code string) {
	r.log.Log(context.Background(), level, "delivery", "channel", q.Channel, "agent", q.Agent, "task", q.Task,
		"state_version", q.Version, "delivery", q.Delivery.ID, "phase", q.Phase, "state", reach, "code", code)
}
