package broker_test

import (
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
)

func TestExecution(t *testing.T) {
	released := func(t *testing.T) *story {
		s := newStory(t)
		s.propose(candidate("docs.render", 1, events.Arguments{}))
		wantKind(t, s, events.Released)
		return s
	}
	t.Run("one_claim", func(t *testing.T) {
		s := released(t)
		if r := s.claim("n1"); r != nil {
			t.Fatal(r)
		}
		if r := s.claim("n1"); r != nil || len(s.log) != 2 {
			t.Fatalf("the same nonce may ask again: %v", r)
		}
		wantReason(t, s.claim("n2"), events.Taken)
	})
	t.Run("outcome_needs_the_fence", func(t *testing.T) {
		s := released(t)
		s.claim("n1")
		wantReason(t, s.effect("n2", events.EffectDone), events.Taken)
		if r := s.effect("n1", events.EffectDone); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Done)
	})
	t.Run("lease_over_is_in_doubt_and_not_released_again", func(t *testing.T) {
		s := released(t)
		s.claim("n1")
		s.now = s.now.Add(time.Minute)
		s.due()
		wantKind(t, s, events.InDoubt)
		wantReason(t, s.claim("n2"), events.Taken)
		if r := s.effect("n1", events.EffectDone); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Done)
	})
	t.Run("renewed_lease", func(t *testing.T) {
		s := released(t)
		s.claim("n1")
		s.now = s.now.Add(50 * time.Second)
		s.effect("n1", events.EffectRunning)
		s.now = s.now.Add(50 * time.Second)
		s.due()
		wantKind(t, s, events.Claimed)
	})
	t.Run("reconciled_by_an_operator", func(t *testing.T) {
		s := released(t)
		s.claim("n1")
		s.now = s.now.Add(time.Minute)
		s.due()
		s.take(s.rules.Reconcile(s.snap, events.OperatorRequest{Agent: "bot", Task: "t1", By: "op", Outcome: events.EffectDone}, s.moment()))
		wantKind(t, s, events.Reconciled)
	})
	for name, c := range map[string]struct {
		fact  string
		fresh events.Secret
		want  events.Kind
	}{
		"fresh_facts_agree":          {"record.status", events.SecretOf("active"), events.Claimed},
		"fresh_facts_contradict":     {"record.status", events.SecretOf("closed"), events.Conflicted},
		"fresh_facts_break_the_rule": {"record.moves", events.SecretOf("many"), events.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.propose(candidate("crm.update_record", 1, events.Arguments{"customer_id": events.SecretOf("c-1")}))
			wantKind(t, s, events.Released)
			s.take(s.rules.Claim(s.snap, events.ClaimRequest{
				Agent: "bot", Task: "t1", Version: 1, Nonce: "n1",
				Recheck: map[string]events.Secret{c.fact: c.fresh},
			}, s.moment()))
			wantKind(t, s, c.want)
		})
	}
	t.Run("cancel_of_an_unclaimed_release", func(t *testing.T) {
		s := released(t)
		s.take(s.rules.Cancel(s.snap, events.CancelRequest{Agent: "bot", Task: "t1", Version: 1}, "agent bot", s.moment()))
		wantKind(t, s, events.Cancelled)
		wantReason(t, s.claim("n1"), events.NotReleased)
	})
}
