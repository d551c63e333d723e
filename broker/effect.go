package broker

import "github.com/clarify-broker/clarify/events"

// Effect is stage eight: what the holder of a claim says. A renewal extends the lease; an outcome that bears the fence is
// accepted even when the lease is over; anything that does not bear it is refused.
func (r Rules) Effect(s Snapshot, e events.EffectReport, m Moment) Change {
	this := attempt{Key{e.Agent, e.Task}, "effect", e.Nonce, e.Version}
	refuse := func(reason events.Reason) Change { return this.refused(s, reason, m) }
	held := s.Known() && s.State.Claim != nil && s.State.Release.Version == e.Version &&
		s.State.Claim.Nonce == e.Nonce && s.State.Claim.Fence == e.Fence
	switch {
	case !s.Known():
		return refuse(events.UnknownTask)
	case !held:
		return refuse(events.Taken)
	case s.State.Effect != nil:
		return Change{} // this outcome is recorded; it was sent again because the reply was lost
	case s.State.Kind != events.Claimed && s.State.Kind != events.InDoubt:
		return refuse(events.NotReleased)
	case e.Status == events.EffectRunning && s.State.Kind == events.InDoubt:
		return refuse(events.Taken) // the lease is over: somebody may be looking into it
	case e.Status != events.EffectRunning && e.Action != s.State.Release.Action:
		return refuse(events.InvalidValue)
	}
	next := step(s.State, m)
	if e.Status == events.EffectRunning {
		claim := *next.Claim
		claim.Until = m.Now.Add(r.Lease)
		next.Claim = &claim
		return become(next)
	}
	switch e.Status {
	case events.EffectDone:
		next.Kind = events.Done
	case events.EffectFailed:
		next.Kind = events.Failed
	case events.EffectRunning: // handled above
	default:
		return refuse(events.InvalidValue)
	}
	next.Effect = &events.Effect{Status: e.Status, Action: e.Action, Fence: e.Fence, Result: e.Result, Error: e.Error, At: m.Now}
	return become(next)
}
