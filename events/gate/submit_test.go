package gate_test

import (
	"errors"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

func updateRecord() events.Candidate {
	return events.Candidate{
		Task: "t-42", Step: "update-record", Tool: events.Tool{Name: "crm.update_record", Server: "mcp://crm"},
		Arguments: events.Arguments{"customer_id": events.SecretOf("c-207"), "phone": events.SecretOf("+34 600 000 000")},
	}
}

func TestSubmit_is_sent_again_until_the_log_shows_it(t *testing.T) {
	b := bustest.Start(t)
	unseen := 2
	script(t, b, func(events.Candidate) events.Kind {
		if unseen--; unseen >= 0 {
			return "" // kept in memory only, and lost
		}
		return events.Asked
	})
	ticket, err := gated(t, b).Submit(t.Context(), updateRecord())
	if err != nil || ticket.Version != 1 {
		t.Errorf("got %+v, %v", ticket, err)
	}
}

func TestSubmit_takes_the_next_version(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Asked))
	g := gated(t, b)
	for i, phone := range []string{"1", "2", "1"} {
		c := updateRecord()
		c.Arguments["phone"] = events.SecretOf(phone)
		ticket, err := g.Submit(t.Context(), c)
		if err != nil || ticket.Version != events.Version(i+1) {
			t.Fatalf("candidate %d: got %+v, %v", i, ticket, err)
		}
	}
	if n := s.said().candidates; n != 3 {
		t.Errorf("sent %d candidates", n)
	}
}

func TestSubmit_refused(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Asked))
	g := gated(t, b)
	first := updateRecord()
	first.ID, first.Version = "c1", 5
	if _, err := g.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	try := func(id string, v events.Version, phone string) events.Reason {
		c := updateRecord()
		c.ID, c.Version = id, v
		c.Arguments["phone"] = events.SecretOf(phone)
		_, err := g.Submit(t.Context(), c)
		if refused, ok := errors.AsType[*gate.Refused](err); ok {
			return refused.Why
		}
		return ""
	}
	if got := try("c1", 9, "1"); got != events.Changed {
		t.Errorf("one id for other content: %q", got)
	}
	if got := try("c2", 5, "1"); got != events.StaleVersion {
		t.Errorf("a version that is not greater: %q", got)
	}
	if got := try("c1", 2, "+34 600 000 000"); got != "" {
		t.Errorf("the same again, whatever its version: %q", got)
	}
	s.move("t-42", events.Released, nil)
	s.move("t-42", events.Claimed, nil)
	if got := try("c3", 9, "1"); got != events.Busy {
		t.Errorf("while an executor has it: %q", got)
	}
	s.move("t-42", events.Done, func(st *events.State) { st.Effect = &events.Effect{Status: events.EffectDone} })
	if got := try("c3", 9, "1"); got != "" {
		t.Errorf("the refusal of an earlier attempt was believed: %q", got)
	}
}
