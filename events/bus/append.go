package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of a guarded append (JetStream ADR-5, ADR-50, ADR-43).
const (
	headerLast       = "Nats-Expected-Last-Sequence"
	headerLastFor    = "Nats-Expected-Last-Subject-Sequence"
	headerLastForAll = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerTTL        = "Nats-TTL"
)

// Entry is one guarded append.
type Entry struct {
	Subject  string
	Envelope events.Envelope
	Guard    string        // Space.TaskAll of the subject's task: its last sequence must be Last
	Last     uint64        // 0: nothing must be there
	TTL      time.Duration // refusals of unknown tasks only; rounded up to seconds
}

// Append stores an entry under its guard and returns its sequence. ErrReread is the only error a caller can act on.
func (b *Bus) Append(ctx context.Context, e Entry) (uint64, error) {
	m, err := b.guarded(e)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	seq, err := b.appendOne(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("append %s: %w", b.family(e.Subject), err)
	}
	return seq, nil
}

func (b *Bus) appendOne(ctx context.Context, m *nats.Msg) (uint64, error) {
	reply, err := b.roundTrip(ctx, m)
	if err != nil {
		return 0, reread(err)
	}
	a, err := readAck(reply)
	return a.Seq, reread(err)
}

// guarded makes the message of an entry. A guard of another text than the other writers' would protect nothing, and one that
// matches nothing in the stream always holds: both are refused.
func (b *Bus) guarded(e Entry) (*nats.Msg, error) {
	s, err := b.space.Parse(e.Subject)
	if err != nil {
		return nil, err
	}
	if want := b.space.TaskAll(s.Agent, s.Task); e.Guard != want {
		return nil, fmt.Errorf("append %s: the guard is not the task's own pattern, which every writer must use", s.Family)
	}
	if s.Family == "task" && e.TTL != 0 {
		return nil, errors.New("append task: a state must not expire, since the one before it would come back")
	}
	m, err := b.sealed(e.Subject, e.Envelope)
	if err != nil {
		return nil, err
	}
	if len(m.Data) > events.MaxState { // it could not be read again
		return nil, ErrTooLarge
	}
	guard(m, e.Guard, e.Last)
	if e.TTL > 0 {
		m.Header[headerTTL] = []string{seconds(e.TTL)}
	}
	return m, nil
}

func guard(m *nats.Msg, pattern string, last uint64) {
	m.Header[headerLastFor] = []string{strconv.FormatUint(last, 10)}
	m.Header[headerLastForAll] = []string{pattern}
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10) + "s"
}

// reread turns everything that leaves the outcome open into ErrReread. A context that is over stays what it is, and so does
// what no second attempt can mend.
func reread(err error) error {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeWrongLast, codeWrongLastInFlight, codeStoreFailed, codeNoResources,
			codeBatchDuplicate, codeBatchIncomplete, codeBatchesInFlight:
			return fmt.Errorf("%w (server code %d)", ErrReread, api.ErrorCode)
		}
		return err
	}
	if errors.Is(err, errSilent) || errors.Is(err, ErrNobody) || errors.Is(err, errDuplicate) {
		return fmt.Errorf("%w (%w)", ErrReread, err)
	}
	return err
}
