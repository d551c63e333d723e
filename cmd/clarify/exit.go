package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

// code is an exit status. The table is part of the interface: scripts and agents act on it.
type code int

// Exit statuses. Every one from 20 to 31 means that nothing was executed by this call, except doubt, which means that it may
// have been.
const (
	ok          code = 0
	failure     code = 1
	usage       code = 2
	invalid     code = 3
	refused     code = 5
	notFound    code = 6
	unreachable code = 7
	denied      code = 8
	waiting     code = 20
	cancelled   code = 21
	timedOut    code = 22
	undelivered code = 23
	stopped     code = 24
	approval    code = 25
	escalated   code = 26
	reconcile   code = 27
	disallowed  code = 28
	doubt       code = 29
	superseded  code = 30
	lookup      code = 31
	ranFailed   code = 32
)

// meaning is one line of the table of exit statuses.
type meaning struct {
	code code
	name string
	text string
}

func meanings() []meaning {
	return []meaning{
		{ok, "ok", "done; for ask and gate: it was released and ran, now or in an earlier identical call"},
		{failure, "failed", "a check did not hold, or something else went wrong"},
		{usage, "usage", "the command line is wrong"},
		{invalid, "invalid", "a configuration or policy is not valid, or cannot be used here"},
		{refused, "refused", "the broker refused an answer, a cancel, a reconciliation or a candidate; nothing changed"},
		{notFound, "not_found", "there is no such question, task or file"},
		{unreachable, "unreachable", "no server, or no broker, answers"},
		{denied, "denied", "the server's permissions keep this credential from it"},
		{waiting, "waiting", "nobody has answered yet; the question still waits, and the same call takes it up again"},
		{cancelled, "cancelled", "somebody called it off"},
		{timedOut, "timed_out", "people were reached and nobody answered in time"},
		{undelivered, "undelivered", "nobody could be reached"},
		{stopped, "stopped", "the policy, or the owner of the case, stops it"},
		{approval, "approval_waits", "an approval waits; the same call takes it up again"},
		{escalated, "escalated", "its owner has the case and has not decided yet"},
		{reconcile, "reconcile", "stored state contradicts it; reconcile that first"},
		{disallowed, "not_approved", "an approver said no"},
		{doubt, "in_doubt", "it may have run and its outcome is not known; `clarify reconcile` says what became of it"},
		{superseded, "superseded", "a newer action of the same task replaced it"},
		{lookup, "look_up", "the agent should look it up and propose again"},
		{ranFailed, "ran_and_failed", "it ran, once, and failed"},
	}
}

func (c code) name() string {
	for _, m := range meanings() {
		if m.code == c {
			return m.name
		}
	}
	return "failed"
}

// fault is an error with the status it exits with.
type fault struct {
	code  code
	text  string
	cause error
}

func (f *fault) Error() string { return f.text }

// Unwrap returns what caused it, if anything did.
func (f *fault) Unwrap() error { return f.cause }

func fail(c code, format string, args ...any) error {
	return &fault{code: c, text: fmt.Sprintf(format, args...)}
}

// codeOf is the status an error exits with.
func codeOf(err error) code {
	if f, found := errors.AsType[*fault](err); found {
		return f.code
	}
	if c := codeOfGate(err); c != ok {
		return c
	}
	if _, found := errors.AsType[app.Problems](err); found {
		return invalid
	}
	if _, found := errors.AsType[policy.Problems](err); found {
		return invalid
	}
	if _, found := errors.AsType[*events.Invalid](err); found {
		return usage
	}
	switch {
	case is(err, bus.ErrDenied, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrPermissionViolation):
		return denied
	case is(err, bus.ErrNobody, nats.ErrNoServers, nats.ErrTimeout, nats.ErrConnectionClosed, context.DeadlineExceeded):
		return unreachable
	case is(err, os.ErrNotExist, bus.ErrNotFound):
		return notFound
	}
	return failure
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// codeOfGate is the status of an outcome of the gate, and ok for anything else.
func codeOfGate(err error) code {
	switch {
	case found[*gate.InDoubt](err): // before the others, since it may be joined with what caused it
		return doubt
	case found[*gate.Waiting](err):
		if w, _ := errors.AsType[*gate.Waiting](err); w.Kind == events.Approval {
			return approval
		}
		return waiting
	case found[*gate.Escalated](err):
		return escalated
	case found[*gate.LookUp](err):
		return lookup
	case found[*gate.Stopped](err), found[*gate.Mismatch](err):
		return stopped
	case found[*gate.Denied](err):
		return disallowed
	case found[*gate.Cancelled](err):
		return cancelled
	case found[*gate.TimedOut](err):
		return timedOut
	case found[*gate.Undelivered](err):
		return undelivered
	case found[*gate.Conflict](err):
		return reconcile
	case found[*gate.Superseded](err):
		return superseded
	case found[*gate.Refused](err):
		return refused
	case found[*gate.Failed](err):
		return ranFailed
	}
	return ok
}

func found[E error](err error) bool {
	_, yes := errors.AsType[E](err)
	return yes
}
