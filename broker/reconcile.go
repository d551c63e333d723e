package broker

import "github.com/clarify-broker/clarify/events"

// Reconcile is what an operator says became of a claim that is in doubt.
func (r Rules) Reconcile(s Snapshot, o events.OperatorRequest, m Moment) Change {
	this := attempt{Key{o.Agent, o.Task}, "reconcile", m.Cause, o.Version}
	refuse := func(reason events.Reason) Change { return this.refused(s, reason, m) }
	switch {
	case !s.Known():
		return refuse(events.UnknownTask)
	case o.Outcome != events.EffectDone && o.Outcome != events.EffectFailed:
		return refuse(events.InvalidValue)
	case s.State.Kind == events.Reconciled && s.State.Cause == m.Cause:
		return Change{}
	case s.State.Kind != events.InDoubt:
		return refuse(events.NotPending)
	}
	next := step(s.State, m)
	next.Kind, next.By, next.Note = events.Reconciled, o.By, o.Reason
	next.Effect = &events.Effect{Status: o.Outcome, Action: next.Release.Action, Fence: next.Claim.Fence, By: o.By, At: m.Now}
	return become(next)
}
