package audit

import (
	"time"

	"github.com/clarify-broker/clarify/events"
)

func basisFaults() []fault {
	return []fault{
		{1, "basis", "released without a release", at(kind(events.Released), func(r *events.Record) { r.Transition.Release = nil })},
		{1, "basis", "claimed without a release", at(kind(events.Claimed), func(r *events.Record) { r.Transition.Release = nil })},
		{1, "basis", "an unanswered question, and the release rests on nothing", at(releasedFrom(events.FromAnswer), func(r *events.Record) {
			r.Transition.Release.From = events.FromProceed
		})},
		{1, "basis", "the answer a release rests on is not there", at(releasedFrom(events.FromAnswer), func(r *events.Record) { r.Transition.Accepted = nil })},
		{1, "basis", "the answer a release rests on is of another version", at(releasedFrom(events.FromAnswer), func(r *events.Record) { r.Transition.Release.Basis-- })},
		{1, "basis", "the approval a release rests on is not there", at(releasedFrom(events.FromApproval), func(r *events.Record) { r.Transition.Accepted = nil })},
		{1, "basis", "the approval was of another digest", at(releasedFrom(events.FromApproval), func(r *events.Record) {
			r.Transition.Pause.Action = other(r.Transition.Action)
		})},
		{1, "basis", "silence released what cannot be reversed", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) {
			r.Transition.Why.Traits.Reversible = false
		})},
		{1, "basis", "silence released without a documented default", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) {
			r.Transition.Why.Assumptions = nil
		})},
		{1, "basis", "silence released although the policy says stop", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) {
			r.Transition.Pause.AfterDeadline = events.DeadlineStop
		})},
		{1, "basis", "silence released an approval", at(releasedFrom(events.FromAfterDeadline), func(r *events.Record) {
			r.Transition.Pause.Kind = events.Approval
		})},
		{1, "basis", "a basis there is not", at(kind(events.Released), func(r *events.Record) { r.Transition.Release.From = "because" })},
		{1, "basis", "a release of another version", at(kind(events.Released), func(r *events.Record) { r.Transition.Release.Version++ })},
		{1, "basis", "a release slipped in with a stop", at(kind(events.Stopped), func(r *events.Record) {
			r.Transition.Release = &events.Release{Version: r.Version, Action: r.Transition.Action, From: events.FromProceed}
		})},
		{1, "decision", "released on a decision to stop", at(kind(events.Released), func(r *events.Record) { r.Transition.Decision = events.KindStop })},
		{1, "decision", "released from an answer on a decision to ask for approval", at(releasedFrom(events.FromAnswer), func(r *events.Record) {
			r.Transition.Decision = events.KindApprove
		})},
		{1, "step", "released twice", func(all trail) trail {
			i := all.find(kind(events.Released))
			if i < 0 {
				return nil
			}
			return all.insert(i, clone(all[i]))
		}},
	}
}

func onceFaults() []fault {
	return []fault{
		{2, "step", "done without having been claimed", func(all trail) trail {
			i := all.find(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Claim.Count == 1 })
			if i < 0 || all.after(i) < 0 || all[all.after(i)].Transition.Kind != events.Done {
				return nil
			}
			return all.remove(i)
		}},
		{2, "busy", "a candidate replaced one that was claimed", func(all trail) trail {
			i := all.find(kind(events.Claimed))
			if i < 0 || all.after(i) < 0 || all[all.after(i)].Transition.Kind != events.Done {
				return nil
			}
			j := all.after(all.after(i))
			if j < 0 || all[j].Transition.Candidate == all[i].Transition.Candidate {
				return nil
			}
			return all.remove(all.after(i))
		}},
		{2, "release", "one version released twice", func(all trail) trail {
			i := all.find(kind(events.Released))
			if i < 0 {
				return nil
			}
			again := clone(all[i])
			again.Transition.Candidate += "-b"
			return all.insert(i, again)
		}},
		{2, "answer", "two answers at one version", at(answered(events.Clarification, events.Released), func(r *events.Record) {
			second := r.Transition.Accepted[0]
			second.Submission = "sub-other"
			r.Transition.Accepted = append(r.Transition.Accepted, second)
		})},
		{2, "answer", "a candidate began with an answer", at(func(t *events.Transition) bool { return t.Kind == events.Asked && t.Left == nil && t.Pause.Version > 1 },
			func(r *events.Record) {
				r.Transition.Accepted = []events.Approved{{
					Version: r.Version - 1, Kind: events.Clarification, Submission: "sub-early",
					Responder: events.ResponderRecord{Person: "luis", Channel: "slack", Assurance: events.Platform},
				}}
			})},
		{2, "claim", "a second claim of a tool that is not idempotent", second(func(t *events.Transition) { t.Why.Traits.Idempotent = false })},
		{2, "claim", "a second claim while the first one's lease ran", second(func(t *events.Transition) { t.Why.Traits.Idempotent = true })},
		{2, "claim", "done without a claim", at(kind(events.Done), func(r *events.Record) { r.Transition.Claim = nil })},
		{2, "claim", "a claim appeared with its outcome", func(all trail) trail {
			i := all.find(kind(events.Done))
			if i < 0 {
				return nil
			}
			all[i].Transition.Claim.Nonce = other(all[i].Transition.Claim.Nonce)
			return all
		}},
		{2, "claim", "a claim changed hands", func(all trail) trail {
			i := all.find(kind(events.Done))
			if i < 0 {
				return nil
			}
			all[i].Transition.Claim.Worker = "w2"
			return all
		}},
		{2, "claim", "claims are not counted", at(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Claim.Count > 1 },
			func(r *events.Record) { r.Transition.Claim.Count = 1 })},
		{2, "effect", "done without an outcome", at(kind(events.Done), func(r *events.Record) { r.Transition.Effect = nil })},
		{2, "effect", "failed, and recorded as done", at(kind(events.Failed), func(r *events.Record) { r.Transition.Effect.Status = events.EffectDone })},
		{2, "effect", "an outcome while it is claimed", at(kind(events.Claimed), func(r *events.Record) {
			r.Transition.Effect = &events.EffectRecord{Status: events.EffectDone, Action: r.Transition.Action, Fence: r.Transition.Claim.Fence, At: r.At}
		})},
		{2, "fence", "a fence that does not grow", at(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Claim.Count > 1 },
			func(r *events.Record) { r.Transition.Claim.Fence = 1 })},
		{2, "fence", "the outcome of an older claim", at(kind(events.Done), func(r *events.Record) { r.Transition.Effect.Fence-- })},
	}
}

