package audit

import (
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// reach is guarantee 7: undelivered means that nobody is reached and nothing is left to try, timed out that somebody was
// reached and the time is over.
func (m *move) reach() {
	p := m.next.Pause
	if p == nil {
		return
	}
	if p.Status == events.PauseTimedOut && m.ended(p) {
		m.timedOut(p)
	}
	switch m.next.Kind {
	case events.Undelivered:
		m.undelivered(p)
	case events.Reached:
		if p.Reached.IsZero() || !reached(p) {
			m.fail(7, "reached", "it says that somebody was reached, but no receipt does")
		}
	case events.Overdue:
		at := moment(p.Overdue, m.r.At)
		if p.AfterDeadline != events.DeadlineHold {
			m.fail(7, "overdue", "it waits past its deadline although the policy does not hold it")
		} else if !passed(p.Deadline, at) && !passed(p.Cap, at) {
			m.fail(7, "overdue", "it is overdue before its deadline")
		}
	default:
	}
}

// ended reports that this transition ended the pause, or may have.
func (m *move) ended(p *events.PauseRecord) bool {
	return m.prev == nil || m.prev.Pause == nil || m.prev.Pause.Question != p.Question || waits(m.prev.Pause)
}

func reached(p *events.PauseRecord) bool {
	return slices.ContainsFunc(p.Deliveries, func(d events.DeliveryRecord) bool { return d.State.Reached() })
}

func passed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// moment is a time by the broker's clock, as deadlines are, or else the server's.
func moment(broker, server time.Time) time.Time {
	if broker.IsZero() {
		return server
	}
	return broker
}

func (m *move) undelivered(p *events.PauseRecord) {
	left := slices.ContainsFunc(p.Deliveries, func(d events.DeliveryRecord) bool { return d.State != events.NotDelivered })
	exhausted := p.Route.Next >= p.Route.Steps && !left
	switch {
	case reached(p):
		m.fail(7, "undelivered", "undelivered although a target is reached")
	case !exhausted && !passed(p.Cap, moment(p.Ended, m.r.At)):
		m.fail(7, "undelivered", "undelivered although neither the route nor the cap is exhausted")
	}
}

func (m *move) timedOut(p *events.PauseRecord) {
	at := moment(p.Ended, m.r.At)
	switch {
	case p.Reached.IsZero():
		m.fail(7, "timed_out", "timed out although nobody was ever reached: that is undelivered")
	case !reached(p):
		m.fail(7, "timed_out", "timed out although no target is reached now")
	case !passed(p.Deadline, at) && !passed(p.Cap, at):
		m.fail(7, "timed_out", "timed out before its deadline")
	}
}
