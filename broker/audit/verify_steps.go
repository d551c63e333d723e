package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// Words for lists of kinds.
func openKinds() []events.Kind {
	return []events.Kind{events.Asked, events.ApprovalAsked, events.Escalated, events.Reached, events.Rerouted, events.Reminded, events.Overdue}
}

func pauseKinds() []events.Kind {
	return []events.Kind{events.Asked, events.ApprovalAsked, events.Escalated}
}

func open(k events.Kind) bool { return slices.Contains(openKinds(), k) }

// final reports that only a newer candidate can follow.
func final(k events.Kind) bool { return slices.Contains(events.Kinds(), k) && len(follow(k)) == 0 }

// executed reports that a kind says something about an executor.
func executed(k events.Kind) bool {
	switch k {
	case events.Claimed, events.Done, events.Failed, events.InDoubt, events.Reconciled:
		return true
	default:
		return false
	}
}

// begin are the kinds a candidate's first transition may have.
func begin() []events.Kind {
	return append(pauseKinds(), events.Released, events.Stopped, events.Conflicted, events.Undelivered)
}

// follow are the kinds that may come after a kind while the candidate stays the same.
func follow(k events.Kind) []events.Kind {
	switch k {
	case events.Asked, events.ApprovalAsked, events.Escalated, events.Reached, events.Rerouted, events.Reminded, events.Overdue:
		return append(openKinds(), events.Answered, events.Released, events.Stopped, events.Conflicted, events.Denied,
			events.Cancelled, events.TimedOut, events.Undelivered, events.Superseded)
	case events.Answered:
		return append(begin(), events.Cancelled, events.Superseded)
	case events.Released:
		return []events.Kind{events.Claimed, events.Conflicted, events.Cancelled, events.Superseded}
	case events.Claimed:
		return []events.Kind{events.Claimed, events.Done, events.Failed, events.InDoubt}
	case events.InDoubt:
		return []events.Kind{events.Claimed, events.Done, events.Failed, events.Reconciled}
	case events.Stopped, events.Conflicted, events.Denied, events.Cancelled, events.TimedOut, events.Undelivered, events.Superseded,
		events.Done, events.Failed, events.Reconciled:
	}
	return nil
}

// steps checks that the kind may follow the one before. What is illegal is counted where it would do harm: a release without
// a basis, an effect without a claim, or a version that goes on after its end.
func (m *move) steps() {
	kind := m.next.Kind
	guarantee := 3
	switch {
	case kind == events.Released:
		guarantee = 1
	case executed(kind):
		guarantee = 2
	}
	switch {
	case !slices.Contains(events.Kinds(), kind):
		m.fail(8, "kind", "its kind is unknown")
	case m.begins() && !slices.Contains(begin(), kind):
		m.fail(guarantee, "step", string(kind)+" cannot be the first transition of a candidate")
	case m.prev == nil || m.first():
	case final(m.prev.Kind):
		m.fail(3, "reopened", string(kind)+" after "+string(m.prev.Kind)+", which is final for its candidate")
	case !slices.Contains(follow(m.prev.Kind), kind):
		m.fail(guarantee, "step", string(kind)+" cannot follow "+string(m.prev.Kind))
	}
	if m.prev != nil && m.first() {
		m.replaces()
	}
}

// replaces checks what a newer candidate may take the place of.
func (m *move) replaces() {
	switch was := m.prev.Kind; {
	case was == events.Claimed || was == events.InDoubt:
		m.fail(2, "busy", "a newer candidate replaced one that an executor had claimed")
	case final(was):
	case m.next.Superseded != m.was.Version:
		m.fail(3, "superseded", "it does not name the version it replaced")
	case waits(m.prev.Pause) && (m.next.Left == nil || m.next.Left.Question != m.prev.Pause.Question):
		m.fail(3, "superseded", "it does not say what became of the pause it replaced")
	}
}

func waits(p *events.PauseRecord) bool { return p != nil && p.Status == events.PauseWaiting }
