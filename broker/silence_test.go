package broker_test

import (
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
)

func TestSilence(t *testing.T) {
	t.Run("deadline_counts_from_the_first_receipt", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		s.now = start.Add(30 * time.Minute)
		s.due()
		wantKind(t, s, events.Asked)
		s.reach()
		s.now = s.now.Add(10*time.Minute - time.Second)
		s.due()
		wantKind(t, s, events.Reached)
		s.now = s.now.Add(time.Second)
		s.due()
		wantKind(t, s, events.TimedOut)
		if len(s.snap.State.Accepted) != 0 {
			t.Fatal("silence was taken for an answer")
		}
		wantReason(t, s.submit(s.answer("ana", "c-207")), events.NotPending)
	})
	t.Run("nobody_reached_is_undelivered", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		s.now = start.Add(time.Hour)
		s.due()
		wantKind(t, s, events.Undelivered)
	})
	t.Run("documented_default_on_a_reversible_action", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("docs.publish", 1, events.Arguments{}))
		wantKind(t, s, events.Asked)
		s.reach()
		s.now = start.Add(10 * time.Minute)
		s.due()
		wantKind(t, s, events.Released)
		if st := s.snap.State; st.Release.From != events.FromAfterDeadline || st.Pause.Status != events.PauseTimedOut {
			t.Fatalf("%s, %s", st.Release.From, st.Pause.Status)
		}
	})
	t.Run("nobody_answers_and_the_owner_has_the_case", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("docs.sign", 1, events.Arguments{}))
		wantKind(t, s, events.Asked)
		s.reach()
		s.now = start.Add(10 * time.Minute)
		s.due()
		wantKind(t, s, events.Escalated)
		if st := s.snap.State; st.Left == nil || st.Left.Status != events.PauseTimedOut || len(st.Accepted) != 0 {
			t.Fatalf("left %+v", st.Left)
		}
	})
	t.Run("frozen_releases_nothing_after_a_deadline", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("docs.publish", 1, events.Arguments{}))
		s.reach()
		s.rules.Frozen = true
		s.now = start.Add(10 * time.Minute)
		s.due()
		wantKind(t, s, events.Reached)
	})
	t.Run("reminded_once", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")}))
		s.reach()
		s.now = start.Add(5 * time.Minute)
		s.due()
		wantKind(t, s, events.Reminded)
		n := len(s.log)
		s.now = start.Add(6 * time.Minute)
		s.due()
		if len(s.log) != n {
			t.Fatalf("%s again", s.kind())
		}
	})
}
