package audit

import (
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

const (
	anyone    = "anyone"
	barred    = "not:" // prefix of a responder who may not answer although others like them may
	requester = "requester"
)

// mayBeBarred reports that somebody is barred whom the record does not let be told from the responder: a subject stands in it
// as a keyed HMAC unless the directory knows whose it is.
func mayBeBarred(responders []string, r events.ResponderRecord) bool {
	return r.Person == "" && slices.ContainsFunc(responders, func(id string) bool { return strings.HasPrefix(id, barred) })
}

// mayAnswer reports whether a responder is among those who may answer. Nobody is, of an empty list.
func mayAnswer(responders []string, r events.ResponderRecord) bool {
	if slices.ContainsFunc(responders, func(id string) bool {
		out, found := strings.CutPrefix(id, barred)
		return found && (out == r.Person || out == r.Subject)
	}) {
		return false
	}
	return slices.Contains(responders, anyone) || r.Person != "" && slices.Contains(responders, r.Person)
}

// authority is guarantee 5: an answer is of the kind of its pause and of somebody who may give it, and nobody approves their
// own request unless the policy says so.
func (m *move) authority() {
	m.kinds()
	for _, a := range m.added() {
		p := m.pauseAt(a.Version)
		if p == nil {
			continue
		}
		switch {
		case a.Question != p.Question:
			m.fail(5, "question", "the accepted answer is to another question")
		case a.Kind != p.Kind:
			m.fail(5, "stand-in", "an answer of kind "+string(a.Kind)+" was accepted to a pause of kind "+string(p.Kind))
		case len(p.Responders) == 0:
			m.fail(5, "responders", "an answer was accepted although nobody may answer")
		case !mayAnswer(p.Responders, a.Responder):
			m.fail(5, "responders", "the accepted answer is of somebody who may not answer")
		case a.Kind == events.Approval && m.next.Kind != events.Denied && m.own(a):
			m.fail(5, "own", "somebody approved their own request, and the policy does not say they may")
		}
	}
}

// kinds checks that a transition is about a pause of its kind.
func (m *move) kinds() {
	want := map[events.Kind]events.PauseKind{
		events.Asked: events.Clarification, events.ApprovalAsked: events.Approval,
		events.Escalated: events.Escalation, events.Denied: events.Approval,
	}[m.next.Kind]
	if p := m.next.Pause; want != "" && p != nil && p.Kind != want {
		m.fail(5, "kind", string(m.next.Kind)+" with a pause of kind "+string(p.Kind))
	}
	if m.next.Kind == events.Denied && m.prev != nil && len(m.added()) == 0 {
		m.fail(5, "denied", "denied without an approver's word")
	}
}

// pauseAt finds the pause of a version in this transition or the one before.
func (m *move) pauseAt(v events.Version) *events.PauseRecord {
	all := []*events.PauseRecord{m.next.Pause, m.next.Left}
	if m.prev != nil {
		all = append([]*events.PauseRecord{m.prev.Pause}, all...)
	}
	for _, p := range all {
		if p != nil && p.Version == v {
			return p
		}
	}
	return nil
}

// own reports that the responder is the requester, whom the policy has not named.
func (m *move) own(a events.Approved) bool {
	if m.prev == nil || m.next.Requester == "" || slices.Contains(m.prev.Why.From, requester) {
		return false
	}
	return a.Responder.Person == m.next.Requester || a.Responder.Subject == m.next.Requester
}
