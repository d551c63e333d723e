package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// MaxBatch is how many messages one atomic batch may have: the server's limit.
const MaxBatch = 1000

// Headers of an atomic batch (JetStream ADR-50).
const (
	headerBatch    = "Nats-Batch-Id"
	headerBatchSeq = "Nats-Batch-Sequence"
	headerCommit   = "Nats-Batch-Commit"
)

// AppendAll stores entries of different tasks in one atomic batch, and returns the sequence of each. One stale guard fails
// them all with ErrReread. Two entries with one guard are refused as a programming error: the server would store both. At
// most MaxBatch entries.
func (b *Bus) AppendAll(ctx context.Context, entries []Entry) ([]uint64, error) {
	guards := make(map[string]bool, len(entries))
	batch := make([]*nats.Msg, len(entries))
	for i, e := range entries {
		if guards[e.Guard] {
			return nil, errors.New("append a batch: two entries have one guard, and the server would store both")
		}
		guards[e.Guard] = true
		var err error
		if batch[i], err = b.guarded(e); err != nil {
			return nil, fmt.Errorf("append a batch: %w", err)
		}
	}
	last, err := b.appendBatch(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("append a batch: %w", err)
	}
	seqs := make([]uint64, len(batch))
	for i := range seqs {
		seqs[i] = last - uint64(len(batch)-1-i)
	}
	return seqs, nil
}

// AppendAudit stores records in one atomic batch behind the sequence that the audit stream must end with, and returns the
// sequence of the last. ErrReread means that another writer is active. At most MaxBatch records.
func (b *Bus) AppendAudit(ctx context.Context, last uint64, records []events.Envelope) (uint64, error) {
	batch := make([]*nats.Msg, len(records))
	for i, e := range records {
		r, ok := e.Data.(events.Record)
		if !ok {
			return 0, fmt.Errorf("append to the audit: a %T is no record", e.Data)
		}
		var err error
		if batch[i], err = b.sealed(b.space.Audit(r.Agent, r.Task), e); err != nil {
			return 0, fmt.Errorf("append to the audit: %w", err)
		}
	}
	if len(batch) == 0 {
		return last, nil
	}
	batch[0].Header[headerLast] = []string{strconv.FormatUint(last, 10)}
	seq, err := b.appendBatch(ctx, batch)
	if err != nil {
		return 0, fmt.Errorf("append to the audit: %w", err)
	}
	return seq, nil
}

// appendBatch stores all messages or none and returns the sequence of the last.
func (b *Bus) appendBatch(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	switch {
	case len(batch) == 0:
		return 0, nil
	case len(batch) == 1:
		return b.appendOne(ctx, batch[0])
	case len(batch) > MaxBatch:
		return 0, fmt.Errorf("%d messages, the server takes %d at once", len(batch), MaxBatch)
	}
	reply, err := b.sendBatch(ctx, batch)
	if err != nil {
		return 0, reread(err)
	}
	a, err := readAck(reply)
	if err == nil && a.Count != len(batch) {
		err = fmt.Errorf("the server stored %d of %d messages of an atomic batch", a.Count, len(batch))
	}
	return a.Seq, reread(err)
}

// sendBatch sends all messages in one go and waits for the acknowledgement of the last, which commits: one round trip.
func (b *Bus) sendBatch(ctx context.Context, batch []*nats.Msg) (*nats.Msg, error) {
	replies := make(chan *nats.Msg, 4) // one is read; what else the server says of the batch is not
	sub, err := b.nc.ChanSubscribe(b.nc.NewInbox(), replies)
	if err != nil {
		return nil, sendError(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	denied := make(chan struct{})
	defer b.denials.watch(batch[0].Subject, func() { close(denied) })()
	if err := b.send(batch, sub.Subject); err != nil {
		return nil, sendError(err)
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case m := <-replies:
		if len(m.Data) == 0 {
			return nil, ErrNobody
		}
		return m, nil
	case <-denied:
		return nil, ErrDenied
	case <-limit.C:
		return nil, errSilent
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *Bus) send(batch []*nats.Msg, inbox string) error {
	id := nuid.Next()
	b.batch.Lock()
	defer b.batch.Unlock()
	for i, m := range batch {
		m.Header[headerBatch] = []string{id}
		m.Header[headerBatchSeq] = []string{strconv.Itoa(i + 1)}
		if i == len(batch)-1 {
			m.Header[headerCommit] = []string{"1"}
			m.Reply = inbox
		}
		if err := b.nc.PublishMsg(m); err != nil {
			return err
		}
	}
	return nil
}
