package broker_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestAnswer(t *testing.T) {
	asked := func(t *testing.T) *story {
		s := newStory(t)
		s.propose(juans(7))
		s.reach()
		wantKind(t, s, events.Reached)
		return s
	}
	t.Run("valid_releases_the_same_step", func(t *testing.T) {
		s := asked(t)
		if r := s.submit(s.answer("ana", "c-207")); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Released)
		st := s.snap.State
		if got := st.Candidate.Arguments["customer_id"].RevealString(); got != "c-207" || st.Version != 7 || st.Candidate.Step != "step" {
			t.Fatalf("%q at v%d", got, st.Version)
		}
		if st.Release.From != events.FromAnswer || st.Release.Basis != 7 {
			t.Fatalf("released from %s %d", st.Release.From, st.Release.Basis)
		}
	})
	for name, c := range map[string]struct {
		change func(*events.Answer)
		want   events.Reason
	}{
		"not_an_option":  {func(a *events.Answer) { a.Values[0].Option = "c-999" }, events.NotAnOption},
		"other_question": {func(a *events.Answer) { a.Question = "other" }, events.UnknownTask},
		"other_version":  {func(a *events.Answer) { a.Version = 6 }, events.StaleVersion},
		"future_version": {func(a *events.Answer) { a.Version = 8 }, events.UnknownTask},
		"other_channel":  {func(a *events.Answer) { a.Responder.Channel = "telegram" }, events.NotAllowed},
		"no_value":       {func(a *events.Answer) { a.Values = nil }, events.Incomplete},
		"other_field":    {func(a *events.Answer) { a.Values[0].Field = "amount" }, events.InvalidValue},
	} {
		t.Run(name, func(t *testing.T) {
			s := asked(t)
			before := s.snap
			a := s.answer("ana", "c-207")
			c.change(&a)
			wantReason(t, s.submit(a), c.want)
			if s.snap.Seq != before.Seq || s.kind() != events.Reached {
				t.Fatalf("a refusal changed the task: %s", s.kind())
			}
			if r := s.submit(s.answer("ana", "c-207")); r != nil {
				t.Fatalf("the question is no longer open: %v", r)
			}
		})
	}
	t.Run("repeated_is_told_who_answered", func(t *testing.T) {
		s := asked(t)
		s.submit(s.answer("ana", "c-207"))
		r := s.submit(s.answer("ben", "c-101"))
		wantReason(t, r, events.Duplicate)
		if r.AnsweredBy == nil || r.AnsweredBy.Person != "ana" || !r.AnsweredAt.Equal(s.now) {
			t.Fatalf("answered by %+v at %s", r.AnsweredBy, r.AnsweredAt)
		}
	})
	t.Run("same_submission_same_verdict", func(t *testing.T) {
		s := asked(t)
		a := s.answer("ana", "c-207")
		s.submit(a)
		if r := s.submit(a); r != nil || len(s.log) != 3 {
			t.Fatalf("refusal %v, %d transitions", r, len(s.log))
		}
	})
	t.Run("same_submission_same_verdict_after_a_newer_candidate", func(t *testing.T) {
		s := asked(t)
		a := s.answer("ana", "c-207")
		s.submit(a)
		s.propose(juans(8))
		cancel := s.answer("ben", "")
		cancel.Values, cancel.Cancel = nil, true
		m := s.moment()
		m.Cause = string(cancel.Submission)
		s.take(s.rules.Answer(s.snap, cancel, m))
		wantKind(t, s, events.Cancelled)
		s.propose(candidate("docs.publish", 9, events.Arguments{}))
		wantKind(t, s, events.Asked)
		for _, again := range []events.Answer{a, cancel} {
			if r := s.submit(again); r != nil || s.kind() != events.Asked {
				t.Errorf("what was accepted at v%d is refused now, or done again: %v, %s", again.Version, r, s.kind())
			}
		}
	})
	t.Run("to_an_unknown_task_is_refused_in_its_name", func(t *testing.T) {
		s := newStory(t)
		a := events.Answer{Agent: "bot", Task: "t1", Version: 1, Submission: events.NewSubmissionID()}
		r := s.submit(a)
		wantReason(t, r, events.UnknownTask)
		if r.Agent != "bot" || r.Task != "t1" {
			t.Errorf("the refusal names %q/%q: it could not be read again", r.Agent, r.Task)
		}
	})
	t.Run("same_id_for_something_else_is_told_the_truth", func(t *testing.T) {
		s := asked(t)
		a := s.answer("ana", "c-207")
		s.submit(a)
		for name, change := range map[string]func(*events.Answer){
			"other person": func(b *events.Answer) { b.Responder.Subject = "ben" },
			"other value":  func(b *events.Answer) { b.Values = []events.Given{{Field: "customer_id", Option: "c-101"}} },
		} {
			b := a
			change(&b)
			if r := s.submit(b); r == nil || r.Reason != events.Duplicate {
				t.Errorf("%s: refused as %v", name, r)
			}
		}
	})
	t.Run("a_field_given_twice", func(t *testing.T) {
		s := asked(t)
		a := s.answer("ana", "c-207")
		a.Values = append(a.Values, events.Given{Field: "customer_id", Option: "c-101"})
		wantReason(t, s.submit(a), events.InvalidValue)
	})
	t.Run("cancel_by_a_person", func(t *testing.T) {
		s := asked(t)
		a := s.answer("ana", "")
		a.Values, a.Cancel, a.Note = nil, true, "wrong customer"
		if r := s.submit(a); r != nil {
			t.Fatal(r)
		}
		wantKind(t, s, events.Cancelled)
		wantReason(t, s.submit(s.answer("ben", "c-101")), events.NotPending)
	})
	t.Run("nobody_without_an_address_is_taken_for_one_with_none", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")}))
		a := s.approval("", events.Granted)
		a.Responder.Channel = "pager" // where ben has no address
		wantReason(t, s.approve(a), events.NotAllowed)
	})
	t.Run("answer_to_an_approval", func(t *testing.T) {
		s := newStory(t)
		s.propose(candidate("mail.send", 1, events.Arguments{"to": events.SecretOf("x")}))
		wantKind(t, s, events.ApprovalAsked)
		wantReason(t, s.submit(s.answer("ana", "yes")), events.WrongKind)
	})
}
