package broker

import (
	"maps"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Claim is stage seven: one executor takes the release. The same nonce may ask again; any other is refused, unless the
// lease is over without an outcome and the policy declares the tool idempotent. What the tool found when it looked at its
// world once more goes through the reconcile rules.
func (r Rules) Claim(s Snapshot, c events.ClaimRequest, m Moment) Change {
	this := attempt{Key{c.Agent, c.Task}, "claim", c.Nonce, c.Version}
	refuse := func(reason events.Reason) Change { return this.refused(s, reason, m) }
	switch {
	case !s.Known():
		return refuse(events.UnknownTask)
	case s.State.Release == nil:
		return refuse(events.NotReleased)
	case c.Version != s.State.Release.Version:
		return refuse(events.StaleVersion)
	case s.State.Kind == events.Claimed && s.State.Claim.Nonce == c.Nonce:
		return Change{}
	case s.State.Kind == events.Claimed:
		return refuse(events.Taken)
	case s.State.Kind == events.InDoubt && !s.State.Decision.Basis().Traits.Idempotent:
		return refuse(events.Taken)
	case s.State.Kind != events.Released && s.State.Kind != events.InDoubt:
		return refuse(events.NotReleased)
	case r.Frozen:
		return refuse(events.Frozen)
	}
	next := step(s.State, m)
	if s.State.Kind == events.Released {
		if kind, why := r.contradicted(next, c.Recheck); why != nil {
			next.Kind, next.Note, next.Decision = kind, why.Basis().Reason, events.Decided{Decision: why}
			return become(next)
		}
	}
	claim := events.Claim{Nonce: c.Nonce, Worker: c.Worker, Fence: s.Seq, Until: m.Now.Add(r.Lease), Count: 1}
	if s.State.Claim != nil {
		claim.Count = s.State.Claim.Count + 1
	}
	next.Kind, next.Claim = events.Claimed, &claim
	return become(next)
}

// contradicted decides again with fresh facts. They can only take a release back: when they contradict it, or put it beyond
// what may run at all. A rule they break is no permission.
func (r Rules) contradicted(s events.State, fresh map[string]events.Secret) (events.Kind, events.Decision) {
	if len(fresh) == 0 {
		return "", nil
	}
	c := decided(s)
	c.State = maps.Clone(c.State)
	if c.State == nil {
		c.State = map[string]events.Secret{}
	}
	maps.Copy(c.State, fresh)
	switch d := r.Policy.Decide(policy.Input{Candidate: c, Asks: s.Asks, Granted: s.Release.Action}).(type) {
	case events.Reconcile:
		return events.Conflicted, d
	case events.Stop, events.Escalate:
		return events.Stopped, d
	case events.Ask, events.Approve, events.Proceed: // settled before the release
	}
	return "", nil
}

// grant is what the holder of a claim is told.
func grant(s events.State) *events.Grant {
	return &events.Grant{
		Version: s.Release.Version, Step: s.Candidate.Step, Tool: s.Candidate.Tool,
		Arguments: decided(s).Arguments, Action: s.Release.Action, Fence: s.Claim.Fence, Until: s.Claim.Until,
	}
}
