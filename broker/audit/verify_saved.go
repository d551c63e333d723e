package audit

import (
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// saved is guarantee 9: an accepted answer stays what it was for as long as its candidate is there, and a pause that counts
// as answered has its answer.
func (m *move) saved() {
	if m.prev != nil && !m.first() {
		m.kept()
	}
	for _, p := range []*events.PauseRecord{m.next.Pause, m.next.Left} {
		if p == nil || p.Status != events.PauseAnswered {
			continue
		}
		if !slices.ContainsFunc(m.next.Accepted, func(a events.Approved) bool { return a.Version == p.Version }) {
			m.fail(9, "lost", "a pause counts as answered, but its answer is not there")
		}
	}
}

func (m *move) kept() {
	if len(m.next.Accepted) < len(m.prev.Accepted) {
		m.fail(9, "lost", "an accepted answer is gone")
		return
	}
	for i, a := range m.prev.Accepted {
		if !sameAnswer(a, m.next.Accepted[i]) {
			m.fail(9, "lost", "an accepted answer changed")
		}
	}
}

func sameAnswer(a, b events.Approved) bool {
	values := maps.Equal(a.Values, b.Values)
	a.Values, b.Values = nil, nil
	at := a.At.Equal(b.At)
	a.At = b.At
	return values && at && a.Version == b.Version && a.Question == b.Question && a.Kind == b.Kind &&
		a.Submission == b.Submission && a.Responder == b.Responder
}
