package channels

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// ErrPending is returned when a submission is stored and no verdict on it has come yet. The person is told "received,
// checking": never saved, never lost. The same submission may be sent again, and gets the verdict.
var ErrPending = errors.New("received, checking")

// Desk is where an adapter hands in what a person answered, and learns what became of it. One desk of a channel serves any
// number of people at once: it hears all verdicts of its channel and hands each to whom it concerns.
type Desk struct {
	bus     *bus.Bus
	channel events.Channel
	wait    time.Duration

	mu      sync.Mutex
	waiting map[submission][]chan events.Verdict
}

// submission names one submission; an id alone would let one task's verdict pass for another's.
type submission struct {
	agent   events.Agent
	task    events.Task
	version events.Version
	id      events.SubmissionID
}

// NewDesk makes the desk of a channel. wait is how long a submission waits for its verdict, 5 s when 0; a provider that
// wants an answer within 3 s needs less. Run must run meanwhile.
func NewDesk(b *bus.Bus, channel events.Channel, wait time.Duration) *Desk {
	if wait <= 0 {
		wait = 5 * time.Second
	}
	return &Desk{bus: b, channel: channel, wait: wait, waiting: make(map[submission][]chan events.Verdict)}
}

// Channel is the channel whose answers this desk takes.
func (d *Desk) Channel() events.Channel { return d.channel }

// Run hears the verdicts of the channel until the context ends. Without it every submission takes a look at the broker's
// state, and a moment longer.
func (d *Desk) Run(ctx context.Context) error {
	err := d.bus.Listen(ctx, d.bus.Space().Verdicts(d.channel), d.hear)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Submit hands in an answer and returns the broker's verdict on it. A refusal is a verdict, not an error. The error is an
// [*events.Invalid] for an answer that is none, [ErrPending], or what kept it from being stored: then it may be stored all
// the same, and sending it again under the same submission id is harmless.
func (d *Desk) Submit(ctx context.Context, a events.Answer) (events.Verdict, error) {
	a.Responder.Channel = d.channel
	if a.ReceivedAt.IsZero() {
		a.ReceivedAt = time.Now().UTC()
	}
	if err := a.Validate(); err != nil {
		return events.Verdict{}, err
	}
	id := submission{a.Agent, a.Task, a.Version, a.Submission}
	return d.submit(ctx, d.bus.Space().Answer(d.place(id)), id, a)
}

// SubmitApproval hands in an approval or a denial, as Submit does an answer. a.Action must be the digest the approver was
// shown.
func (d *Desk) SubmitApproval(ctx context.Context, a events.ApprovalAnswer) (events.Verdict, error) {
	a.Responder.Channel = d.channel
	if a.ReceivedAt.IsZero() {
		a.ReceivedAt = time.Now().UTC()
	}
	if err := a.Validate(); err != nil {
		return events.Verdict{}, err
	}
	id := submission{a.Agent, a.Task, a.Version, a.Submission}
	return d.submit(ctx, d.bus.Space().Approval(d.place(id)), id, a)
}

// Look asks the broker what has become of a question on this desk's channel, whatever p.Channel says.
func (d *Desk) Look(ctx context.Context, p events.Place) (events.QuestionReply, error) {
	p.Channel = d.channel
	reply, err := look(ctx, d.bus, p, events.StateRequest{Version: p.Version})
	if err != nil {
		return events.QuestionReply{}, fmt.Errorf("look at %s/%s v%d: %w", p.Agent, p.Task, p.Version, err)
	}
	return reply, nil
}

func (d *Desk) place(id submission) events.Place {
	return events.Place{Channel: d.channel, Agent: id.agent, Task: id.task, Version: id.version}
}

// submit waits for the verdict from before it publishes, so that none is missed.
func (d *Desk) submit(ctx context.Context, subject string, id submission, data any) (events.Verdict, error) {
	heard := d.expect(id)
	defer d.forget(id, heard)
	e := events.Envelope{ID: string(id.id), Source: d.bus.Source(), Time: time.Now().UTC(), Data: data}
	if _, err := d.bus.Publish(ctx, subject, e); err != nil {
		return events.Verdict{}, fmt.Errorf("store submission to %s/%s v%d: %w", id.agent, id.task, id.version, err)
	}
	early, end := time.NewTimer(d.wait/5), time.NewTimer(d.wait)
	defer early.Stop()
	defer end.Stop()
	for {
		select {
		case v := <-heard:
			return v, nil
		case <-early.C:
			if v := d.verdict(ctx, id); v != nil {
				return *v, nil
			}
		case <-end.C:
			if v := d.verdict(ctx, id); v != nil {
				return *v, nil
			}
			return events.Verdict{}, ErrPending
		case <-ctx.Done():
			return events.Verdict{}, fmt.Errorf("%w: %w", ErrPending, ctx.Err())
		}
	}
}

// verdict asks for a verdict that was given and not heard; nil when there is none, or nobody to ask.
func (d *Desk) verdict(ctx context.Context, id submission) *events.Verdict {
	reply, err := look(ctx, d.bus, d.place(id), events.StateRequest{Version: id.version, Submission: id.id})
	if err != nil || reply.Verdict == nil || submissionOf(*reply.Verdict) != id {
		return nil
	}
	return reply.Verdict
}

func submissionOf(v events.Verdict) submission {
	return submission{v.Agent, v.Task, v.Version, v.Submission}
}

func (d *Desk) expect(id submission) chan events.Verdict {
	heard := make(chan events.Verdict, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = append(d.waiting[id], heard)
	return heard
}

func (d *Desk) forget(id submission, heard chan events.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.waiting[id][:0:0]
	for _, c := range d.waiting[id] {
		if c != heard {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		delete(d.waiting, id)
		return
	}
	d.waiting[id] = rest
}

func (d *Desk) hear(m bus.Message) {
	v, ok := m.Envelope.Data.(events.Verdict)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.waiting[submissionOf(v)] {
		select {
		case c <- v:
		default: // it has one already
		}
	}
}
