package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// release is guarantee 1: a release rests on exactly one of a decision to proceed, an accepted answer, an approval of the
// digest, and the policy's documented default on a reversible action.
func (m *move) release() {
	rel := m.next.Release
	made := rel != nil && (m.begins() || m.prev != nil && (m.first() || m.prev.Release == nil || *m.prev.Release != *rel))
	switch {
	case rel == nil && (m.next.Kind == events.Released || executed(m.next.Kind)):
		m.fail(1, "basis", string(m.next.Kind)+" without a release")
		return
	case made && m.next.Kind != events.Released:
		m.fail(1, "basis", "a release appeared or changed with "+string(m.next.Kind))
		return
	case rel == nil || m.next.Kind != events.Released:
		return
	}
	if rel.Version != m.r.Version {
		m.fail(1, "basis", "the release names another version")
	}
	if rel.Version <= m.task.released {
		m.fail(2, "release", "its version was released before")
	}
	switch rel.From {
	case events.FromProceed:
		m.fromProceed()
	case events.FromAnswer:
		m.fromAnswer()
	case events.FromApproval:
		m.fromApproval()
	case events.FromAfterDeadline:
		m.fromAfterDeadline()
	default:
		m.fail(1, "basis", "the release names no basis there is")
	}
}

func (m *move) decided(kinds ...events.DecisionKind) {
	if !slices.Contains(kinds, m.next.Decision) {
		m.fail(1, "decision", "released on a decision to "+string(m.next.Decision))
	}
}

func (m *move) fromProceed() {
	m.decided(events.KindProceed)
	lookup := m.prev != nil && !m.first() && m.prev.Why.Lookup != ""
	if m.next.Pause != nil && !lookup && (m.prev != nil || m.begins()) {
		m.fail(1, "basis", "a question was asked, and the release does not rest on its answer")
	}
}

// basis finds the accepted answer a release rests on: the last one, to the pause that has just ended.
func (m *move) basis() (events.Approved, bool) {
	p, all := m.next.Pause, m.next.Accepted
	if p == nil || len(all) == 0 || p.Version != m.next.Release.Basis || p.Status != events.PauseAnswered {
		return events.Approved{}, false
	}
	last := all[len(all)-1]
	return last, last.Version == m.next.Release.Basis
}

func (m *move) fromAnswer() {
	m.decided(events.KindProceed)
	a, found := m.basis()
	switch {
	case !found:
		m.fail(1, "basis", "there is no accepted answer at the version the release rests on")
	case a.Kind != events.Clarification && a.Kind != events.Escalation:
		m.fail(5, "stand-in", "an approval was taken for an answer")
	}
}

func (m *move) fromApproval() {
	m.decided(events.KindApprove, events.KindProceed)
	a, found := m.basis()
	switch {
	case !found:
		m.fail(1, "basis", "there is no approval at the version the release rests on")
	case a.Kind != events.Approval || m.next.Pause.Kind != events.Approval:
		m.fail(5, "stand-in", "an answer was taken for an approval")
	case m.next.Pause.Action != m.next.Release.Action:
		m.fail(1, "basis", "the approval was of another digest")
	}
}

func (m *move) fromAfterDeadline() {
	m.decided(events.KindProceed)
	p := m.next.Pause
	documented := slices.ContainsFunc(m.next.Why.Assumptions, func(a events.Assumed) bool {
		return a.Source == "after_deadline" && a.Documented != ""
	})
	switch {
	case p == nil || p.Version != m.next.Release.Basis || p.Status != events.PauseTimedOut || p.Kind != events.Clarification:
		m.fail(1, "basis", "no clarification timed out at the version the release rests on")
	case p.AfterDeadline != events.DeadlineDefault:
		m.fail(1, "basis", "the policy does not let silence mean a default here")
	case !m.next.Why.Traits.Reversible:
		m.fail(1, "basis", "silence released an action that cannot be reversed")
	case !documented:
		m.fail(1, "basis", "silence released an action without a documented default")
	}
}
