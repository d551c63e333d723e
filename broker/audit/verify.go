package audit

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Guarantees are the safety guarantees of the log by number, as violations name them.
func Guarantees() map[int]string {
	return map[int]string{
		1: "every release has exactly one basis",
		2: "at most one answer, release and claim; fences grow",
		3: "an ended version never reopens; versions never go back",
		4: "a refused answer changes nothing; silence never releases",
		5: "answer and approval never stand in for each other; only responders respond",
		6: "released, decided, shown and executed digest are one",
		7: "undelivered and timed out are told apart truthfully",
		8: "every transition and refusal is recorded once, in order, chained, without secrets",
		9: "an answer that was accepted is never lost",
	}
}

// Violation is one place where a guarantee did not hold. Problem is a sentence without values.
type Violation struct {
	Guarantee int            `json:"guarantee"`
	Name      string         `json:"name"` // a stable name of the check
	Seq       uint64         `json:"seq"`  // of the record
	Agent     events.Agent   `json:"agent"`
	Task      events.Task    `json:"task"`
	Version   events.Version `json:"version"`
	Problem   string         `json:"problem"`
}

func (v Violation) String() string {
	return fmt.Sprintf("record %d, %s/%s v%d: guarantee %d (%s): %s", v.Seq, v.Agent, v.Task, v.Version, v.Guarantee, v.Name, v.Problem)
}

// Warning is something that stands at the end of the records and should not stay so.
type Warning struct {
	Name    string         `json:"name"`
	Seq     uint64         `json:"seq"`
	Agent   events.Agent   `json:"agent"`
	Task    events.Task    `json:"task"`
	Version events.Version `json:"version"`
	Problem string         `json:"problem"`
}

// Report is what the records show. Err is why they could not be read to their end, if so.
type Report struct {
	Manifest
	Tasks      int
	Violations []Violation
	Warnings   []Warning
	Omitted    int // violations beyond the first maxViolations
	Err        error
}

// OK reports that every record was read and every guarantee held.
func (r Report) OK() bool { return r.Err == nil && len(r.Violations) == 0 }

const maxViolations = 1000

// Verify checks records, in the order of their chain, against the guarantees in one pass. Whether something has waited too
// long is judged by the time of the last record; [Verifier] takes another one.
func Verify(records iter.Seq2[events.Record, error]) Report {
	v := NewVerifier()
	for r, err := range records {
		if err != nil {
			v.report.Err = err
			break
		}
		v.Add(r)
	}
	return v.Report(v.last.At)
}

// Verifier is a Verify under way. It keeps the last transition of each task and a bounded number of refused ids, nothing
// else.
type Verifier struct {
	report Report
	keys   []Warning     // where the key of the HMACs changed
	last   events.Record // of the chain
	whole  bool          // the records start with the first and the log was never shortened: predecessors are known
	tasks  map[taskKey]*task
}

type taskKey struct {
	agent events.Agent
	task  events.Task
}

// task is what is remembered of a task.
type task struct {
	last     events.Record  // its last transition
	accepted events.Version // highest version with an accepted answer
	released events.Version // highest version that was released
	fence    uint64         // highest fence
	refused  refusedIDs
}

// NewVerifier returns a Verifier that has seen nothing.
func NewVerifier() *Verifier { return &Verifier{tasks: map[taskKey]*task{}} }

// Add checks the next record.
func (v *Verifier) Add(r events.Record) {
	v.chain(r)
	switch {
	case r.Transition != nil:
		v.transition(r)
	case r.Refusal != nil:
		v.refusal(r)
	case r.Loss != nil:
		v.loss(r)
	}
	if v.report.Records == 0 {
		v.report.First, v.report.Start = r.Seq, r.Prev
	}
	v.report.Records++
	v.report.Last, v.report.Head = r.Seq, r.Hash
	v.last = r
}

// Report is what has been found so far, with what has waited too long at the given time.
func (v *Verifier) Report(now time.Time) Report {
	out := v.report
	out.Tasks = len(v.tasks)
	out.Warnings = slices.Concat(v.keys, v.waiting(now))
	return out
}

func (v *Verifier) fail(r events.Record, guarantee int, name, problem string) {
	if len(v.report.Violations) == maxViolations {
		v.report.Omitted++
		return
	}
	v.report.Violations = append(v.report.Violations,
		Violation{Guarantee: guarantee, Name: name, Seq: r.Seq, Agent: r.Agent, Task: r.Task, Version: r.Version, Problem: problem})
}

// move is one transition of a task and what it came from.
type move struct {
	v    *Verifier
	task *task
	was  events.Record      // the task's transition before; zero when the log or the records know none
	prev *events.Transition // nil when not known
	r    events.Record
	next *events.Transition
}

func (m *move) fail(guarantee int, name, problem string) { m.v.fail(m.r, guarantee, name, problem) }

// first reports that the transition is the first of its candidate.
func (m *move) first() bool { return m.prev == nil || m.prev.Candidate != m.next.Candidate }

// begins reports that the transition is known to be the first of its candidate, and not only the first that is known.
func (m *move) begins() bool { return m.first() && (m.prev != nil || m.r.After == 0) }

func (v *Verifier) transition(r events.Record) {
	k := taskKey{r.Agent, r.Task}
	t := v.predecessor(k, r)
	m := &move{v: v, task: t, r: r, next: r.Transition}
	if t.last.Transition != nil && t.last.Key == r.Key {
		m.was, m.prev = t.last, t.last.Transition
	}
	m.steps()
	m.versions()
	m.release()
	m.accepts()
	m.claims()
	m.silence()
	m.authority()
	m.digests()
	m.reach()
	m.saved()
	t.remember(r)
}

// remember keeps what later records are checked against.
func (t *task) remember(r events.Record) {
	next := *r.Transition
	for _, a := range next.Accepted {
		t.accepted = max(t.accepted, a.Version)
	}
	if next.Release != nil {
		t.released = max(t.released, next.Release.Version)
	}
	if next.Claim != nil {
		t.fence = max(t.fence, next.Claim.Fence)
	}
	if final(next.Kind) && next.Pause != nil {
		pause := *next.Pause
		pause.Fields, pause.Deliveries = nil, nil
		next.Pause, next.Left = &pause, nil
	}
	r.Transition = &next
	t.last = r
}
