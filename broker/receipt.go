package broker

import (
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Report is stage three: an adapter's receipt. The first accepted one starts the deadline's clock; an undelivered one asks
// the next step of the route at once; when nobody is reached and nothing is left to try, the question is undelivered. A
// receipt for a question that ended, or for what another channel delivers, changes nothing.
func (r Rules) Report(s Snapshot, rep events.DeliveryReport, from events.Channel, m Moment) Change {
	if !waiting(s.State) || s.State.Pause.Version != rep.Version || s.State.Pause.Question != rep.Question {
		return Change{}
	}
	at := slices.IndexFunc(s.State.Pause.Deliveries, func(d events.Delivery) bool { return d.ID == rep.Delivery })
	if at < 0 || s.State.Pause.Deliveries[at].Target.Channel != from || !newer(rep.Receipt, s.State.Pause.Deliveries[at].Receipt) {
		return Change{}
	}
	next := step(s.State, m)
	rep.Receipt.At = m.Now
	next.Pause.Deliveries[at].Receipt = rep.Receipt
	switch {
	case rep.Receipt.State.Reached():
		next.Kind = events.Reached
		startClock(next.Pause, m)
		return become(next)
	case reached(next.Pause.Deliveries):
		next.Kind = events.Rerouted
		return become(next)
	}
	next.Pause.Reached, next.Pause.Deadline = time.Time{}, time.Time{} // a bounce that leaves nobody reached stops the clock
	next.Kind = events.Rerouted
	if inReach(next.Pause.Deliveries) {
		return become(next)
	}
	return become(r.walk(next, m))
}

func startClock(p *events.Pause, m Moment) {
	if !p.Reached.IsZero() {
		return
	}
	p.Reached = m.Now
	if p.Plan.Deadline > 0 {
		p.Deadline = m.Now.Add(time.Duration(p.Plan.Deadline))
	}
}

// newer reports that a receipt says more than the last one: receipts only get better, except that a bounce undoes an
// acceptance. Adapters deliver at least once and out of order.
func newer(now, last events.Receipt) bool {
	if now.Seq < last.Seq || last.State == events.NotDelivered {
		return false
	}
	return now.State == events.NotDelivered || rank(now.State) > rank(last.State) ||
		now.State == last.State && (now.Code != last.Code || now.ProviderID != last.ProviderID) // a reminder is a copy of its own
}

func rank(r events.Reach) int {
	return slices.Index([]events.Reach{"", events.Held, events.Attempted, events.ReachAccepted, events.Delivered, events.Seen}, r)
}
