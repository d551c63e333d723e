package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// versions is guarantee 3: versions only grow, each names one pause, and a pause that ended stays as it ended.
func (m *move) versions() {
	m.ends()
	p := m.next.Pause
	if p != nil && p.Version > m.r.Version {
		m.fail(3, "version", "its pause is of a later version than it is")
	}
	if m.prev == nil {
		return
	}
	switch {
	case m.r.Version < m.was.Version:
		m.fail(3, "version", "its version is lower than the one before")
	case m.first() && m.r.Version == m.was.Version:
		m.fail(3, "version", "a newer candidate has the version of the one before")
	case m.first():
	case m.prev.Pause == nil && p == nil, p != nil && m.prev.Pause != nil && p.Question == m.prev.Pause.Question:
		if m.r.Version != m.was.Version {
			m.fail(3, "version", "its version grew without a new pause")
		}
	}
	if !m.first() {
		m.pauses()
	}
}

// ends checks that what a transition says of its pause is what its kind means.
func (m *move) ends() {
	p, left := m.next.Pause, m.next.Left
	want := map[events.Kind]events.PauseStatus{
		events.Answered: events.PauseAnswered, events.Denied: events.PauseAnswered,
		events.TimedOut: events.PauseTimedOut, events.Undelivered: events.PauseUndelivered,
	}[m.next.Kind]
	switch {
	case open(m.next.Kind) && !waits(p):
		m.fail(3, "status", "it waits, but its pause does not")
	case !open(m.next.Kind) && waits(p):
		m.fail(3, "status", "it has ended, but its pause waits")
	case want != "" && p != nil && p.Status != want && !(m.next.Kind == events.Answered && p.Status == events.PauseSuperseded):
		m.fail(3, "status", "its pause did not end the way it did")
	case (m.next.Kind == events.Denied || m.next.Kind == events.TimedOut) && p == nil:
		m.fail(3, "status", "there was no pause that could have ended so")
	case waits(left):
		m.fail(3, "status", "the pause it left still waits")
	}
}

// pauses checks a pause against the one of the transition before.
func (m *move) pauses() {
	old, p := m.prev.Pause, m.next.Pause
	switch {
	case old == nil && p == nil:
	case p == nil:
		m.fail(3, "pause", "the pause of the transition before is gone")
	case old == nil:
		m.opened()
	case old.Question != p.Question:
		m.opened()
		m.left()
	default:
		m.same(old, p)
	}
}

// same checks the parts of a pause that never change.
func (m *move) same(old, p *events.PauseRecord) {
	if p.Version != old.Version {
		m.fail(3, "version", "one pause has two versions")
	}
	if old.Status != events.PauseWaiting && p.Status != old.Status {
		m.fail(3, "reopened", "a pause that ended as "+string(old.Status)+" is "+string(p.Status)+" now")
	}
	if slices.Contains(pauseKinds(), m.next.Kind) {
		m.fail(3, "reopened", "a question was asked a second time at its version")
	}
	if p.Kind != old.Kind {
		m.fail(5, "kind", "the kind of a pause changed")
	}
	if !slices.Equal(p.Responders, old.Responders) {
		m.fail(5, "responders", "who may answer changed after the question was asked")
	}
	if p.Action != old.Action {
		m.fail(6, "shown", "the action shown changed after the question was asked")
	}
}

// opened checks a further pause of the same candidate.
func (m *move) opened() {
	p := m.next.Pause
	switch {
	case !slices.Contains(pauseKinds(), m.next.Kind) && m.next.Kind != events.Undelivered:
		m.fail(3, "pause", "a new pause began with "+string(m.next.Kind))
	case p.Version <= m.was.Version || p.Version != m.r.Version:
		m.fail(3, "version", "a new pause did not take a version of its own")
	}
}

// left checks how the pause before ended, of which only the transition that left it tells.
func (m *move) left() {
	old, left := m.prev.Pause, m.next.Left
	switch {
	case left == nil || left.Question != old.Question:
		m.fail(3, "left", "it does not say how the pause before ended")
	case old.Status != events.PauseWaiting && left.Status != old.Status:
		m.fail(3, "reopened", "a pause that ended as "+string(old.Status)+" is "+string(left.Status)+" now")
	case left.Status == events.PauseTimedOut:
		m.timedOut(left)
		if left.AfterDeadline != events.DeadlineDefault && left.AfterDeadline != events.DeadlineEscalate {
			m.fail(4, "silence", "nobody answered, and the policy does not say to go on then")
		}
	case left.Status == events.PauseSuperseded && m.prev.Why.Lookup == "":
		m.fail(4, "silence", "a question to people was left without an answer")
	case left.Status == events.PauseCancelled || left.Status == events.PauseUndelivered:
		m.fail(4, "silence", "it went on after the pause before ended as "+string(left.Status))
	}
}