// second claims a release again while the first claim runs.
func second(spoil func(*events.Transition)) func(trail) trail {
	return func(all trail) trail {
		i := all.find(func(t *events.Transition) bool { return t.Kind == events.Claimed && t.Claim.Count == 1 })
		if i < 0 {
			return nil
		}
		again := clone(all[i])
		c := again.Transition.Claim
		c.Nonce, c.Fence, c.Count = other(c.Nonce), all[i].Log, 2
		spoil(again.Transition)
		return all.insert(i, again)
	}
}

func digestFaults() []fault {
	otherAction := func(r *events.Record) events.Digest { return other(r.Transition.Action) }
	return []fault{
		{6, "action", "no action", at(kind(events.Stopped), func(r *events.Record) { r.Transition.Action = "" })},
		{6, "decided", "another action was decided on than is asked about", at(kind(events.ApprovalAsked), func(r *events.Record) { r.Transition.Why.Action = otherAction(r) })},
		{6, "decided", "another action was decided on than is released", at(kind(events.Released), func(r *events.Record) { r.Transition.Why.Action = otherAction(r) })},
		{6, "shown", "another action was shown than decided", at(kind(events.ApprovalAsked), func(r *events.Record) { r.Transition.Pause.Action = otherAction(r) })},
		{6, "shown", "the action changed while it was shown", at(kind(events.Reached), func(r *events.Record) {
			r.Transition.Pause.Action, r.Transition.Action = otherAction(r), otherAction(r)
		})},
		{6, "released", "another action was released", at(kind(events.Released), func(r *events.Record) { r.Transition.Release.Action = otherAction(r) })},
		{6, "released", "another action was approved", at(releasedFrom(events.FromApproval), func(r *events.Record) { r.Transition.Pause.Action = otherAction(r) })},
		{6, "executed", "another action was executed", at(kind(events.Done), func(r *events.Record) { r.Transition.Effect.Action = otherAction(r) })},
		{6, "changed", "the arguments changed at the claim", at(kind(events.Claimed), func(r *events.Record) { r.Transition.Action = otherAction(r) })},
	}
}

func reachFaults() []fault {
	return []fault{
		{7, "undelivered", "undelivered although somebody is reached", at(undelivered, func(r *events.Record) {
			r.Transition.Pause.Deliveries[0].State = events.Seen
		})},
		{7, "undelivered", "undelivered with a step of the route left", at(undelivered, func(r *events.Record) {
			p := r.Transition.Pause
			p.Route.Next, p.Cap = p.Route.Steps-1, p.Ended.Add(time.Hour)
		})},
		{7, "undelivered", "undelivered while a delivery is on its way", at(undelivered, func(r *events.Record) {
			p := r.Transition.Pause
			p.Deliveries[0].State, p.Cap = events.Attempted, p.Ended.Add(time.Hour)
		})},
		{7, "timed_out", "timed out although nobody was ever reached", at(kind(events.TimedOut), func(r *events.Record) {
			r.Transition.Pause.Reached = time.Time{}
		})},
		{7, "timed_out", "timed out after the last bounce", at(kind(events.TimedOut), func(r *events.Record) {
			for i := range r.Transition.Pause.Deliveries {
				r.Transition.Pause.Deliveries[i].State = events.NotDelivered
			}
		})},
		{7, "timed_out", "timed out early", at(kind(events.TimedOut), func(r *events.Record) {
			p := r.Transition.Pause
			p.Deadline, p.Cap = p.Ended.Add(time.Second), p.Ended.Add(time.Hour)
		})},
		{7, "reached", "reached without a receipt", at(kind(events.Reached), func(r *events.Record) {
			for i := range r.Transition.Pause.Deliveries {
				r.Transition.Pause.Deliveries[i].State = events.Held
			}
		})},
		{7, "overdue", "held although the policy says stop", at(kind(events.Overdue), func(r *events.Record) {
			r.Transition.Pause.AfterDeadline = events.DeadlineStop
		})},
		{7, "overdue", "overdue early", at(kind(events.Overdue), func(r *events.Record) {
			p := r.Transition.Pause
			p.Deadline, p.Cap = p.Overdue.Add(time.Second), time.Time{}
		})},
	}
}

func undelivered(t *events.Transition) bool {
	return t.Kind == events.Undelivered && t.Pause != nil && len(t.Pause.Deliveries) > 0
}
