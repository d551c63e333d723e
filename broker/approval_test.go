package broker_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestApproval(t *testing.T) {
	mail := func(t *testing.T) *story {
		s := newStory(t)
		s.propose(candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")}))
		wantKind(t, s, events.ApprovalAsked)
		s.reach()
		return s
	}
	t.Run("granted_releases_the_digest", func(t *testing.T) {
		s := mail(t)
		if r := s.approve(s.approval("ana", events.Granted)); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Released)
		if s.snap.State.Release.From != events.FromApproval {
			t.Fatal(s.snap.State.Release.From)
		}
	})
	t.Run("denied", func(t *testing.T) {
		s := mail(t)
		s.approve(s.approval("ana", events.NotGranted))
		wantKind(t, s, events.Denied)
	})
	t.Run("not_by_somebody_without_the_role", func(t *testing.T) {
		s := mail(t)
		wantReason(t, s.approve(s.approval("eve", events.Granted)), events.NotAllowed)
	})
	t.Run("not_by_the_requester", func(t *testing.T) {
		s := newStory(t)
		c := candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")})
		c.Requester = &events.Requester{ID: "ana"}
		s.propose(c)
		s.reach()
		wantReason(t, s.approve(s.approval("ana", events.Granted)), events.NotAllowed)
		if r := s.approve(s.approval("ben", events.Granted)); r != nil {
			t.Fatal(r)
		}
	})
	for name, c := range map[string]struct{ requester, subject string }{
		"not_by_the_requester_in_other_letters": {"ANA ", "ana"},
		"not_by_nobody":                         {"zoe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			m := candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")})
			m.Requester = &events.Requester{ID: c.requester}
			s.propose(m)
			if p := s.snap.State.Pause; p == nil {
				t.Fatal(s.kind())
			} else {
				p.Status, p.Responders = events.PauseWaiting, []string{"anyone", "not:" + c.requester}
			}
			a := s.approval(c.subject, events.Granted)
			wantReason(t, s.approve(a), events.NotAllowed)
		})
	}
	t.Run("not_by_whoever_holds_a_link", func(t *testing.T) {
		s := mail(t)
		a := s.approval("ana", events.Granted)
		a.Responder.Assurance = events.Bearer
		wantReason(t, s.approve(a), events.NotAllowed)
	})
	t.Run("of_another_digest", func(t *testing.T) {
		s := mail(t)
		a := s.approval("ana", events.Granted)
		a.Action = "sha256:0"
		wantReason(t, s.approve(a), events.InvalidValue)
	})
	t.Run("approval_of_a_clarification", func(t *testing.T) {
		s := newStory(t)
		s.propose(juans(1))
		wantReason(t, s.approve(s.approval("ana", events.Granted)), events.WrongKind)
	})
	t.Run("missing_datum_first_then_approval", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("mail.send", 4, events.Arguments{}))
		wantKind(t, s, events.Asked)
		a := s.answer("eve", "")
		a.Values = []events.Given{{Field: "to", Value: events.SecretOf("ana@example.org")}}
		if r := s.submit(a); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.ApprovalAsked)
		if st := s.snap.State; st.Version != 5 || st.Left == nil || st.Left.Version != 4 {
			t.Fatalf("v%d, left %+v", st.Version, st.Left)
		}
		if r := s.approve(s.approval("ana", events.Granted)); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Released)
	})
}
