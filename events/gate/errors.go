package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Case says which step is meant and who or what held it back. It is part of every error that says so.
type Case struct {
	Task     events.Task
	Version  events.Version
	Question events.QuestionID // of the last pause, empty when there was none
	Rule     string            // the policy's rule that decided
	Reason   string            // the rule's sentence, never an argument's value
	By       string            // the person, agent or operator who ended it, empty when nobody did
	Note     string            // their words: for the agent, and left out of the error's text
}

// where names the step behind an error's sentence.
func (c Case) where() string {
	parts := []string{"task " + string(c.Task)}
	if c.Version > 0 {
		parts[0] += " v" + strconv.FormatUint(uint64(c.Version), 10)
	}
	if c.Question != "" {
		parts = append(parts, "question "+string(c.Question))
	}
	if c.Rule != "" {
		parts = append(parts, "rule "+c.Rule)
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (c Case) withheld(sentence string) string { return "NOT EXECUTED: " + sentence + c.where() }

// because appends the rule's sentence to one of ours.
func (c Case) because(sentence string) string {
	if c.Reason == "" {
		return sentence
	}
	return sentence + ": " + strings.TrimRight(c.Reason, ".")
}

// by is who ended it, in an error's text.
func (c Case) by() string {
	if c.By == "" {
		return "somebody"
	}
	return c.By
}

// Waiting means that the context ended before anything was decided. The question still waits; proposing the same candidate
// again, or waiting with Ticket, re-attaches to it. errors.Is finds the context's error in it.
type Waiting struct {
	Case
	Ticket   Ticket
	Kind     events.PauseKind // clarification or approval; empty when no pause is known
	State    events.Kind      // the last state seen; empty when none was
	Channels []events.Channel // where people are asked
	Deadline time.Time        // zero until somebody was reached
	cause    error
}

func (e *Waiting) Error() string {
	switch {
	case e.Kind == events.Approval:
		return e.withheld("an approval waits; nobody has decided yet, and this is not a refusal")
	case e.Kind != "":
		return e.withheld("a question waits; nobody has answered yet, and this is not a refusal")
	case e.State == events.Released:
		return e.withheld("it is released, but the claim was not confirmed; nobody refused it")
	case e.State == events.Claimed:
		return e.withheld("not by this call; another worker has the claim, may have run it, and has not reported yet")
	case e.State != "":
		return e.withheld("it is not decided yet; nobody refused it")
	}
	return e.withheld("no broker has confirmed the candidate yet; nobody refused it")
}

// Unwrap returns the error of the context that ended.
func (e *Waiting) Unwrap() error { return e.cause }

// Escalated means that the context ended while a named owner has the case. It may still be handed back and released.
type Escalated struct {
	Case
	Ticket   Ticket
	Deadline time.Time
	cause    error
}

func (e *Escalated) Error() string {
	return e.withheld("the case was handed to its owner, who has not decided yet; this is not a refusal")
}

// Unwrap returns the error of the context that ended.
func (e *Escalated) Unwrap() error { return e.cause }

// LookUp asks the agent itself to find what is missing, with the read tool Tool, and to propose again at a version greater
// than Version. If it does not, a person is asked after a while.
type LookUp struct {
	Case
	Tool   string
	Fields []string
}

func (e *LookUp) Error() string {
	what := "what is missing"
	if len(e.Fields) > 0 {
		what = strings.Join(e.Fields, ", ")
	}
	return e.withheld(fmt.Sprintf("look up %s with %s and propose again; no person refused it", what, e.Tool))
}

// Stopped means that the policy, or the owner of an escalated case, says that the action must not run.
type Stopped struct{ Case }

func (e *Stopped) Error() string {
	if e.By != "" {
		return e.withheld(e.By + " stopped it")
	}
	return e.withheld(e.because("the policy stops it, no person refused it"))
}

// Denied means that an approver said no.
type Denied struct{ Case }

func (e *Denied) Error() string { return e.withheld(e.by() + " denied it") }

// Cancelled means that somebody called the step off.
type Cancelled struct{ Case }

func (e *Cancelled) Error() string { return e.withheld(e.by() + " called it off") }

// TimedOut means that somebody was reached and nobody answered before the deadline.
type TimedOut struct {
	Case
	Deadline time.Time
}

func (e *TimedOut) Error() string {
	before := "in time"
	if !e.Deadline.IsZero() {
		before = "before " + e.Deadline.UTC().Format("2006-01-02 15:04 UTC")
	}
	return e.withheld("nobody answered " + before + "; this is not a refusal")
}

// Undelivered means that the question reached nobody.
type Undelivered struct{ Case }

func (e *Undelivered) Error() string {
	return e.withheld("nobody could be reached, so nobody has decided; this is not a refusal")
}

// Conflict means that stored state contradicts the action: no answer would mend it, reconcile first.
type Conflict struct{ Case }

func (e *Conflict) Error() string {
	return e.withheld(e.because("stored state contradicts the action, reconcile it first; no person refused it"))
}

// Superseded means that a newer candidate of the task replaced this one. Version is the task's current one.
type Superseded struct{ Case }

func (e *Superseded) Error() string {
	return e.withheld("a newer candidate of the task replaced this one; nobody refused it")
}

// Refused means that the broker did not take the candidate, cancel or claim, for a reason of the protocol; no person decided.
type Refused struct {
	Case
	Of      string         // candidate, cancel or claim
	Why     events.Reason  // such as stale_version
	Current events.Version // the task's version then, 0 when unknown
}

func (e *Refused) Error() string {
	sentence := "the " + e.Of + " was refused as " + string(e.Why)
	if e.Current > 0 {
		sentence += ", the task is at v" + strconv.FormatUint(uint64(e.Current), 10)
	}
	return e.withheld(sentence + "; no person decided")
}

// Mismatch means that what was granted is not what was decided: the tool was not run and the claim ended as failed.
type Mismatch struct {
	Case
	Decided, Granted, Computed events.Digest
}

func (e *Mismatch) Error() string {
	return e.withheld("what was granted is not the action that was decided; no person refused it")
}

// Failed means that the tool did run, here or on another machine or in an earlier call, and reported a failure.
type Failed struct {
	Case
	Detail string // what the tool said: for the agent, and left out of the error's text
}

func (e *Failed) Error() string {
	return "FAILED: the tool ran and reported a failure" + e.where()
}

// InDoubt means that the tool may have run and that its outcome is not recorded. It is not released again by itself: a
// person, or the tool's own check, says what became of it.
type InDoubt struct {
	Case
	Cause error // what kept the outcome from being recorded, if it is known here
}

func (e *InDoubt) Error() string {
	text := "IN DOUBT: the tool may have run and its outcome is not recorded; do not run it again before it is reconciled"
	if e.Case.Reason != "" {
		text += ": " + e.Case.Reason
	}
	return text + e.where()
}

// Unwrap returns Cause.
func (e *InDoubt) Unwrap() error { return e.Cause }
