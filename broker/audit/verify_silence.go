package audit

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// refusedIDs are the last submissions of a task that were refused.
type refusedIDs struct{ ids []string }

const maxRefused = 256 // per task; a question has few submissions, and refusals are rate-limited

func (r *refusedIDs) add(id string) {
	if len(r.ids) == maxRefused {
		r.ids = slices.Delete(r.ids, 0, 1)
	}
	r.ids = append(r.ids, id)
}

func (r *refusedIDs) has(id string) bool { return slices.Contains(r.ids, id) }

// silence is guarantee 4 for transitions: what was refused causes nothing, and nobody answered where nobody did.
func (m *move) silence() {
	refused := m.task.refused.has(m.r.Cause)
	for _, a := range m.added() {
		refused = refused || m.task.refused.has(string(a.Submission))
	}
	if refused {
		m.fail(4, "refused", "a submission that was refused moved the task")
	}
	for _, p := range []*events.PauseRecord{m.next.Pause, m.next.Left} {
		if p == nil || p.Status == events.PauseAnswered {
			continue
		}
		if slices.ContainsFunc(m.next.Accepted, func(a events.Approved) bool { return a.Version == p.Version }) {
			m.fail(4, "responder", "an answer is recorded to a pause that ended as "+string(p.Status))
		}
	}
	switch m.next.Kind {
	case events.TimedOut, events.Undelivered, events.Superseded, events.InDoubt, events.Overdue:
		if m.next.By != "" {
			m.fail(4, "responder", string(m.next.Kind)+" names somebody, although nobody did it")
		}
	default:
	}
	m.released()
	if p := m.next.Pause; p != nil && p.Status == events.PauseTimedOut && m.ended(p) && m.next.Kind != events.TimedOut &&
		p.AfterDeadline != events.DeadlineDefault && p.AfterDeadline != events.DeadlineEscalate {
		m.fail(4, "silence", "nobody answered, and the policy does not say to go on then")
	}
}

// released checks that nothing but what guarantee 1 allows turned silence into a release.
func (m *move) released() {
	if m.next.Kind != events.Released || m.next.Pause == nil {
		return
	}
	switch p, rel := m.next.Pause, m.next.Release; {
	case p.Status == events.PauseCancelled || p.Status == events.PauseUndelivered:
		m.fail(4, "silence", "released after a pause that ended as "+string(p.Status))
	case p.Status == events.PauseTimedOut && (rel == nil || rel.From != events.FromAfterDeadline):
		m.fail(4, "silence", "released after nobody answered")
	case p.Status == events.PauseTimedOut && m.next.By != "":
		m.fail(4, "responder", "a release after the deadline names somebody")
	}
}

// refusal is guarantee 4 for refusals: each was judged on the task as it was, says what was true of it, and leaves it so.
// One that points at an answer that is not there is guarantee 9.
func (v *Verifier) refusal(r events.Record) {
	t, f := v.tasks[taskKey{r.Agent, r.Task}], r.Refusal
	switch {
	case r.After == 0 && t != nil && !final(t.last.Transition.Kind):
		v.fail(r, 9, "forgotten", "the log knew nothing of a task that had not ended")
		return
	case r.After == 0:
		return
	case t == nil && v.whole:
		v.fail(r, 8, "missing", "the transition it was judged on is not recorded")
		return
	case t == nil:
		return
	case r.After != t.last.Log:
		v.fail(r, 4, "stale", "it was judged on another state than the task's last")
		return
	}
	if f.Current != 0 && f.Current != t.last.Version {
		v.fail(r, 4, "untrue", "it names another current version than the task's")
	}
	v.truth(r, t)
	if f.Of != "answer" && f.Of != "approval" {
		return
	}
	if t.refused.has(f.ID) {
		v.fail(r, 8, "repeated", "one submission has two records")
	}
	t.refused.add(f.ID)
}

// truth checks a refusal's reason against the state it was judged on.
func (v *Verifier) truth(r events.Record, t *task) {
	last, submission := t.last.Transition, r.Refusal.Of == "answer" || r.Refusal.Of == "approval"
	waiting := waits(last.Pause) && last.Pause.Version == r.Version
	busy := last.Kind == events.Claimed || last.Kind == events.InDoubt
	untrue := ""
	switch r.Refusal.Reason {
	case events.StaleVersion:
		if submission && waiting {
			untrue = "the version it called stale was waiting"
		} else if r.Refusal.Of == "candidate" && r.Version > t.last.Version {
			untrue = "the version it called stale was newer than the task's"
		}
	case events.NotPending:
		if submission && waiting {
			untrue = "the pause it called ended was waiting"
		}
	case events.Busy:
		if !busy {
			untrue = "the task it called busy was not claimed"
		}
	case events.NotAllowed:
		if waiting && t.last.Key == r.Key && turnedAway(last.Pause, r.Refusal) {
			untrue = "the responder it turned away may answer"
		}
	case events.Duplicate:
		v.duplicate(r, t)
	default:
	}
	if untrue != "" {
		v.fail(r, 4, "untrue", untrue)
	}
}

// turnedAway reports that a responder may certainly answer, on a channel the question was put to, and was known well enough.
func turnedAway(p *events.PauseRecord, f *events.RefusalRecord) bool {
	r := f.Responder
	return r != nil && f.Field != "assurance" && mayAnswer(p.Responders, *r) && !mayBeBarred(p.Responders, *r) &&
		slices.ContainsFunc(p.Deliveries, func(d events.DeliveryRecord) bool { return d.Channel == r.Channel })
}

// duplicate checks that the answer somebody was told of is there.
func (v *Verifier) duplicate(r events.Record, t *task) {
	last, by := t.last.Transition, r.Refusal.AnsweredBy
	at := slices.IndexFunc(last.Accepted, func(a events.Approved) bool { return a.Version == r.Version })
	switch {
	case at < 0:
		v.fail(r, 9, "lost", "somebody was told of an answer that is not there")
	case t.last.Key == r.Key && by != nil && *by != last.Accepted[at].Responder:
		v.fail(r, 9, "lost", "somebody was told of another answer than the accepted one")
	}
}
