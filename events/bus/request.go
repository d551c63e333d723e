package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Request is one core request.
type Request struct {
	Subject events.Subject
	Body    []byte
}

// maxReply is the size of a reply, in bytes: a state and what goes around it.
const maxReply = 2 * events.MaxState

// headerFailed marks a reply that says why there is none. Its value is the Code of a Failed.
const headerFailed = "Clarify-Failed"

// Code is why a request was not carried out.
type Code string

// Why a request was not carried out.
const (
	CodeInvalid     Code = "invalid"     // the request is wrong; Failed.Field says where
	CodeUnavailable Code = "unavailable" // ask again later
	CodeInternal    Code = "internal"    // a bug, or a policy or configuration that does not fit
)

// Failed is what a broker answers to a request it did not carry out.
type Failed struct {
	Code  Code   `json:"error"`
	Field string `json:"field,omitzero"` // of the request
}

func (f *Failed) Error() string {
	if f.Field != "" {
		return fmt.Sprintf("the broker answers: %s (%.80s)", f.Code, f.Field)
	}
	return "the broker answers: " + string(f.Code)
}

// Is makes a Failed that says unavailable an ErrNobody: both mean to ask again.
func (f *Failed) Is(target error) bool { return target == ErrNobody && f.Code == CodeUnavailable }

// Serve answers core requests on a subject pattern, one of the queue's members each, with what the handler returns encoded
// by events.Encode. An error is answered as {"error": …} with a stable code and no free text. It returns nil when the context
// has ended and all handlers have; requests that are under way then are answered as unavailable if their handlers give up.
func (b *Bus) Serve(ctx context.Context, pattern, queue string, workers int, handle func(context.Context, Request) (any, error)) error {
	free := make(chan struct{}, max(workers, 1))
	var busy sync.WaitGroup
	closed := make(chan struct{})
	denied := make(chan struct{})
	defer b.denials.watch(pattern, func() { close(denied) })()
	// The library queues what no worker is free for, up to its limit for a slow subscriber, and drops the rest.
	sub, err := b.nc.QueueSubscribe(pattern, queue, func(m *nats.Msg) {
		free <- struct{}{}
		busy.Go(func() {
			defer func() { <-free }()
			b.answer(ctx, m, handle)
		})
	})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	sub.SetClosedHandler(func(string) { close(closed) })
	select {
	case <-ctx.Done():
	case <-denied:
		err = fmt.Errorf("serve: %w", ErrDenied)
	case <-closed:
		return fmt.Errorf("serve: %w", nats.ErrConnectionClosed)
	}
	if sub.Drain() == nil {
		<-closed
	}
	busy.Wait()
	return err
}

func (b *Bus) answer(ctx context.Context, m *nats.Msg, handle func(context.Context, Request) (any, error)) {
	if m.Reply == "" { // nobody would hear the answer
		return
	}
	reply := nats.NewMsg(m.Reply)
	body, err := b.result(ctx, m, handle)
	if err != nil {
		f := failure(err)
		if f.Code == CodeInternal {
			b.log.ErrorContext(ctx, "request failed", "family", b.family(m.Subject), "error", err)
		}
		reply.Header.Set(headerFailed, string(f.Code))
		body, _ = json.Marshal(f)
	}
	reply.Data = body
	if err := m.RespondMsg(reply); err != nil {
		b.log.WarnContext(ctx, "request not answered", "family", b.family(m.Subject), "error", err)
	}
}

func (b *Bus) result(ctx context.Context, m *nats.Msg, handle func(context.Context, Request) (any, error)) ([]byte, error) {
	s, err := b.space.Parse(m.Subject)
	if err != nil {
		return nil, err
	}
	out, err := handle(ctx, Request{Subject: s, Body: m.Data})
	if err != nil {
		return nil, err
	}
	body, err := events.Encode(out)
	if err == nil && len(body) > maxReply {
		return nil, ErrTooLarge
	}
	return body, err
}

func failure(err error) *Failed {
	if inv, ok := errors.AsType[*events.Invalid](err); ok {
		return &Failed{Code: CodeInvalid, Field: inv.Field}
	}
	if Unavailable(err) {
		return &Failed{Code: CodeUnavailable}
	}
	return &Failed{Code: CodeInternal}
}

// Ask sends a core request and decodes the reply into reply, a pointer. ErrNobody when no broker answers in time: after five
// seconds, or when the context ends before. A *Failed when a broker answers that it did not carry it out.
func (b *Bus) Ask(ctx context.Context, subject string, request, reply any) error {
	m := nats.NewMsg(subject)
	if request != nil {
		body, err := events.Encode(request)
		if err != nil {
			return fmt.Errorf("ask %s: %w", b.family(subject), err)
		}
		m.Data = body
	}
	r, err := b.roundTrip(ctx, m)
	switch {
	case errors.Is(err, errSilent):
		err = ErrNobody
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", ErrNobody, err)
	case err == nil:
		err = readReply(r, reply)
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", b.family(subject), err)
	}
	return nil
}

func readReply(m *nats.Msg, reply any) error {
	code := m.Header.Get(headerFailed)
	if code == "" {
		return events.Decode(m.Data, maxReply, reply)
	}
	f := &Failed{}
	if err := events.Decode(m.Data, maxReply, f); err != nil {
		return &Failed{Code: Code(code)}
	}
	return f
}

// Tell sends an event to whoever listens now. Nothing is stored.
func (b *Bus) Tell(subject string, e events.Envelope) error {
	m, err := b.sealed(subject, e)
	if err != nil {
		return fmt.Errorf("tell %s: %w", b.family(subject), err)
	}
	if err := b.nc.PublishMsg(m); err != nil {
		return fmt.Errorf("tell %s: %w", b.family(subject), err)
	}
	return nil
}

// Wake tells waiters that something of a task moved that the log's own wake-ups do not show.
func (b *Bus) Wake(subject string) error {
	if err := b.nc.Publish(subject, nil); err != nil {
		return fmt.Errorf("tell %s: %w", b.family(subject), err)
	}
	return nil
}
