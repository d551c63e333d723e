package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long one attempt waits for the server. A disk that is slower than this is not one to wait for.
const patience = 5 * time.Second

// errSilent means that no reply came in time, or that the connection broke before it could.
var errSilent = errors.New("no reply in time")

// roundTrip sends one message and waits for its reply. Its errors are the context's, ErrDenied, ErrNobody when the server
// says there is nobody, ErrTooLarge, and errSilent.
func (b *Bus) roundTrip(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	inner, cancel := b.unlessDenied(ctx, m.Subject)
	defer cancel()
	inner, stop := context.WithTimeout(inner, patience)
	defer stop()
	reply, err := b.nc.RequestMsgWithContext(inner, m)
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(context.Cause(inner), ErrDenied):
		return nil, ErrDenied
	}
	return nil, sendError(err)
}

// sendError classifies what the client library says about a message it could not send or get a reply for.
func sendError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNobody
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("%w: %w", ErrNobody, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrTimeout):
		return errSilent
	}
	return err
}

// api asks JetStream's API and decodes its reply. Errors are those of roundTrip and *jetstream.APIError.
func (b *Bus) api(ctx context.Context, call string, request, reply any) error {
	m := nats.NewMsg(jetstream.DefaultAPIPrefix + call)
	if request != nil {
		body, err := json.Marshal(request)
		if err != nil {
			return err
		}
		m.Data = body
	}
	r, err := b.roundTrip(ctx, m)
	if errors.Is(err, errSilent) {
		return ErrNobody
	}
	if err != nil {
		return err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(r.Data, &failed); err != nil {
		return fmt.Errorf("read the server's reply: %w", err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(r.Data, reply)
}

// sealed makes a message of an event, once, so that it is the same event however often it is sent.
func (b *Bus) sealed(subject string, e events.Envelope) (*nats.Msg, error) {
	if e.Source == "" {
		e.Source = b.source
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	body, err := events.Seal(e)
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject)
	m.Header["Content-Type"] = []string{events.ContentType}
	m.Data = body
	return m, nil
}

// family names a subject in an error or a log: its second token, which no person or tool has given.
func (b *Bus) family(subject string) string {
	if s, err := b.space.Parse(subject); err == nil {
		return s.Family
	}
	return "unknown"
}
