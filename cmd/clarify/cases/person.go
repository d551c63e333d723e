package cases

import (
	"context"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// person is a channel at whose other end somebody knows what the cases' people know, and nothing else: nobody approves.
type person struct {
	desk    *channels.Desk
	book    *book
	answers sync.WaitGroup
}

func newPerson(b *bus.Bus, channel events.Channel, k *book) *person {
	return &person{desk: channels.NewDesk(b, channel, 30*time.Second), book: k}
}

// Name is the channel's.
func (p *person) Name() events.Channel { return p.desk.Channel() }

// Deliver takes the question over, and answers it as a person would, later.
func (p *person) Deliver(ctx context.Context, q events.Question) (events.Receipt, error) {
	if t := p.book.turn(q.Task); t != nil && q.Phase == events.PhaseAsk {
		p.answers.Go(func() { p.answer(context.WithoutCancel(ctx), t, q) })
	}
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID, At: time.Now().UTC()}, nil
}

// answer submits what the case's person says, and gives the case up when they have nothing to say.
func (p *person) answer(ctx context.Context, t *turn, q events.Question) {
	a := events.Answer{
		Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question,
		Submission: events.SubmissionID(events.TokenFor("case-" + q.Delivery.ID)),
		Responder:  events.Responder{Subject: "case", Assurance: events.Platform},
	}
	for _, f := range q.Content.Fields {
		if given, knows := t.c.given(f); knows {
			a.Values = append(a.Values, given)
		}
	}
	if q.Kind != events.Clarification || len(a.Values) < len(q.Content.Fields) {
		t.giveUp()
		return
	}
	v, err := p.desk.Submit(ctx, a)
	switch {
	case err != nil:
		t.note(err)
		t.giveUp()
	case !v.Accepted && v.Refusal != nil && v.Refusal.Reason != events.Duplicate:
		t.refuse(v.Refusal.Reason)
		t.giveUp()
	case v.Accepted:
		t.answer()
	}
}
