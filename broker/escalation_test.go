package broker_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestEscalation(t *testing.T) {
	pay := func(t *testing.T) *story {
		s := newStory(t)
		s.propose(candidate("bank.pay", 1, events.Arguments{"amount": events.SecretOf(500)}))
		wantKind(t, s, events.Escalated)
		return s
	}
	t.Run("taken_over", func(t *testing.T) {
		s := pay(t)
		a := s.answer("ana", "")
		a.Handover = events.TakeOver
		if r := s.submit(a); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Stopped)
	})
	t.Run("handed_back_is_decided_again_and_never_released_directly", func(t *testing.T) {
		s := pay(t)
		a := s.answer("ana", "")
		a.Handover = events.HandBack
		if r := s.submit(a); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Escalated)
		if s.snap.State.Version != 2 {
			t.Fatal(s.snap.State.Version)
		}
	})
	t.Run("without_a_move", func(t *testing.T) {
		s := pay(t)
		wantReason(t, s.submit(s.answer("ana", "")), events.Incomplete)
	})
}
