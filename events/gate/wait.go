package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// stage is how far a candidate that was not withheld has come.
type stage int

// Stages, in order. The zero stage is not one.
const (
	undecided stage = iota + 1
	released        // one executor may claim it
	claimed         // one executor has it
	reported        // its outcome is recorded
)

// Wait follows all pauses of a candidate until it is released, and returns the task's view then: its kind is released,
// claimed, done, failed or reconciled. When it ended otherwise the error says how ([*Stopped], [*Denied], [*Cancelled],
// [*TimedOut], [*Undelivered], [*Conflict], [*Superseded], [*InDoubt], [*LookUp], [*Refused]). When the context ends first
// the error is a [*Waiting], or an [*Escalated] while a named owner has the case; the question stays open either way.
func (g *Gate) Wait(ctx context.Context, t Ticket) (events.View, error) {
	view, _, err := g.follow(ctx, t, released)
	return view, err
}

// Result follows a candidate until whoever claimed it has reported, and returns the recorded outcome. Errors are those of
// [Gate.Wait] and [*Failed].
func (g *Gate) Result(ctx context.Context, t Ticket) (Outcome, error) {
	view, _, err := g.follow(ctx, t, reported)
	if err != nil {
		return Outcome{}, err
	}
	return recorded(view)
}

// follow asks for the state on start and whenever the task moved, and looks again at growing intervals, until the candidate
// has come as far as enough or is withheld. The view is the last one seen, also beside an error.
func (g *Gate) follow(ctx context.Context, t Ticket, enough stage) (events.View, stage, error) {
	one := g.ears.join(t.Task)
	defer g.ears.leave(t.Task, one)
	var last events.View
	pace := newPace(time.Second, 30*time.Second)
	for {
		reply, err := g.state(ctx, t.Task, t.Candidate, one.last.Swap(0))
		if err == nil {
			var at stage
			if at, err = judge(reply, t); err != nil || at >= enough {
				return viewOf(reply), at, err
			}
			if reply.View != nil && reply.View.Candidate == t.Candidate {
				last = *reply.View
			}
		}
		if hopeless(err) {
			return last, undecided, t.impossible("wait for", err)
		}
		if ctx.Err() != nil {
			return last, undecided, stillWaiting(last, t, ended(ctx, err))
		}
		pace.listen(ctx, one)
	}
}

func viewOf(reply events.StateReply) events.View {
	if reply.View == nil {
		return events.View{}
	}
	return *reply.View
}

// judge says how far the ticket's candidate is. Only a kind that says so is a release; one that is not known is an error.
func judge(reply events.StateReply, t Ticket) (stage, error) {
	v := reply.View
	switch {
	case v == nil && reply.Refused != nil:
		return 0, refusedBy(*reply.Refused)
	case v == nil:
		return undecided, nil
	case v.Candidate != t.Candidate && v.Version < t.Version:
		return undecided, nil // the log has not come to it yet
	case v.Candidate != t.Candidate:
		return 0, &Superseded{Case{Task: t.Task, Version: v.Version}}
	}
	return judgeKind(*v)
}

func judgeKind(v events.View) (stage, error) {
	c := caseOf(v)
	switch v.Kind {
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Reached, events.Rerouted, events.Reminded, events.Overdue,
		events.Answered:
		return judgeWaiting(v)
	case events.Released:
		if v.Release == nil || v.Release.Action == "" {
			return 0, fmt.Errorf("NOT EXECUTED: the state says released and has no release%s", c.where())
		}
		return released, nil
	case events.Claimed:
		return claimed, nil
	case events.Done, events.Failed, events.Reconciled:
		return reported, nil
	case events.Stopped:
		return 0, &Stopped{c}
	case events.Conflicted:
		return 0, &Conflict{c}
	case events.Denied:
		return 0, &Denied{c}
	case events.Cancelled:
		return 0, &Cancelled{c}
	case events.TimedOut:
		e := &TimedOut{Case: c}
		if v.Pause != nil {
			e.Deadline = v.Pause.Deadline
		}
		return 0, e
	case events.Undelivered:
		return 0, &Undelivered{c}
	case events.Superseded:
		return 0, &Superseded{c}
	case events.InDoubt:
		return 0, &InDoubt{Case: c}
	}
	return 0, fmt.Errorf("NOT EXECUTED: this client does not know the state %.40q%s", v.Kind, c.where())
}

func judgeWaiting(v events.View) (stage, error) {
	if v.Lookup == "" {
		return undecided, nil
	}
	e := &LookUp{Case: caseOf(v), Tool: v.Lookup}
	if v.Pause != nil {
		for _, f := range v.Pause.Fields {
			e.Fields = append(e.Fields, f.Name)
		}
	}
	return 0, e
}

func caseOf(v events.View) Case {
	c := Case{Task: v.Task, Version: v.Version, Rule: v.Why.Rule, Reason: v.Why.Reason, By: v.By, Note: v.Note}
	if v.Pause != nil {
		c.Question = v.Pause.Question
	}
	return c
}

// stillWaiting says what is being waited for now that the context has ended.
func stillWaiting(v events.View, t Ticket, cause error) error {
	if v.Task == "" {
		return &Waiting{Case: Case{Task: t.Task, Version: t.Version}, Ticket: t, cause: cause}
	}
	w := &Waiting{Case: caseOf(v), Ticket: t, State: v.Kind, cause: cause}
	if p := v.Pause; p != nil && p.Status == events.PauseWaiting {
		if p.Kind == events.Escalation {
			return &Escalated{Case: w.Case, Ticket: t, Deadline: p.Deadline, cause: cause}
		}
		w.Kind, w.Deadline, w.Channels = p.Kind, p.Deadline, p.Channels
	}
	return w
}

// recorded reads the outcome that the log holds.
func recorded(v events.View) (Outcome, error) {
	out := Outcome{Assumptions: v.Why.Assumptions}
	if v.Effect == nil {
		return out, fmt.Errorf("IN DOUBT: the state says %s and has no outcome%s", v.Kind, caseOf(v).where())
	}
	switch v.Effect.Status {
	case events.EffectDone:
		out.Result = v.Effect.Result
		return out, nil
	case events.EffectFailed:
		return out, &Failed{Case: caseOf(v), Detail: v.Effect.Error}
	case events.EffectRunning:
	}
	return out, fmt.Errorf("IN DOUBT: the recorded outcome %.20q is none%s", v.Effect.Status, caseOf(v).where())
}
