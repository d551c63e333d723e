package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stored is a message as the leader returns it.
type stored struct {
	Message struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// pick says which message of a stream to read.
type pick struct {
	LastFor string `json:"last_by_subj,omitzero"`
	Seq     uint64 `json:"seq,omitzero"` // with Next: from here on
	Next    string `json:"next_by_subj,omitzero"`
}

// Last reads the last message whose subject matches the pattern, from the stream's leader. ErrNotFound when there is none,
// ErrNobody when there is no leader now.
func (b *Bus) Last(ctx context.Context, stream Stream, pattern string) (Message, error) {
	m, err := b.one(ctx, stream, pick{LastFor: pattern})
	if err != nil {
		return m, fmt.Errorf("read the last of %s: %w", stream, err)
	}
	return m, nil
}

// At reads the message at a sequence, from the stream's leader. Errors are those of Last.
func (b *Bus) At(ctx context.Context, stream Stream, seq uint64) (Message, error) {
	m, err := b.one(ctx, stream, pick{Seq: seq})
	if err != nil {
		return m, fmt.Errorf("read message %d of %s: %w", seq, stream, err)
	}
	return m, nil
}

// First reads the first message that is left whose subject matches the pattern, from the stream's leader. ErrNotFound when
// there is none, ErrNobody when there is no leader now.
func (b *Bus) First(ctx context.Context, stream Stream, pattern string) (Message, error) {
	m, err := b.one(ctx, stream, pick{Seq: 1, Next: pattern})
	if err != nil {
		return m, fmt.Errorf("read the first of %s: %w", stream, err)
	}
	return m, nil
}

// one reads one message. One that cannot be opened is returned with its error, and so with its sequence.
func (b *Bus) one(ctx context.Context, stream Stream, which pick) (Message, error) {
	got, err := b.fetch(ctx, b.streamName(stream), which)
	if err != nil {
		return Message{}, err
	}
	var header nats.Header
	if len(got.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(got.Message.Header); err != nil {
			return Message{}, err
		}
	}
	m := b.read(got.Message.Subject, header, got.Message.Data)
	m.Seq, m.Stored, m.Deliveries = got.Message.Seq, got.Message.Time, 1
	return m, m.Problem
}

// fetch asks STREAM.MSG.GET, which only the leader answers. nats.go's own call would use a direct get, which any replica
// answers, as soon as somebody allowed that on the stream.
func (b *Bus) fetch(ctx context.Context, stream string, which pick) (stored, error) {
	var got stored
	err := b.api(ctx, "STREAM.MSG.GET."+stream, which, &got)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == codeNoMessage {
		return got, ErrNotFound
	}
	return got, err
}

// LastSeq is the sequence the stream's leader ends with.
func (b *Bus) LastSeq(ctx context.Context, stream Stream) (uint64, error) {
	var info struct {
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := b.api(ctx, "STREAM.INFO."+b.streamName(stream), nil, &info); err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", stream, err)
	}
	return info.State.Last, nil
}

// Purge removes the messages on subject up to and including the sequence. The subject must name one task; only its last
// token may be a wildcard.
func (b *Bus) Purge(ctx context.Context, stream Stream, subject string, upTo uint64) error {
	named := subject
	if whole, ok := strings.CutSuffix(subject, ".*"); ok {
		named = whole + ".any"
	}
	if _, err := b.space.Parse(named); err != nil {
		return fmt.Errorf("purge %s: %w", stream, err)
	}
	before := upTo + 1
	if upTo == 0 || before == 0 {
		return fmt.Errorf("purge %s: name the last sequence to remove, the server would take 0 for all", stream)
	}
	var done struct {
		Success bool `json:"success"`
	}
	err := b.api(ctx, "STREAM.PURGE."+b.streamName(stream), struct {
		Filter string `json:"filter"`
		Before uint64 `json:"seq"`
	}{subject, before}, &done)
	if err != nil {
		return fmt.Errorf("purge %s: %w", stream, err)
	}
	return nil
}
