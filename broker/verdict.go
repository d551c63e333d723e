package broker

import (
	"context"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// answers takes what people submitted, and receipts no broker was there to take, off their stream.
type answers struct {
	core
	index *Index
}

func (a answers) run(ctx context.Context) error {
	return a.bus.Consume(ctx, bus.Consumer{Stream: bus.Answers, Name: "answers", Workers: workers}, a.handle)
}

func (a answers) handle(ctx context.Context, m bus.Message) error {
	switch v := m.Envelope.Data.(type) {
	case events.Answer:
		v.Responder.Channel = m.Subject.Channel
		return a.judge(ctx, m, v.Question, v.Submission, func(s Snapshot, now time.Time) Change {
			return a.rules().Answer(s, v, moment(now, string(v.Submission)))
		})
	case events.ApprovalAnswer:
		v.Responder.Channel = m.Subject.Channel
		return a.judge(ctx, m, v.Question, v.Submission, func(s Snapshot, now time.Time) Change {
			return a.rules().Approve(s, v, moment(now, string(v.Submission)))
		})
	case events.DeliveryReport:
		_, err := a.ledger.Apply(ctx, Key{v.Agent, v.Task}, func(s Snapshot, now time.Time) Change {
			return a.rules().Report(s, v, m.Subject.Channel, moment(now, m.Envelope.ID))
		})
		return err
	}
	return bus.Poison("neither an answer, an approval nor a receipt")
}

// judge applies one submission and tells the surface that made it what became of it, after that is durable. A submission
// that was refused before gets the same verdict again, also when another replica refused it at the same time.
func (a answers) judge(ctx context.Context, m bus.Message, q events.QuestionID, id events.SubmissionID, fn func(Snapshot, time.Time) Change) error {
	k := Key{m.Subject.Agent, m.Subject.Task}
	var refusal *events.Refusal
	var err error
	if a.index.mayBeRefused(k, string(id)) {
		if refusal, err = a.ledger.Refused(ctx, k, string(id)); err != nil {
			return err
		}
	}
	res := Result{Refusal: refusal}
	if refusal == nil {
		if res, err = a.ledger.Apply(ctx, k, fn); err != nil {
			return err
		}
		if res, err = a.first(ctx, k, res, id); err != nil {
			return err
		}
	} else if res.Snapshot, err = a.ledger.Read(ctx, k); err != nil {
		return err
	}
	v := verdict(res, m.Subject.Version, q, id)
	v.Agent, v.Task = k.Agent, k.Task
	return a.bus.Tell(a.bus.Space().Verdict(m.Subject.Place()), events.Envelope{Source: a.bus.Source(), Time: v.At, Data: v})
}

// first puts the refusal that counts in the place of one that was recorded behind it.
func (a answers) first(ctx context.Context, k Key, res Result, id events.SubmissionID) (Result, error) {
	if res.Refusal == nil {
		return res, nil
	}
	counts, err := a.ledger.Refused(ctx, k, string(id))
	if counts != nil {
		res.Refusal = counts
	}
	return res, err
}

// verdict says what became of a submission. Open is about the question it named.
func verdict(res Result, version events.Version, q events.QuestionID, id events.SubmissionID) events.Verdict {
	s := res.State
	v := events.Verdict{
		Agent: s.Agent, Task: s.Task, Version: version, Question: q, Submission: id,
		Refusal: res.Refusal, Accepted: res.Refusal == nil, Kind: s.Kind, Current: s.Version, At: s.At,
	}
	v.Open = waiting(s) && s.Pause.Version == version && s.Pause.Question == q
	if res.Refusal != nil {
		v.At = res.Refusal.At
	}
	return v
}
