package channels

import (
	"context"
	"log/slog"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

const (
	closeWithin = time.Hour        // how long the copies of an ended question are tried to be updated
	freshFor    = 10 * time.Second // a first attempt within this time of its storing is made without looking
	lookWait    = 2 * time.Second
)

// close shows on every copy what became of a question. It changes nothing about the question: a failure is logged, and
// tried again for a while.
func (r *round) close(ctx context.Context, m bus.Message, q events.Question) error {
	updater, ok := r.adapter.(Updater)
	if !ok || q.Closed == nil {
		return nil
	}
	err := r.update(ctx, updater, q)
	if err == nil {
		return nil
	}
	f := faultOf(err)
	again := retry{fault: f, failed: m.Deliveries, notAfter: m.Stored.Add(closeWithin)}.wait(time.Now())
	if again == 0 {
		r.logged(q, slog.LevelWarn, events.NotDelivered, f.Code)
		return nil
	}
	return bus.Later(again, f)
}

func (r *round) update(ctx context.Context, updater Updater, q events.Question) error {
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	_, err := updater.Update(ctx, q)
	return err
}

// ended looks whether a question that did not come at once is still open. It returns nil for one that is, or that nobody
// can tell of.
func (r *round) ended(ctx context.Context, m bus.Message, q events.Question) (*events.Closed, error) {
	if m.Deliveries <= 1 && (m.Stored.IsZero() || time.Since(m.Stored) < freshFor) {
		return nil, nil
	}
	return r.becameOf(ctx, q)
}

func (r *round) becameOf(ctx context.Context, q events.Question) (*events.Closed, error) {
	reply, err := look(ctx, r.bus, r.place(q), events.StateRequest{Version: q.Version})
	switch {
	case err != nil:
		return nil, err
	case reply.Pause == nil || reply.Pause.Version < q.Version:
		return nil, nil
	case reply.Pause.Version > q.Version:
		return &events.Closed{Status: events.PauseSuperseded, Kind: events.Superseded, At: time.Now().UTC()}, nil
	case reply.Pause.Status == events.PauseWaiting:
		return nil, nil
	}
	closed := &events.Closed{Status: reply.Pause.Status, Kind: reply.Kind, By: reply.Pause.AnsweredBy, At: reply.Pause.AnsweredAt}
	if closed.At.IsZero() {
		closed.At = time.Now().UTC()
	}
	return closed, nil
}

// closeLate updates a copy that arrived while its question was ending: the closing that was sent did not know of it.
func (r *round) closeLate(ctx context.Context, q events.Question, receipt events.Receipt) {
	updater, ok := r.adapter.(Updater)
	if !ok {
		return
	}
	closed, err := r.becameOf(ctx, q)
	if err != nil || closed == nil {
		return
	}
	q.Phase, q.Closed, q.Delivery.Receipt = events.PhaseClose, closed, receipt
	if err := r.update(ctx, updater, q); err != nil {
		r.logged(q, slog.LevelWarn, events.NotDelivered, faultOf(err).Code)
	}
}

// counted reports that a task's kind, after an accepted receipt was stored, is one that an open and reached question has, or
// that nobody said. With any other kind the question may have ended, or have been replaced, while it was on its way.
func counted(k events.Kind) bool {
	switch k {
	case "", events.Reached, events.Rerouted, events.Reminded, events.Overdue:
		return true
	default:
		return false
	}
}

func look(ctx context.Context, b *bus.Bus, p events.Place, r events.StateRequest) (events.QuestionReply, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	var reply events.QuestionReply
	err := b.Ask(ctx, b.Space().AdapterState(p.Channel, p.Agent, p.Task), r, &reply)
	return reply, err
}
