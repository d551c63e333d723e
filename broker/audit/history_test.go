package audit

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

var testKey = []byte("a key of tests, 32 bytes of text")

// world makes legal histories: what a broker that keeps every guarantee may write, in an order it may write it.
type world struct {
	*rand.Rand
	seq   uint64
	now   time.Time
	log   []bus.Message
	tasks []*life
	store func(bus.Message) uint64 // a real log to write to, which gives the sequences and forgets no task
}

// life is a task of a world.
type life struct {
	agent events.Agent
	task  events.Task
	state events.State
	last  uint64 // sequence of its last transition; 0 when the log knows none
	count int    // of anything that needs an id
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 12, 1, 14, 0, 0, 0, time.UTC)}
	for i := range 6 {
		w.tasks = append(w.tasks, &life{agent: events.Agent(fmt.Sprintf("bot-%d", i%2)), task: events.Task(fmt.Sprintf("t-%d", i))})
	}
	return w
}

// history is a legal log of n steps.
func history(seed uint64, n int) []bus.Message {
	w := newWorld(seed)
	w.run(n)
	return w.log
}

func (w *world) run(n int) {
	for range n {
		w.step(w.tasks[w.IntN(len(w.tasks))])
	}
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

func (w *world) tick() {
	w.seq += uint64(2 + w.IntN(3)) // timers stand between
	w.now = w.now.Add(time.Duration(1+w.IntN(5000)) * time.Millisecond)
}

func (l *life) id(prefix string) string {
	l.count++
	return fmt.Sprintf("%s-%s-%d", prefix, l.task, l.count)
}

// put writes a transition.
func (w *world) put(l *life, s events.State) {
	w.tick()
	s.Agent, s.Task = l.agent, l.task
	w.write(bus.Message{
		Subject:  events.Subject{Family: "task", Agent: l.agent, Task: l.task, Kind: s.Kind},
		Envelope: events.Envelope{Data: s}, Seq: w.seq, Stored: w.now, After: l.last,
	})
	l.state, l.last = s, w.seq
}

func (w *world) write(m bus.Message) {
	if w.store != nil {
		m.Seq = w.store(m)
		w.seq = m.Seq
	}
	w.log = append(w.log, m)
}

func (w *world) refuse(l *life, r events.Refusal) {
	w.tick()
	r.Agent, r.Task, r.At = l.agent, l.task, w.now
	if r.ID == "" {
		r.ID = l.id("refused")
	}
	r.Current = l.state.Version
	w.write(bus.Message{
		Subject:  events.Subject{Family: "refused", Agent: l.agent, Task: l.task, ID: events.TokenFor(r.ID)},
		Envelope: events.Envelope{Data: r}, Seq: w.seq, Stored: w.now, After: l.last,
	})
}

// next starts a transition the way a broker does: a copy whose pause can be changed.
func (w *world) next(l *life, cause string) events.State {
	s := l.state
	s.At, s.Cause, s.Left = w.now, l.id(cause), nil
	if s.Pause != nil {
		p := *s.Pause
		p.Deliveries = slices.Clone(p.Deliveries)
		s.Pause = &p
	}
	return s
}

func (w *world) step(l *life) {
	s := l.state
	if w.chance(20) {
		w.refusal(l)
		return
	}
	switch {
	case l.last == 0 || w.chance(8) && s.Kind != events.Claimed && s.Kind != events.InDoubt:
		w.propose(l)
	case waiting(s):
		w.wait(l)
	case s.Kind == events.Answered:
		n := w.next(l, "thaw")
		w.settle(l, n, map[events.PauseKind]events.ReleaseBasis{events.Approval: events.FromApproval}[n.Pause.Kind])
	case s.Kind == events.Released:
		w.claim(l)
	case s.Kind == events.Claimed || s.Kind == events.InDoubt:
		w.effect(l)
	case w.store == nil && w.chance(30):
		*l = life{agent: l.agent, task: l.task, count: l.count} // forgotten: retention is over
	default:
		w.propose(l)
	}
}

func waiting(s events.State) bool { return s.Pause != nil && s.Pause.Status == events.PauseWaiting }

// propose is a newer candidate, with what it replaces.
func (w *world) propose(l *life) {
	was := l.state
	if waiting(was) && w.chance(10) { // frozen: what is replaced is superseded all the same
		n := w.next(l, "candidate")
		n.Kind, n.Pause.Status, n.Pause.Ended = events.Superseded, events.PauseSuperseded, w.now
		w.put(l, n)
		return
	}
	s := events.State{Version: was.Version + 1 + events.Version(w.IntN(3)), At: w.now, Cause: l.id("candidate")}
	s.Candidate = events.Candidate{
		Agent: l.agent, Task: l.task, ID: l.id("c"), Version: s.Version, Step: fmt.Sprintf("step-%d", w.IntN(3)),
		Tool: events.Tool{Name: "crm.update_record"}, Arguments: events.Arguments{"amount": events.SecretOf(w.IntN(100))},
		Setting: events.Setting{Requester: &events.Requester{ID: "ana", Name: "Ana Pérez"}},
	}
	if l.last == 0 {
		w.settle(l, s, events.FromProceed)
		return
	}
	if waiting(was) {
		left := *was.Pause
		left.Status, left.Ended = events.PauseSuperseded, w.now
		s.Left = &left
	}
	if waiting(was) || was.Kind == events.Released || was.Kind == events.Answered {
		s.Superseded = was.Version
	}
	w.settle(l, s, events.FromProceed)
}

func (w *world) basis(s events.State) events.Basis {
	return events.Basis{
		Rule: "rule " + fmt.Sprint(w.IntN(4)), Reason: "because", Policy: events.PolicyRef{Name: "crm", Digest: "sha256:00"},
		Action: s.Candidate.Action(), Traits: events.Traits{Reversible: true, Idempotent: w.chance(50)},
	}
}

// assume is a basis with a default for an argument, which is not among the candidate's own.
func (w *world) assume(s events.State, source string) events.Basis {
	why, c := w.basis(s), s.Candidate
	value := events.SecretOf("the default, € 10")
	c.Arguments = maps.Clone(c.Arguments)
	c.Arguments["currency"] = value
	why.Action = c.Action()
	why.Assumptions = []events.Assumption{{Field: "currency", Value: value, Source: source, Documented: "handbook, page 7"}}
	return why
}

// settle decides: it opens a pause, releases or ends. A basis of "" is an answer.
func (w *world) settle(l *life, s events.State, from events.ReleaseBasis) {
	why := w.basis(s)
	if w.chance(20) {
		why = w.assume(s, "default")
	}
	if from == "" {
		from = events.FromAnswer
	}
	choice := w.IntN(9)
	if from == events.FromApproval && choice < 5 {
		choice = 8
	}
	switch choice {
	case 0, 1:
		w.open(l, s, events.Ask{Why: why, Plan: w.plan()}, events.Clarification, events.Asked)
	case 2:
		w.open(l, s, events.Ask{Why: why, Lookup: "crm.search"}, events.Clarification, events.Asked)
	case 3, 4:
		w.open(l, s, events.Approve{Why: why, From: []string{"role:approver"}, Plan: w.plan()}, events.Approval, events.ApprovalAsked)
	case 5:
		w.open(l, s, events.Escalate{Why: why, To: "luis", Plan: w.plan()}, events.Escalation, events.Escalated)
	case 6:
		s.Decision, s.Kind = events.Decided{Decision: events.Stop{Why: why}}, events.Stopped
		w.put(l, s)
	case 7:
		s.Decision, s.Kind = events.Decided{Decision: events.Reconcile{Why: why}}, events.Conflicted
		w.put(l, s)
	default:
		if from == events.FromApproval { // only the digest that was approved
			why = s.Decision.Basis()
		}
		w.release(l, s, from, why)
	}
}

func (w *world) release(l *life, s events.State, from events.ReleaseBasis, why events.Basis) {
	s.Decision = events.Decided{Decision: events.Proceed{Why: why}}
	s.Release = &events.Release{Version: s.Version, Action: why.Action, From: from, At: w.now}
	if s.Pause != nil {
		s.Release.Basis = s.Pause.Version
	}
	s.Kind = events.Released
	w.put(l, s)
}

func (w *world) plan() events.Plan {
	return events.Plan{
		Route:    []events.RouteStep{{Targets: []events.RouteTarget{{Channel: "slack", Who: "luis"}}}, {Targets: []events.RouteTarget{{Channel: "email", Who: "eva"}}}},
		Deadline: events.Duration(time.Minute), Cap: events.Duration(time.Hour),
		AfterDeadline: []events.AfterDeadline{events.DeadlineStop, events.DeadlineHold, events.DeadlineDefault, events.DeadlineEscalate}[w.IntN(4)],
	}
}

func (w *world) open(l *life, s events.State, d events.Decision, kind events.PauseKind, k events.Kind) {
	if s.Pause != nil {
		left := *s.Pause
		s.Left, s.Version = &left, s.Version+1
	}
	p := &events.Pause{
		Question: events.QuestionID(l.id("q")), Kind: kind, Version: s.Version, Step: s.Candidate.Step,
		Status: events.PauseWaiting, Responders: []string{"eva", "luis", "not:ana"}, Action: d.Basis().Action,
	}
	p.Opened = w.now
	s.Decision, s.Pause, s.Kind = events.Decided{Decision: d}, p, k
	ask, _ := d.(events.Ask)
	switch v := d.(type) {
	case events.Ask:
		p.Plan, p.Fields = v.Plan, []events.Field{{Name: "amount", Prompt: "How much, in € & cents?", FreeText: &events.FreeText{MaxRunes: 9}}}
	case events.Approve:
		p.Plan = v.Plan
	case events.Escalate:
		p.Plan = v.Plan
	}
	if ask.Lookup != "" {
		w.put(l, s)
		return
	}
	p.Cap = w.now.Add(time.Duration(p.Plan.Cap))
	if w.chance(8) { // nobody to ask
		p.Responders, p.Next, s.Kind = []string{}, len(p.Plan.Route), events.Undelivered
		p.Status, p.Ended = events.PauseUndelivered, w.now
		w.put(l, s)
		return
	}
	p.Deliveries = []events.Delivery{{ID: string(p.Question) + "-0", Target: p.Plan.Route[0].Targets[0]}}
	p.Next = 1
	w.put(l, s)
}

// recorded chains what a log makes.
func recorded(t testing.TB, log []bus.Message) []events.Record {
	t.Helper()
	return sealed(t, redacted(log))
}

func redacted(log []bus.Message) []events.Record {
	var all []events.Record
	for _, m := range log {
		r := Redact(testKey, m)
		r.High = r.Log
		all = append(all, r)
	}
	return all
}

// sealed chains records anew, as whoever wants to hide a change would.
func sealed(t testing.TB, all []events.Record) []events.Record {
	t.Helper()
	var last events.Record
	for i := range all {
		all[i].Seq, all[i].Prev = last.Seq+1, last.Hash
		hash, err := hashOf(all[i])
		if err != nil {
			t.Fatal(err)
		}
		all[i].Hash = hash
		last = all[i]
	}
	return all
}

func each(all []events.Record) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}
