package cases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
)

// Options say how cases are run.
type Options struct {
	Mode     Mode             // Absent when empty
	Channels []events.Channel // that the policy asks on; inbox when empty
	Workers  int              // cases at once; 32 when 0
	Logger   *slog.Logger     // nil for silence
}

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = Absent
	}
	if len(o.Channels) == 0 {
		o.Channels = []events.Channel{"inbox"}
	}
	if o.Workers == 0 {
		o.Workers = 32
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Run takes every case through the broker at the other end of b, whose policy asks on channels that nothing else serves,
// and reports what became of them. The cases must not have been proposed there before.
func Run(ctx context.Context, b *bus.Bus, all []Case, o Options) (Report, error) {
	o = o.withDefaults()
	g, err := gate.New(b, agent, gate.WithWorker("cases"), gate.WithLogger(o.Logger))
	if err != nil {
		return Report{}, err
	}
	defer g.Close()
	k := newBook()
	stop, err := people(ctx, b, k, o)
	if err != nil {
		return Report{}, err
	}
	r := runner{bus: b, gate: g, book: k, mode: o.Mode}
	r.each(ctx, all, o.Workers)
	if err := stop(); err != nil {
		return Report{}, fmt.Errorf("channels: %w", err)
	}
	records, err := r.audited(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("read the audit: %w", err)
	}
	return report(all, k, records, o.Mode), ctx.Err()
}

// people starts the channels. stop ends them and waits for their answers.
func people(ctx context.Context, b *bus.Bus, k *book, o Options) (stop func() error, err error) {
	var adapters []channels.Adapter
	var persons []*person
	for _, c := range o.Channels {
		p := newPerson(b, c, k)
		persons = append(persons, p)
		adapters = append(adapters, p)
	}
	courier, err := channels.NewCourier(b, adapters, channels.CourierConfig{Workers: o.Workers}, o.Logger)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = courier.Run(ctx) })
	for _, p := range persons {
		running.Go(func() { _ = p.desk.Run(ctx) }) // a desk without verdicts looks them up
	}
	return func() error {
		for _, p := range persons {
			p.answers.Wait()
		}
		cancel()
		running.Wait()
		if errors.Is(failed, context.Canceled) {
			return nil
		}
		return failed
	}, nil
}

// runner is the agent and its executor.
type runner struct {
	bus  *bus.Bus
	gate *gate.Gate
	book *book
	mode Mode
}

func (r runner) each(ctx context.Context, all []Case, workers int) {
	next := make(chan Case)
	var busy sync.WaitGroup
	for range workers {
		busy.Go(func() {
			for c := range next {
				r.one(ctx, c)
			}
		})
	}
	for _, c := range all {
		next <- c
	}
	close(next)
	busy.Wait()
}

// one takes a case as far as it goes: until it ran, was withheld, or nobody has anything more to say to it.
func (r runner) one(ctx context.Context, c Case) {
	turnCtx, t := r.book.open(ctx, c)
	defer t.giveUp()
	_, err := r.gate.Do(turnCtx, c.Candidate(r.mode), func(context.Context, events.Grant) (any, error) {
		t.run()
		return nil, nil
	})
	if err != nil && !strings.HasPrefix(err.Error(), "NOT EXECUTED:") {
		t.note(err)
	}
	var reply events.StateReply
	if err := r.bus.Ask(ctx, r.bus.Space().AgentState(agent, c.Task()), events.StateRequest{}, &reply); err != nil {
		t.note(err)
	}
	if reply.View != nil {
		t.seq = reply.View.Seq
	}
}

var errCaughtUp = errors.New("caught up")

// audited reads the audit until it has come to where the agent stopped waiting, for every case.
func (r runner) audited(ctx context.Context) ([]events.Record, error) {
	var records []events.Record
	var last uint64
	for _, t := range r.book.turns {
		last = max(last, t.seq)
	}
	if last == 0 {
		return nil, errors.New("no case got as far as the log")
	}
	err := r.bus.Tail(ctx, bus.Audit, 1, nil, func(_ context.Context, m bus.Message) error {
		rec, isRecord := m.Envelope.Data.(events.Record)
		if !isRecord {
			return fmt.Errorf("audit message %d is no record", m.Seq)
		}
		records = append(records, rec)
		if rec.Log >= last {
			return errCaughtUp
		}
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if errors.Is(err, errCaughtUp) {
		err = nil
	}
	return records, err
}
