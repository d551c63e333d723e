package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// grace is how long a broker may take for what has become due: timers are jittered and fire up to seconds late.
const grace = time.Minute

// waiting is what liveness promises once faults stop, judged at the given time: every pause past its cap ends unless it is
// held, every answer leads on, every question gets a delivery attempt, every release is claimed and every doubt is settled.
func (v *Verifier) waiting(now time.Time) []Warning {
	var all []Warning
	for _, t := range v.tasks {
		if name, problem := overdue(t.last, now); name != "" {
			r := t.last
			all = append(all, Warning{Name: name, Seq: r.Seq, Agent: r.Agent, Task: r.Task, Version: r.Version, Problem: problem})
		}
	}
	slices.SortFunc(all, func(a, b Warning) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

func overdue(r events.Record, now time.Time) (name, problem string) {
	if r.Transition == nil {
		return "", ""
	}
	t, late := r.Transition, now.Add(-grace)
	switch {
	case t.Kind == events.Answered:
		return "answered", "answered, but not decided again yet"
	case t.Kind == events.Released:
		return "unclaimed", "released, but no executor has claimed it"
	case t.Kind == events.InDoubt:
		return "in_doubt", "claimed, and nobody has said what became of it"
	case t.Kind == events.Claimed && passed(t.Claim.Until, late):
		return "lease", "claimed, and its lease is over"
	case !waits(t.Pause):
		return "", ""
	case t.Kind == events.Overdue:
		return "overdue", "past its deadline, and held by the policy"
	case passed(t.Pause.Cap, late):
		return "cap", "still waits past its cap"
	case passed(t.Pause.Deadline, late):
		return "deadline", "still waits past its deadline"
	case t.Why.Lookup == "" && passed(t.Pause.Opened, late) && !attempted(t.Pause):
		return "undelivered", "nobody has tried to deliver the question"
	}
	return "", ""
}

func attempted(p *events.PauseRecord) bool {
	return slices.ContainsFunc(p.Deliveries, func(d events.DeliveryRecord) bool { return d.State != "" })
}
