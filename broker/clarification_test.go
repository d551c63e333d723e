package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"pgregory.net/rapid"
)

// TestAnyStory drives a task with random inputs in random order and checks after each what must hold of every log.
func TestAnyStory(t *testing.T) {
	base := rules(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{t: rt, rules: base, now: start}
		old := []events.Answer{}
		var nonces []string
		for range rapid.IntRange(3, 40).Draw(rt, "length") {
			before := s.snap
			act(rt, s, &old, &nonces)
			check(rt, s, before)
			s.now = s.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 40, 90, 400, 700, 4000}).Draw(rt, "wait")) * time.Second)
		}
	})
}

func act(rt *rapid.T, s *story, old *[]events.Answer, nonces *[]string) {
	people := rapid.SampledFrom([]string{"ana", "ben", "eve", "mallory"})
	open := s.snap.Known() && s.snap.State.Pause != nil
	switch rapid.IntRange(0, 11).Draw(rt, "input") {
	case 0, 1:
		tool := rapid.SampledFrom([]string{"crm.update_record", "docs.render", "docs.publish", "mail.send", "bank.pay", "crm.find", "rm"}).Draw(rt, "tool")
		c := candidate(tool, s.snap.State.Version+events.Version(rapid.IntRange(0, 2).Draw(rt, "ahead")), events.Arguments{})
		if tool == "crm.update_record" {
			c = juans(c.Version)
		}
		if tool == "bank.pay" {
			c.Arguments["amount"] = events.SecretOf(rapid.SampledFrom([]int{10, 1000}).Draw(rt, "amount"))
		}
		c.Version = max(c.Version, 1)
		s.propose(c)
	case 2, 3:
		if open {
			a := s.answer(people.Draw(rt, "who"), rapid.SampledFrom([]string{"c-101", "c-207", "c-999", events.NoneOfThese}).Draw(rt, "option"))
			if len(a.Values) > 0 && a.Values[0].Field != "customer_id" {
				a.Values[0] = events.Given{Field: a.Values[0].Field, Value: events.SecretOf("text")}
			}
			a.Handover = rapid.SampledFrom([]events.EscalationMove{"", "", events.TakeOver, events.HandBack, events.EndIt}).Draw(rt, "move")
			a.Cancel = rapid.IntRange(0, 9).Draw(rt, "cancel") == 0
			*old = append(*old, a)
			s.submit(a)
		}
	case 4:
		if len(*old) > 0 { // again, late or stale
			s.submit(rapid.SampledFrom(*old).Draw(rt, "again"))
		}
	case 5:
		if open {
			s.approve(s.approval(people.Draw(rt, "who"), rapid.SampledFrom([]events.ApprovalVerdict{events.Granted, events.NotGranted}).Draw(rt, "verdict")))
		}
	case 6:
		if open && len(s.snap.State.Pause.Deliveries) > 0 {
			d := rapid.SampledFrom(s.snap.State.Pause.Deliveries).Draw(rt, "delivery")
			reach := rapid.SampledFrom([]events.Reach{events.Held, events.Attempted, events.ReachAccepted, events.Delivered, events.NotDelivered}).Draw(rt, "reach")
			s.take(s.receipt(report(s.snap.State, d.ID, reach)))
		}
	case 7, 8:
		s.due()
	case 9:
		s.take(s.rules.Cancel(s.snap, events.CancelRequest{Agent: "bot", Task: "t1", Version: s.snap.State.Version}, "agent bot", s.moment()))
	case 10:
		n := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(rt, "nonce")
		*nonces = append(*nonces, n)
		s.claim(n)
	case 11:
		s.effect(rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "nonce"), rapid.SampledFrom([]events.EffectStatus{events.EffectRunning, events.EffectDone, events.EffectFailed}).Draw(rt, "status"))
	}
}

// check is what must hold of the log after every input.
func check(rt *rapid.T, s *story, before broker.Snapshot) {
	if !s.snap.Known() {
		return
	}
	st := s.snap.State
	if st.Version < before.State.Version {
		rt.Fatalf("version went back from %d to %d", before.State.Version, st.Version)
	}
	accepted, released, ended := map[events.Version]int{}, map[events.Version]int{}, map[events.Version]bool{}
	seen := map[events.SubmissionID]bool{}
	for i, x := range s.log {
		for _, a := range x.Accepted {
			if !seen[a.Submission] {
				seen[a.Submission], accepted[a.Version] = true, accepted[a.Version]+1
			}
		}
		if x.Kind == events.Released {
			released[x.Version]++
			checkBasis(rt, x)
		}
		if p := x.Pause; p != nil {
			if ended[p.Version] && p.Status == events.PauseWaiting {
				rt.Fatalf("version %d reopened at %d", p.Version, i)
			}
			ended[p.Version] = ended[p.Version] || p.Status != events.PauseWaiting
			if p.Status == events.PauseTimedOut && x.Kind == events.TimedOut && p.Reached.IsZero() {
				rt.Fatalf("timed out although nobody was reached")
			}
		}
		if x.Left != nil && x.Left.Status == events.PauseWaiting {
			rt.Fatalf("a pause was left waiting")
		}
	}
	for v, n := range accepted {
		if n > 1 {
			rt.Fatalf("%d answers accepted for version %d", n, v)
		}
	}
	for v, n := range released {
		if n > 1 {
			rt.Fatalf("%d releases of version %d", n, v)
		}
	}
}

func checkBasis(rt *rapid.T, s events.State) {
	acc := slices.IndexFunc(s.Accepted, func(a events.Accepted) bool { return a.Version == s.Release.Basis })
	decided, isProceed := s.Decision.Decision.(events.Proceed)
	switch {
	case !isProceed:
		rt.Fatalf("released on a decision to %s", events.KindOf(s.Decision.Decision))
	case decided.Why.Action != s.Release.Action || policy.Assume(s.Candidate, decided.Why).Action() != s.Release.Action:
		rt.Fatalf("released another action than was decided")
	}
	switch s.Release.From {
	case events.FromProceed:
		if s.Pause != nil && s.Pause.Status != events.PauseSuperseded {
			rt.Fatalf("released as a plain proceed although a question was asked")
		}
	case events.FromAnswer:
		if acc < 0 || s.Accepted[acc].Kind == events.Approval {
			rt.Fatalf("released on an answer that nobody gave")
		}
	case events.FromApproval:
		if acc < 0 || s.Accepted[acc].Kind != events.Approval || s.Pause.Action != s.Release.Action {
			rt.Fatalf("released on an approval that nobody gave of this action")
		}
	case events.FromAfterDeadline:
		if !decided.Why.Traits.Reversible || s.Pause.Status != events.PauseTimedOut || len(decided.Why.Assumptions) == 0 {
			rt.Fatalf("released after a deadline without a documented default on a reversible action")
		}
	default:
		rt.Fatalf("released on basis %q", s.Release.From)
	}
}
