package broker_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestDelivery(t *testing.T) {
	mail := func(t *testing.T) *story {
		s := newStory(t)
		s.propose(candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")}))
		return s
	}
	bounce := func(s *story, i int) {
		s.take(s.receipt(report(s.snap.State, s.snap.State.Pause.Deliveries[i].ID, events.NotDelivered)))
	}
	t.Run("undelivered_asks_the_next_step_at_once", func(t *testing.T) {
		s := mail(t)
		bounce(s, 0)
		wantKind(t, s, events.Rerouted)
		if d := s.snap.State.Pause.Deliveries; len(d) != 2 || d[1].Target.Channel != "pager" {
			t.Fatalf("%+v", d)
		}
	})
	t.Run("nothing_left_is_undelivered", func(t *testing.T) {
		s := mail(t)
		bounce(s, 0)
		bounce(s, 1)
		wantKind(t, s, events.Undelivered)
	})
	t.Run("late_bounce_stops_the_clock", func(t *testing.T) {
		s := mail(t)
		s.reach()
		bounce(s, 0)
		if p := s.snap.State.Pause; !p.Deadline.IsZero() || s.kind() != events.Rerouted {
			t.Fatalf("%s, deadline %s", s.kind(), p.Deadline)
		}
	})
	t.Run("a_reminder_leaves_its_own_reference", func(t *testing.T) {
		s := mail(t)
		s.reach()
		r := report(s.snap.State, s.snap.State.Pause.Deliveries[0].ID, events.ReachAccepted)
		r.Receipt.ProviderID, r.Receipt.Ref = "m2", map[string]string{"first": "m1"}
		s.take(s.receipt(r))
		if got := s.snap.State.Pause.Deliveries[0].Receipt; got.ProviderID != "m2" {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("a_worse_receipt_does_not_undo_a_better_one", func(t *testing.T) {
		s := mail(t)
		s.reach()
		n := len(s.log)
		s.take(s.receipt(report(s.snap.State, s.snap.State.Pause.Deliveries[0].ID, events.Attempted)))
		if len(s.log) != n {
			t.Fatal(s.kind())
		}
	})
}
