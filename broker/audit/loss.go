package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// checkLog compares the log with the highest sequence the audit has seen of it. A log that is shorter, or is known to have
// been, has lost acknowledged messages: the alarm is raised first, then the loss is recorded, and the audit goes on with what is written to the log from
// there on.
func (w *Writer) checkLog(ctx context.Context, h head) (head, error) {
	end, err := w.bus.LastSeq(ctx, bus.Tasks)
	if err != nil || end >= h.record.High && (w.replaced != h.record.Seq || h.record.Seq == 0) {
		return h, err
	}
	w.raise(h.record.Seq+1, h.record.High, end)
	kept, err := w.kept(ctx, h, end)
	if err != nil {
		return h, err
	}
	r := aboutLog(h, events.Loss{Was: h.record.High, Now: end, Detected: time.Now().UTC()})
	r.Log, r.Key = kept, fingerprint(w.key)
	return w.appendOne(ctx, h, r)
}

// same checks that the message of the last record is still the one that was recorded. A log that came back shorter and has
// grown again since shows in that it is not.
func (w *Writer) same(h head, m bus.Message) error {
	if h.record.Loss != nil || m.Stored.Equal(h.record.At) {
		return nil
	}
	w.raise(h.record.Seq+1, h.record.High, m.Seq)
	w.replaced = h.record.Seq
	return ErrLogWentBack
}

// kept is the sequence up to which the log still holds what the audit knows. Sequences behind it may have been used again
// since; what was stored later than anything on record tells them apart.
func (w *Writer) kept(ctx context.Context, h head, end uint64) (uint64, error) {
	if end == 0 {
		return 0, nil
	}
	kept := end
	enough := errors.New("enough")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := w.bus.Tail(ctx, bus.Tasks, 1, nil, func(_ context.Context, m bus.Message) error {
		if m.Stored.After(h.record.At) && isLogged(m) {
			kept = m.Seq - 1
			return enough
		}
		if m.Seq >= end || m.Pending == 0 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		return 0, fmt.Errorf("read the log again: %w", errors.Join(err, ctx.Err()))
	}
	return min(kept, h.record.Log), nil
}

func isLogged(m bus.Message) bool { return m.Subject.Family == "task" || m.Subject.Family == "refused" }

// unacknowledged raises a recorded loss that nobody has acknowledged yet, so that a replica that starts afterwards, or stands
// by, freezes too.
func (w *Writer) unacknowledged(ctx context.Context) error {
	r, err := lastLoss(ctx, w.bus)
	if err != nil {
		return err
	}
	if r.Loss != nil && r.Loss.By == "" {
		w.raise(r.Seq, r.Loss.Was, r.Loss.Now)
	}
	return nil
}

func (w *Writer) raise(seq, was, now uint64) {
	if w.alarmed == seq {
		return
	}
	w.alarmed = seq
	w.alarm(fmt.Errorf("%w: it had reached %d and ends at %d", ErrLogWentBack, was, now))
}

func lastLoss(ctx context.Context, b *bus.Bus) (events.Record, error) {
	m, err := b.Last(ctx, bus.Audit, b.Space().Audit(events.AboutLog, events.AboutLog))
	if errors.Is(err, bus.ErrNotFound) {
		return events.Record{}, nil
	}
	r, _ := m.Envelope.Data.(events.Record)
	return r, err
}

// aboutLog is a record of something that is no message of the log. It stands where the head does.
func aboutLog(h head, loss events.Loss) events.Record {
	return events.Record{
		Logged: events.Logged{Log: h.record.Log, At: h.record.At}, Agent: events.AboutLog, Task: events.AboutLog,
		Entry: events.Entry{Loss: &loss},
	}
}

func (w *Writer) appendOne(ctx context.Context, h head, r events.Record) (head, error) {
	if err := Link(h.record, &r); err != nil {
		return h, err
	}
	seq, err := w.bus.AppendAudit(ctx, h.seq, []events.Envelope{{Source: w.bus.Source(), Data: r}})
	if err != nil {
		return h, err
	}
	return head{r, seq}, nil
}

// Acknowledge records that somebody has looked into the last loss of data, so that no replica raises it again. It does
// nothing when there is none, or it is acknowledged already. The error is the context's, or the server's.
func (w *Writer) Acknowledge(ctx context.Context, by string) error {
	for {
		h, err := readHead(ctx, w.bus)
		if err != nil {
			return fmt.Errorf("acknowledge a loss: %w", err)
		}
		lost, err := lastLoss(ctx, w.bus)
		if err != nil {
			return fmt.Errorf("acknowledge a loss: %w", err)
		}
		if lost.Loss == nil || lost.Loss.By != "" {
			return nil
		}
		done := *lost.Loss
		done.By = redactor{key: w.key}.id(cmp.Or(by, "operator"))
		r := aboutLog(h, done)
		r.Key = fingerprint(w.key)
		if _, err = w.appendOne(ctx, h, r); !errors.Is(err, bus.ErrReread) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("acknowledge a loss: %w", ctx.Err())
		}
	}
}
