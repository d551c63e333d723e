package broker

import (
	"context"
	"errors"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

var errAnswerFirst = errors.New("an answer was stored before the deadline and is judged first")

// timers takes wake-ups off the log.
type timers struct {
	core
	audited func() uint64 // the log's sequence the audit has reached
}

func (t timers) run(ctx context.Context) error {
	filters := []string{t.bus.Space().Due("*", "*")}
	return t.bus.Consume(ctx, bus.Consumer{Stream: bus.Tasks, Name: "due", Filters: filters, Workers: workers}, t.handle)
}

func (t timers) handle(ctx context.Context, m bus.Message) error {
	k := Key{m.Subject.Agent, m.Subject.Task}
	if err := t.wake(ctx, k, m.Envelope.ID); err != nil {
		return err
	}
	return t.arm(ctx, k, t.rules().Wake)
}

// wake does what is due of a task, one thing after the other.
func (t timers) wake(ctx context.Context, k Key, cause string) error {
	for {
		last, err := t.bus.LastSeq(ctx, bus.Tasks) // before the task is read: what comes later is not the task's that is forgotten
		if err != nil {
			return err
		}
		s, err := t.ledger.Read(ctx, k)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		if Final(s.State.Kind) && !now.Before(t.rules().Wake(s.State)) {
			return t.forget(ctx, k, s, last)
		}
		if err := t.answersFirst(ctx, k, s, t.rules().Due(s, moment(now, cause)), now); err != nil {
			return err
		}
		other := false
		res, err := t.ledger.Apply(ctx, k, func(found Snapshot, _ time.Time) Change {
			if other = found.Seq != s.Seq; other {
				return Change{} // it moved since its answers were looked for
			}
			return t.rules().Due(s, moment(now, cause))
		})
		if err != nil || !res.Moved && !other {
			return err
		}
		if res.Moved && res.State.Kind == events.InDoubt {
			t.log.Warn("effect in doubt: a person must say what became of it (clarify reconcile)",
				"agent", k.Agent, "task", k.Task, "version", res.State.Version)
		}
	}
}

// lateBy is how long answers that are waiting to be judged put off what ends their pause.
const lateBy = time.Minute

// answersFirst has a wake-up that would close a pause come again while an answer is waiting to be judged: what a person said
// in time is not too late because a broker was. Whoever keeps answering wrongly puts it off by a minute and no more.
func (t timers) answersFirst(ctx context.Context, k Key, s Snapshot, c Change, now time.Time) error {
	if c.Next == nil || !waiting(s.State) || waiting(*c.Next) && c.Next.Version == s.State.Version {
		return nil
	}
	if p := s.State.Pause; now.After(earliest(p.Cap, p.Deadline).Add(lateBy)) {
		return nil
	}
	space := t.bus.Space()
	place := events.Place{Channel: "*", Agent: k.Agent, Task: k.Task, Version: s.State.Pause.Version}
	for _, subject := range []string{space.Answer(place), space.Approval(place)} {
		_, err := t.bus.Last(ctx, bus.Answers, subject)
		if err == nil {
			return bus.Later(200*time.Millisecond, errAnswerFirst)
		}
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return err
		}
	}
	return nil
}

// forget removes a final task whose time is over, once the audit has passed it: everything beside the log first, so that a
// crash in between leaves a task that is forgotten again.
func (t timers) forget(ctx context.Context, k Key, s Snapshot, last uint64) error {
	if t.audited() < s.Seq {
		return bus.Later(time.Minute, errors.New("the audit has not passed the task yet"))
	}
	space := t.bus.Space()
	t.ledger.cache.drop(k)
	for subject, upTo := range map[string]uint64{
		space.RefusedAllOf(k.Agent, k.Task): min(last, t.audited()),
		space.Timer(k.Agent, k.Task):        last,
		space.Due(k.Agent, k.Task):          last,
	} {
		if err := t.bus.Purge(ctx, bus.Tasks, subject, upTo); err != nil {
			return err
		}
	}
	return t.bus.Purge(ctx, bus.Tasks, space.TaskAll(k.Agent, k.Task), s.Seq)
}
