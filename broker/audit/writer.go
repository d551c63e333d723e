package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// A batch is appended when it has batchSize records, or batchWait after its first message came: records cost one sync of the
// disk per batch.
const (
	batchSize = 256
	batchWait = 100 * time.Millisecond
)

// pollEvery is how often a writer that stands by looks whether the active one still works.
const pollEvery = 2 * time.Second

// idlePolls is how many of them the active writer waits before it looks at a quiet log.
const idlePolls = 10

// ErrLogWentBack means that the task log ends before what the audit has seen of it: messages that were acknowledged are
// gone. Nothing may be released until somebody has looked into it.
var ErrLogWentBack = errors.New("the task log ends before what the audit has seen of it: acknowledged messages are lost")

// ErrNoHead means that the audit stream is not new but its last record cannot be read. Nothing is written, since a chain
// that starts again would hide what was there.
var ErrNoHead = errors.New("the audit stream has been written to, but its last record is not there")

// Writer records the task log in the audit. Any number may run, one per replica: one of them is active.
type Writer struct {
	bus    *bus.Bus
	key    []byte
	log    *slog.Logger
	alarm  func(error)
	poll   time.Duration
	cursor atomic.Uint64

	checked atomic.Bool

	tried    events.Digest // hash of the last record this writer tried to append
	alarmed  uint64        // sequence of the last loss this writer raised
	replaced uint64        // sequence of a record whose message in the log is another one now
}

// NewWriter returns a writer whose HMACs are under key. alarm is told of every loss of data that nobody has acknowledged, at
// the latest when the writer starts or next looks; it must freeze releases before it returns.
func NewWriter(b *bus.Bus, key []byte, log *slog.Logger, alarm func(error)) *Writer {
	return &Writer{bus: b, key: key, log: log, alarm: alarm, poll: pollEvery}
}

// Cursor is the sequence of the task log up to which every message is on record. A task may be forgotten once it is final and
// the cursor has passed it. A writer that stands by knows it with a delay of seconds.
func (w *Writer) Cursor() uint64 { return w.cursor.Load() }

// Checked reports that the log has been compared with what the audit has seen of it since Run began, and that a loss, if there
// is one, was raised.
func (w *Writer) Checked() bool { return w.checked.Load() }

// Run writes until the context ends, or stands by while another writer does. What goes wrong is logged and tried again: the
// log keeps everything until it is on record.
func (w *Writer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		h, err := w.head(ctx)
		if err == nil {
			err = w.write(ctx, h)
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, bus.ErrReread):
			w.standBy(ctx)
		case err != nil:
			w.log.ErrorContext(ctx, "audit interrupted", "log", w.Cursor(), "error", err)
			w.wait(ctx)
		}
	}
	return nil
}

