package broker_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestPropose(t *testing.T) {
	t.Run("missing_identity_waits", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		wantKind(t, s, events.Asked)
		if n := len(s.snap.State.Pause.Fields[0].Options); n < 3 {
			t.Fatalf("%d options", n)
		}
	})
	t.Run("reversible_default_proceeds_and_says_so", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("docs.render", 1, events.Arguments{}))
		wantKind(t, s, events.Released)
		if got := s.snap.State.Decision.Basis().Assumptions; len(got) != 1 || got[0].Field != "format" || got[0].Documented == "" {
			t.Fatalf("assumptions %+v", got)
		}
	})
	t.Run("unknown_tool_stops", func(t *testing.T) {
		s := newStory(t)
		c := candidate("rm", 1, events.Arguments{})
		c.Tool.InputSchema = nil
		s.propose(c)
		wantKind(t, s, events.Stopped)
	})
	t.Run("contradicted_state_conflicts", func(t *testing.T) {
		s := newStory(t)
		c := juans(1)
		c.State = map[string]events.Secret{"record.status": events.SecretOf("closed")}
		s.propose(c)
		wantKind(t, s, events.Conflicted)
	})
	t.Run("beyond_authority_escalates", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("bank.pay", 1, events.Arguments{"amount": events.SecretOf(500)}))
		wantKind(t, s, events.Escalated)
	})
	t.Run("same_again_reattaches", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		if r := s.propose(juans(1)); r != nil || len(s.log) != 1 {
			t.Fatalf("refusal %v, %d transitions", r, len(s.log))
		}
	})
	t.Run("earlier_candidate_again_reattaches", func(t *testing.T) {
		s := newStory(t)
		first := candidate("docs.render", 1, events.Arguments{})
		s.propose(first)
		s.claim("n1")
		s.effect("n1", events.EffectDone)
		s.propose(candidate("docs.archive", 2, events.Arguments{}))
		wantKind(t, s, events.Released)
		n := len(s.log)
		first.Version = 3 // whoever sends it again takes the next version
		if r := s.propose(first); r != nil || len(s.log) != n {
			t.Fatalf("refusal %v, %d transitions: it would run twice", r, len(s.log)-n)
		}
		first.Arguments["format"] = events.SecretOf("pdf")
		wantReason(t, s.propose(first), events.Changed)
	})
	t.Run("same_id_other_content", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		c := juans(1)
		c.Arguments["note"] = events.SecretOf("other")
		wantReason(t, s.propose(c), events.Changed)
	})
	t.Run("stale_version", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(2))
		wantReason(t, s.propose(candidate("docs.render", 2, events.Arguments{})), events.StaleVersion)
	})
	t.Run("newer_supersedes_an_open_question", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		s.propose(candidate("docs.render", 2, events.Arguments{}))
		wantKind(t, s, events.Released)
		if st := s.snap.State; st.Superseded != 1 || st.Left == nil || st.Left.Status != events.PauseSuperseded {
			t.Fatalf("superseded %d, left %+v", st.Superseded, st.Left)
		}
	})
	t.Run("busy_while_claimed", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("docs.render", 1, events.Arguments{}))
		s.claim("n1")
		wantReason(t, s.propose(juans(2)), events.Busy)
	})
	t.Run("frozen_supersedes_and_withholds", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		s.rules.Frozen = true
		s.propose(candidate("docs.render", 2, events.Arguments{}))
		wantKind(t, s, events.Superseded)
		s.rules.Frozen = false
		s.propose(candidate("docs.render", 2, events.Arguments{}))
		wantKind(t, s, events.Released)
	})
	t.Run("unattended_stops", func(t *testing.T) {
		s := newStory(t)
		c := juans(1)
		away := false
		c.Attended = &away
		s.propose(c)
		wantKind(t, s, events.Stopped)
	})
}
