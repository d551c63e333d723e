package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// digests is guarantee 6: what is decided, shown, released and executed is one action.
func (m *move) digests() {
	t := m.next
	fresh := slices.Contains(pauseKinds(), t.Kind) || t.Kind == events.Released
	switch {
	case t.Action == "":
		m.fail(6, "action", "it does not say which action it is about")
	case fresh && t.Why.Action != t.Action:
		m.fail(6, "decided", "the decided action is not the candidate's with what the policy assumed")
	case open(t.Kind) && t.Pause != nil && t.Pause.Action != t.Action:
		m.fail(6, "shown", "the action shown is not the candidate's with what the policy assumed")
	}
	if rel := t.Release; rel != nil && (t.Kind == events.Released || executed(t.Kind)) {
		m.bound(rel)
	}
	if m.prev != nil && !m.first() && t.Action != m.prev.Action && !m.decides() {
		m.fail(6, "changed", "the action changed although nothing was decided")
	}
}

// decides reports that the transition is the outcome of a decision, which may be about another action than the one before.
func (m *move) decides() bool {
	switch m.next.Kind {
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Released, events.Stopped, events.Conflicted, events.Answered:
		return true
	case events.Undelivered:
		return m.next.Pause == nil || m.prev.Pause == nil || m.next.Pause.Question != m.prev.Pause.Question
	default:
		return false
	}
}

func (m *move) bound(rel *events.Release) {
	t := m.next
	if rel.Action != t.Action {
		m.fail(6, "released", "the released action is not the candidate's with what the policy assumed")
	}
	if rel.From == events.FromApproval && t.Pause != nil && t.Pause.Action != rel.Action {
		m.fail(6, "released", "the released action is not the one that was shown")
	}
	if e := t.Effect; e != nil && e.Action != rel.Action && (t.Kind != events.Reconciled || e.Action != "") {
		m.fail(6, "executed", "the executed action is not the released one")
	}
}
