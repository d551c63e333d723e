package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want code
	}{
		{errors.New("anything"), failure},
		{&events.Invalid{Field: "agent"}, usage},
		{app.Problems{{}}, invalid},
		{policy.Problems{{}}, invalid},
		{os.ErrNotExist, notFound},
		{bus.ErrNobody, unreachable},
		{nats.ErrNoServers, unreachable},
		{context.DeadlineExceeded, unreachable},
		{bus.ErrDenied, denied},
		{nats.ErrAuthorization, denied},
		{&gate.Waiting{}, waiting},
		{&gate.Waiting{Kind: events.Clarification}, waiting},
		{&gate.Waiting{Kind: events.Approval}, approval},
		{&gate.Cancelled{}, cancelled},
		{&gate.TimedOut{}, timedOut},
		{&gate.Undelivered{}, undelivered},
		{&gate.Stopped{}, stopped},
		{&gate.Mismatch{}, stopped},
		{&gate.Escalated{}, escalated},
		{&gate.Conflict{}, reconcile},
		{&gate.Denied{}, disallowed},
		{&gate.InDoubt{Cause: bus.ErrNobody}, doubt},
		{errors.Join(errors.New("the tool's own"), &gate.InDoubt{}), doubt},
		{&gate.Superseded{}, superseded},
		{&gate.LookUp{}, lookup},
		{&gate.Refused{}, refused},
		{&gate.Failed{}, ranFailed},
		{fail(refused, "said"), refused},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if got := codeOf(err); got != c.want {
				t.Errorf("codeOf(%T %v) = %d %s, want %d", c.err, err, got, got.name(), c.want)
			}
		}
	}
}

func TestMeanings_are_unique(t *testing.T) {
	t.Parallel()
	codes, names := map[code]bool{}, map[string]bool{}
	for _, m := range meanings() {
		if codes[m.code] || names[m.name] {
			t.Errorf("%d %s is there twice", m.code, m.name)
		}
		codes[m.code], names[m.name] = true, true
		if m.code.name() != m.name {
			t.Errorf("%d is named %s, want %s", m.code, m.code.name(), m.name)
		}
	}
}
