package gate_test

import (
	"errors"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

func TestCancel(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Asked))
	g := gated(t, b)
	ticket, err := g.Submit(t.Context(), updateRecord())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds it cancelled already
		if err := g.Cancel(t.Context(), ticket, "no longer wanted"); err != nil {
			t.Fatal(err)
		}
	}
	_, err = g.Wait(t.Context(), ticket)
	cancelled, ok := errors.AsType[*gate.Cancelled](err)
	if !ok || cancelled.By != "crm-bot" || cancelled.Note != "no longer wanted" {
		t.Errorf("got %v", err)
	}
	if n := s.said().cancels; n != 1 {
		t.Errorf("sent %d cancels", n)
	}
}

func TestCancel_too_late(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	g := gated(t, b)
	ticket, err := g.Submit(t.Context(), updateRecord())
	if err != nil {
		t.Fatal(err)
	}
	why := func() events.Reason {
		if refused, ok := errors.AsType[*gate.Refused](g.Cancel(t.Context(), ticket, "")); ok {
			return refused.Why
		}
		return ""
	}
	s.move("t-42", events.Claimed, nil)
	if got := why(); got != events.Busy {
		t.Errorf("while an executor has it: %q", got)
	}
	s.move("t-42", events.Done, nil)
	if got := why(); got != events.NotPending {
		t.Errorf("after its outcome: %q", got)
	}
	newer := updateRecord()
	newer.Step = "next"
	if _, err := g.Submit(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if got := why(); got != events.StaleVersion {
		t.Errorf("after a newer candidate: %q", got)
	}
}

func TestTask_cancels_its_children(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Asked))
	g := gated(t, b)
	parent := g.Task("t-42")
	open, ended := parent.Child("eu"), parent.Child("us")
	parent.Child("never proposed")
	grandchild := open.Child("retry")
	tickets := map[string]gate.Ticket{}
	for name, task := range map[string]*gate.Task{"parent": parent, "open": open, "ended": ended, "grandchild": grandchild} {
		c := updateRecord()
		c.Task = task.ID()
		ticket, err := g.Submit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		tickets[name] = ticket
	}
	s.move(ended.ID(), events.Denied, func(st *events.State) { st.By = "ana" })
	if err := parent.Cancel(t.Context(), "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	for name, ticket := range tickets {
		_, err := g.Wait(t.Context(), ticket)
		if _, ok := errors.AsType[*gate.Cancelled](err); ok == (name == "ended") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
