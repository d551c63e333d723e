package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// added are the answers this transition accepted.
func (m *move) added() []events.Approved {
	if m.prev == nil && !m.begins() {
		return nil // not known which of them are new
	}
	if m.first() {
		return m.next.Accepted
	}
	return m.next.Accepted[min(len(m.prev.Accepted), len(m.next.Accepted)):]
}

// accepts is guarantee 2 for answers: at most one per version, and only to the version that waited.
func (m *move) accepts() {
	all := m.next.Accepted
	for i := 1; i < len(all); i++ {
		if all[i].Version <= all[i-1].Version {
			m.fail(2, "answer", "two answers were accepted at one version")
		}
	}
	added := m.added()
	if len(added) > 1 {
		m.fail(2, "answer", "one transition accepted two answers")
	}
	for _, a := range added {
		switch {
		case m.first():
			m.fail(2, "answer", "a candidate began with an accepted answer")
		case a.Version <= m.task.accepted:
			m.fail(2, "answer", "a second answer was accepted at its version")
		case !open(m.prev.Kind):
			m.fail(3, "late", "an answer was accepted after "+string(m.prev.Kind))
		case m.prev.Pause == nil || a.Version != m.prev.Pause.Version:
			m.fail(3, "stale", "an answer was accepted to a version that did not wait")
		}
	}
}

// claims is guarantee 2 for executors: a claim needs a release, a second one an idempotent tool and a doubt, each bears a
// higher fence, and an outcome bears the fence of its claim.
func (m *move) claims() {
	c, e := m.next.Claim, m.next.Effect
	if executed(m.next.Kind) && c == nil {
		m.fail(2, "claim", string(m.next.Kind)+" without a claim")
		return
	}
	if c == nil {
		if e != nil {
			m.fail(2, "effect", "an outcome without a claim")
		}
		return
	}
	if c.Count > 1 && !m.next.Why.Traits.Idempotent {
		m.fail(2, "claim", "claimed more than once, and the tool is not declared idempotent")
	}
	switch old := m.claimBefore(); {
	case m.prev == nil && !m.begins():
	case old != nil && old.Nonce == c.Nonce && old.Fence == c.Fence:
		if old.Count != c.Count || old.Worker != c.Worker {
			m.fail(2, "claim", "a claim changed hands")
		}
	default:
		m.claimed(old, c)
	}
	m.outcome(c, e)
}

func (m *move) claimBefore() *events.ClaimRecord {
	if m.first() {
		return nil
	}
	return m.prev.Claim
}

func (m *move) claimed(old, c *events.ClaimRecord) {
	count := 1
	if old != nil {
		count = old.Count + 1
	}
	switch {
	case m.next.Kind != events.Claimed:
		m.fail(2, "claim", "a claim appeared with "+string(m.next.Kind))
	case old != nil && !m.next.Why.Traits.Idempotent:
		m.fail(2, "claim", "a second claim, and the tool is not declared idempotent")
	case old != nil && m.prev.Kind != events.InDoubt:
		m.fail(2, "claim", "a second claim while the first one's lease ran")
	case c.Count != count:
		m.fail(2, "claim", "the claims are not counted")
	}
	if c.Fence <= m.task.fence {
		m.fail(2, "fence", "its fence is not higher than an earlier one of the task")
	}
	if c.Fence != m.r.After {
		m.fail(2, "fence", "its fence is not the sequence it was made over")
	}
}

func (m *move) outcome(c *events.ClaimRecord, e *events.EffectRecord) {
	ended := slices.Contains([]events.Kind{events.Done, events.Failed, events.Reconciled}, m.next.Kind)
	want := map[events.Kind]events.EffectStatus{events.Done: events.EffectDone, events.Failed: events.EffectFailed}[m.next.Kind]
	switch {
	case ended && e == nil:
		m.fail(2, "effect", string(m.next.Kind)+" without an outcome")
	case e == nil:
	case !ended:
		m.fail(2, "effect", "an outcome is recorded, but the task is "+string(m.next.Kind))
	case want != "" && e.Status != want, e.Status != events.EffectDone && e.Status != events.EffectFailed:
		m.fail(2, "effect", "the outcome is not what the task says")
	case e.Fence != c.Fence:
		m.fail(2, "fence", "the outcome does not bear the fence of the claim")
	}
}
