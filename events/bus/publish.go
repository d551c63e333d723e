package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of JetStream's errors (nats-server, errors.json).
const (
	codeWrongLast         jetstream.ErrorCode = 10071
	codeWrongLastInFlight jetstream.ErrorCode = 10164 // against a message that may never be stored
	codeStoreFailed       jetstream.ErrorCode = 10077 // limits and disk errors alike
	codeNoResources       jetstream.ErrorCode = 10023
	codeBatchDuplicate    jetstream.ErrorCode = 10201
	codeBatchIncomplete   jetstream.ErrorCode = 10176
	codeBatchesInFlight   jetstream.ErrorCode = 10210
	codeTooLarge          jetstream.ErrorCode = 10054
	codeNoMessage         jetstream.ErrorCode = 10037
	codeNoStream          jetstream.ErrorCode = 10059
)

// ack is the server's word on a publish.
type ack struct {
	Error     *jetstream.APIError `json:"error"`
	Stream    string              `json:"stream"`
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Count     int                 `json:"count"`
}

var errDuplicate = errors.New("the server dropped the message as a duplicate of another")

func readAck(m *nats.Msg) (ack, error) {
	var a ack
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return ack{}, fmt.Errorf("read the server's acknowledgement: %w", err)
	}
	switch {
	case a.Error != nil && a.Error.ErrorCode == codeTooLarge:
		return ack{}, ErrTooLarge
	case a.Error != nil:
		return ack{}, a.Error
	case a.Duplicate: // its body was not stored, whatever the sequence says
		return ack{}, errDuplicate
	case a.Seq == 0:
		return ack{}, errors.New("read the server's acknowledgement: it has no sequence")
	}
	return a, nil
}

// Publish stores an event where its subject belongs and returns its sequence. It sends again until the server answers or the
// context ends, so the event can be stored more than once, always with the same id. It returns ErrFull, ErrNobody,
// ErrTooLarge, ErrDenied or the context's error when it could not; the event may have been stored all the same.
func (b *Bus) Publish(ctx context.Context, subject string, e events.Envelope) (uint64, error) {
	if _, err := b.space.Parse(subject); err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	m, err := b.sealed(subject, e)
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", b.family(subject), err)
	}
	seq, err := b.store(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", b.family(subject), err)
	}
	return seq, nil
}

func (b *Bus) store(ctx context.Context, m *nats.Msg) (uint64, error) {
	for {
		reply, err := b.roundTrip(ctx, m)
		if errors.Is(err, errSilent) {
			continue
		}
		if err != nil {
			return 0, err
		}
		a, err := readAck(reply)
		if api, ok := errors.AsType[*jetstream.APIError](err); ok && (api.ErrorCode == codeStoreFailed || api.ErrorCode == codeNoResources) {
			return 0, ErrFull
		}
		return a.Seq, err
	}
}