func (w *Writer) wait(ctx context.Context) {
	timer := time.NewTimer(w.poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// head is where the audit ends: its last record, and the sequence of the stream.
type head struct {
	record events.Record
	seq    uint64
}

// head reads the cursor, which is the last record itself, and looks whether the log still reaches as far.
func (w *Writer) head(ctx context.Context) (head, error) {
	h, err := readHead(ctx, w.bus)
	if err != nil {
		return head{}, err
	}
	if err := w.unacknowledged(ctx); err != nil {
		return head{}, err
	}
	w.cursor.Store(h.record.Log)
	return h, nil
}

func readHead(ctx context.Context, b *bus.Bus) (head, error) {
	m, err := b.Last(ctx, bus.Audit, b.Space().Audit("*", "*"))
	if errors.Is(err, bus.ErrNotFound) {
		last, err := b.LastSeq(ctx, bus.Audit)
		if err == nil && last > 0 {
			err = ErrNoHead
		}
		return head{}, err
	}
	if err != nil {
		return head{}, err
	}
	r, ok := m.Envelope.Data.(events.Record)
	if !ok {
		return head{}, fmt.Errorf("message %d of the audit is no record", m.Seq)
	}
	return head{r, m.Seq}, nil
}

// write is the active writer: it records what comes behind the head until the context ends, another writer turns out to be
// active (bus.ErrReread), or something fails.
func (w *Writer) write(ctx context.Context, h head) error {
	h, err := w.checkLog(ctx, h)
	if err != nil {
		return err
	}
	w.checked.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	feed := make(chan bus.Message)
	var tail error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(feed)
		tail = w.bus.Tail(ctx, bus.Tasks, h.record.Log, filters(w.bus.Space()), func(ctx context.Context, m bus.Message) error {
			select {
			case feed <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	defer wg.Wait()
	defer cancel()
	for {
		batch, more := w.collect(feed)
		if h, err = w.append(ctx, h, batch); err != nil {
			return err
		}
		if !more {
			return tail
		}
	}
}

func filters(s events.Space) []string {
	return []string{s.Task("*", "*", "*"), string(s) + ".refused.*.*.*"}
}

// collect waits for a message and takes what comes soon after it. The batch is empty when none has come for a while. more is
// false when the feed has ended.
func (w *Writer) collect(feed <-chan bus.Message) (batch []bus.Message, more bool) {
	timer := time.NewTimer(idlePolls * w.poll)
	defer timer.Stop()
	for len(batch) < batchSize {
		select {
		case m, more := <-feed:
			if !more {
				return batch, false
			}
			if batch = append(batch, m); len(batch) == 1 {
				timer.Reset(batchWait)
			}
		case <-timer.C:
			return batch, true
		}
	}
	return batch, true
}

// append records a batch behind the head, all of it or nothing, and returns the new head. The log is looked at each time: one
// that has come back shorter sends no messages until it has grown again.
func (w *Writer) append(ctx context.Context, h head, batch []bus.Message) (head, error) {
	end, err := w.bus.LastSeq(ctx, bus.Tasks)
	if err != nil {
		return h, err
	}
	if end < h.record.High {
		w.raise(h.record.Seq+1, h.record.High, end)
		return h, ErrLogWentBack
	}
	if len(batch) > 0 && batch[0].Seq == h.record.Log {
		if err := w.same(h, batch[0]); err != nil {
			return h, err
		}
		batch = batch[1:]
	}
	if len(batch) == 0 {
		return h, nil
	}
	if err := w.unbroken(ctx, h); err != nil {
		return h, err
	}
	envelopes, last, err := w.records(ctx, h, batch, end)
	if err != nil {
		return h, err
	}
	if len(envelopes) > 0 {
		w.tried = last.Hash
		seq, err := w.bus.AppendAudit(ctx, h.seq, envelopes)
		if err != nil {
			return h, err
		}
		h = head{last, seq}
	}
	w.cursor.Store(batch[len(batch)-1].Seq)
	return h, nil
}

// unbroken looks whether the log still holds what the head is about: a log that came back shorter and has grown since sends
// messages as if nothing had happened. One that was forgotten with its task says nothing.
func (w *Writer) unbroken(ctx context.Context, h head) error {
	if h.record.Log == 0 {
		return nil
	}
	m, err := w.bus.At(ctx, bus.Tasks, h.record.Log)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil
	case err != nil && m.Seq == 0:
		return err
	}
	return w.same(h, m)
}

// records chains what of a batch is to be recorded behind the head, and returns the last record too.
func (w *Writer) records(ctx context.Context, h head, batch []bus.Message, end uint64) ([]events.Envelope, events.Record, error) {
	var envelopes []events.Envelope
	last := h.record
	for _, m := range batch {
		if counts, err := w.counts(ctx, m); err != nil {
			return nil, last, err
		} else if !counts {
			continue
		}
		r := Redact(w.key, m)
		r.High = end
		if err := Link(last, &r); err != nil {
			return nil, last, err
		}
		envelopes, last = append(envelopes, events.Envelope{Source: w.bus.Source(), Time: r.At, Data: r}), r
	}
	return envelopes, last, nil
}

// counts reports whether a message is to be recorded: every transition is, and of the refusals on one subject the first that
// is in the log. It asks the log and not its memory, so that every replica says the same, before and after a restart.
func (w *Writer) counts(ctx context.Context, m bus.Message) (bool, error) {
	s := m.Subject
	if s.Family != "refused" {
		return true, nil
	}
	first, err := w.bus.First(ctx, bus.Tasks, w.bus.Space().Refused(s.Agent, s.Task, s.ID))
	if errors.Is(err, bus.ErrNotFound) {
		return true, nil // it has expired since, and whatever was there before it
	}
	if err != nil && first.Seq == 0 {
		return false, err
	}
	return first.Seq >= m.Seq, nil
}

// standBy waits until the audit has stood still while there was something to record: the active writer is gone. It returns
// at once if it turns out that nobody but this writer wrote, whose acknowledgement was lost.
func (w *Writer) standBy(ctx context.Context) {
	seen := uint64(math.MaxUint64)
	for ctx.Err() == nil {
		h, err := w.head(ctx)
		switch {
		case err != nil:
			w.log.WarnContext(ctx, "audit unreadable", "error", err)
		case h.record.Hash == w.tried && w.tried != "":
			return
		case h.seq == seen && w.behind(ctx, h):
			w.log.InfoContext(ctx, "audit stands still, taking over", "record", h.record.Seq)
			return
		case seen == math.MaxUint64:
			w.log.InfoContext(ctx, "another audit writer is active", "record", h.record.Seq)
			seen = h.seq
		default:
			seen = h.seq
		}
		w.wait(ctx)
	}
}

// behind reports that the log holds something newer than the head, or cannot be read as it should.
func (w *Writer) behind(ctx context.Context, h head) bool {
	for _, pattern := range filters(w.bus.Space()) {
		m, err := w.bus.Last(ctx, bus.Tasks, pattern)
		if _, unreadable := errors.AsType[*events.Invalid](err); unreadable || err == nil && m.Seq > h.record.Log {
			return true
		}
	}
	return false
}
