package broker

import (
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// release lets one executor run the action once. While releases are frozen the step stays answered, to be decided again.
func (r Rules) release(s events.State, from events.ReleaseBasis, m Moment) events.State {
	if r.Frozen {
		s.Kind = events.Answered
		return s
	}
	rel := events.Release{Version: s.Version, Action: s.Decision.Basis().Action, From: from, At: m.Now}
	if s.Pause != nil {
		rel.Basis = s.Pause.Version
	}
	s.Kind, s.Release = events.Released, &rel
	s.Asks.Consecutive = 0
	return s
}

// Redecide decides an answered step again, once releases are no longer frozen.
func (r Rules) Redecide(s Snapshot, m Moment) Change {
	if s.State.Kind != events.Answered || r.Frozen {
		return Change{}
	}
	next := step(s.State, m)
	from, in := events.FromAnswer, policy.Input{}
	if p := next.Pause; p != nil && p.Kind == events.Approval {
		from, in.Granted = events.FromApproval, p.Action
	}
	return become(r.settle(next, in, from, m))
}
