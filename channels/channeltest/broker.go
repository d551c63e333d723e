package channeltest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Broker is the other side of the wire: it takes reports and submissions as a broker does, and says of them what a test has
// it say. It judges nothing by itself.
type Broker struct {
	Reports chan events.DeliveryReport // that were made, oldest first
	Answers chan bus.Message           // that were submitted, oldest first

	bus    *bus.Bus
	mu     sync.Mutex
	script Script
}

// Script is what a Broker says. A nil member says nothing.
type Script struct {
	Report  func(events.DeliveryReport) events.EffectReply
	Verdict func(a Submitted) *events.Verdict // nil: no verdict is told
	State   func(events.StateRequest) events.QuestionReply
}

// Submitted is what an answer and an approval have in common.
type Submitted struct {
	Place      events.Place
	Submission events.SubmissionID
	Responder  events.Responder
	Answer     *events.Answer // one of the two is set
	Approval   *events.ApprovalAnswer
}

// Verdict is an accepted verdict on the submission, to be changed as a test needs.
func (s Submitted) Verdict() *events.Verdict {
	return &events.Verdict{
		Agent: s.Place.Agent, Task: s.Place.Task, Version: s.Place.Version, Submission: s.Submission,
		Accepted: true, Kind: events.Released, Current: s.Place.Version,
	}
}

// Refuse is a refusal of the submission, of a question that still waits.
func (s Submitted) Refuse(r events.Reason) *events.Verdict {
	v := s.Verdict()
	v.Accepted, v.Open, v.Kind = false, true, events.Reached
	v.Refusal = &events.Refusal{Agent: v.Agent, Task: v.Task, Version: v.Version, Of: "answer", ID: string(v.Submission), Reason: r}
	return v
}

// StartBroker starts a broker that ends with the test.
func StartBroker(t *testing.T, b *bus.Bus, s Script) *Broker {
	t.Helper()
	br := &Broker{Reports: make(chan events.DeliveryReport, 1000), Answers: make(chan bus.Message, 1000), bus: b, script: s}
	Background(t, func(ctx context.Context) error { return b.Serve(ctx, b.Space().Reports(), "broker", 4, br.report) })
	Background(t, func(ctx context.Context) error {
		return b.Serve(ctx, string(b.Space())+".state.adapter.*.*.*", "broker", 4, br.state)
	})
	filters := []string{string(b.Space()) + ".answer.*.*.*.*", string(b.Space()) + ".approval.*.*.*.*"}
	Background(t, func(ctx context.Context) error {
		return b.Consume(ctx, bus.Consumer{Stream: bus.Answers, Name: "broker", Filters: filters}, br.judge)
	})
	return br
}

// Background runs f until the test ends, or until stop is called, and waits for it.
func Background(t *testing.T, f func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Says changes what the broker says from now on.
func (br *Broker) Says(s Script) {
	br.mu.Lock()
	defer br.mu.Unlock()
	br.script = s
}

func (br *Broker) says() Script {
	br.mu.Lock()
	defer br.mu.Unlock()
	return br.script
}

func (br *Broker) report(_ context.Context, r bus.Request) (any, error) {
	var rep events.DeliveryReport
	if err := events.Decode(r.Body, events.MaxAnswer, &rep); err != nil {
		return nil, err
	}
	br.Reports <- rep
	if say := br.says().Report; say != nil {
		return say(rep), nil
	}
	return events.EffectReply{Kind: events.Reached}, nil
}

func (br *Broker) state(_ context.Context, r bus.Request) (any, error) {
	var req events.StateRequest
	if err := events.Decode(r.Body, events.MaxAnswer, &req); err != nil {
		return nil, err
	}
	if say := br.says().State; say != nil {
		return say(req), nil
	}
	return events.QuestionReply{}, nil
}

func (br *Broker) judge(_ context.Context, m bus.Message) error {
	br.Answers <- m
	s := Submitted{Place: m.Subject.Place()}
	switch a := m.Envelope.Data.(type) {
	case events.Answer:
		s.Submission, s.Responder, s.Answer = a.Submission, a.Responder, &a
	case events.ApprovalAnswer:
		s.Submission, s.Responder, s.Approval = a.Submission, a.Responder, &a
	}
	say := br.says().Verdict
	if say == nil {
		return nil
	}
	v := say(s)
	if v == nil {
		return nil
	}
	place := s.Place
	place.Agent, place.Task, place.Version = v.Agent, v.Task, v.Version
	return br.bus.Tell(br.bus.Space().Verdict(place), events.Envelope{Source: br.bus.Source(), Data: *v})
}

// Next returns what comes next, and fails the test if nothing has come within an hour. In a bubble that is no time.
func Next[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	var v T
	select {
	case v = <-from:
	case <-time.After(time.Hour):
		t.Fatal("nothing came within an hour")
	}
	return v
}
