package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// became says what a task did after an answer.
func became(k events.Kind) string {
	switch k {
	case events.Released:
		return "Released: it may run, once."
	case events.Asked, events.Reached, events.Rerouted:
		return "Something else is asked now: see `clarify ls`."
	case events.ApprovalAsked:
		return "It waits for an approval now: see `clarify ls`."
	case events.Escalated:
		return "Its owner has the case now."
	case events.Answered:
		return "It is decided again."
	case events.Claimed:
		return "Released, and an executor has it."
	case events.Done:
		return "Released, and it ran."
	default:
		return "The task is " + plainKind(k) + "."
	}
}

func plainKind(k events.Kind) string { return strings.ReplaceAll(string(k), "_", " ") }

// refusal says why something was refused, without saying what it means for the question.
func refusal(r events.Refusal, v *events.View) string {
	current := r.Current
	if v != nil && current == 0 {
		current = v.Version
	}
	switch r.Reason {
	case events.UnknownTask:
		return "there is no such question"
	case events.WrongKind:
		return "an answer is no approval, and an approval no answer"
	case events.NotAllowed:
		return "you are not among those who may answer it"
	case events.StaleVersion:
		return fmt.Sprintf("the task has moved on to v%d", current)
	case events.Duplicate:
		return fmt.Sprintf("already answered at %s by %s", clock(r.AnsweredAt), who(r.AnsweredBy))
	case events.NotPending:
		if v != nil {
			return "the task is " + plainKind(v.Kind)
		}
		return "it waits no more"
	case events.Incomplete:
		return "not all fields are answered; what was given is kept"
	case events.NotAnOption:
		return "that is not one of the options"
	case events.InvalidValue:
		return "that is not a value " + cmp.Or(channels.Plain(r.Field), "it") + " can have" + because(r)
	case events.Busy:
		return "an executor has it"
	case events.Frozen:
		return "releases are frozen; `clarify health` says why"
	default:
		return "refused: " + strings.ReplaceAll(string(r.Reason), "_", " ") + because(r)
	}
}

func because(r events.Refusal) string {
	if r.Detail == "" {
		return ""
	}
	return " (" + channels.Plain(r.Detail) + ")"
}

// who names a responder: people by name, and the channel they used.
func who(r *events.Responder) string {
	if r == nil {
		return "somebody"
	}
	name := channels.Plain(cmp.Or(r.Name, r.Person, r.Subject, "somebody"))
	if r.Channel == "" {
		return name
	}
	return name + " (" + string(r.Channel) + ")"
}

func join[T ~string](names []T) string {
	if len(names) == 0 {
		return "no channel"
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
