package gate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
)

const agent = events.Agent("crm-bot")

// scripted is a broker that does what a test tells it to, over a real log: it keeps the state of each task, appends every
// transition, and answers requests for states, claims and effects by the letter of the contract.
type scripted struct {
	t     *testing.T
	b     *bus.Bus
	lease time.Duration

	mu     sync.Mutex
	tasks  map[events.Task]*entry
	decide func(events.Candidate) events.Kind // what becomes of a new candidate; "" drops the message unseen
	lose   map[string]int                     // how many replies to claim, effect or state are still to be lost, after they took effect
	deaf   bool                               // effects are neither taken nor answered
	tamper func(*events.Grant)
	asked  func() // told of every claim before it is judged
	heard  heard
}

type entry struct {
	state    events.State
	seq      uint64
	refusals map[string]events.Refusal
}

// heard is what agents said.
type heard struct {
	candidates int
	cancels    int
	claims     []events.ClaimRequest
	effects    []events.EffectReport
}

// errLost answers as a broker that cannot be reached would.
var errLost = fmt.Errorf("lost on purpose: %w", bus.ErrNobody)

// script runs a scripted broker for the test's time. decide says what becomes of a new candidate.
func script(t *testing.T, b *bus.Bus, decide func(events.Candidate) events.Kind) *scripted {
	t.Helper()
	s := &scripted{t: t, b: b, lease: time.Minute, tasks: map[events.Task]*entry{}, decide: decide, lose: map[string]int{}}
	if err := b.EnsurePool(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	run := func(f func() error) {
		running.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	inputs := bus.Consumer{Stream: bus.Candidates, Name: "decide", Filters: []string{b.Space().Candidate("*", "*"), b.Space().Cancel("*", "*")}}
	run(func() error { return b.Consume(ctx, inputs, s.input) })
	run(func() error { return b.Serve(ctx, b.Space().AgentState("*", "*"), "brokers", 4, s.state) })
	run(func() error { return b.Serve(ctx, b.Space().Claim("*", "*"), "brokers", 4, s.claim) })
	run(func() error { return b.Serve(ctx, b.Space().Effect("*", "*"), "brokers", 4, s.effect) })
	t.Cleanup(func() { stop(); running.Wait() })
	return s
}

func always(k events.Kind) func(events.Candidate) events.Kind {
	return func(events.Candidate) events.Kind { return k }
}

func (s *scripted) said() heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heard
	h.claims, h.effects = slices.Clone(h.claims), slices.Clone(h.effects)
	return h
}

func (s *scripted) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *scripted) of(t events.Task) *entry {
	if s.tasks[t] == nil {
		s.tasks[t] = &entry{refusals: map[string]events.Refusal{}}
	}
	return s.tasks[t]
}

// input takes a candidate or a cancel.
func (s *scripted) input(ctx context.Context, m bus.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch in := m.Envelope.Data.(type) {
	case events.Candidate:
		s.heard.candidates++
		return s.propose(ctx, in)
	case events.CancelRequest:
		s.heard.cancels++
		if e := s.of(in.Task); e.seq > 0 && waits(e.state.Kind) {
			return s.append(ctx, in.Task, events.Cancelled, func(st *events.State) { st.By, st.Note = string(in.Agent), in.Reason })
		}
	}
	return nil
}

func waits(k events.Kind) bool { return k == events.Asked || k == events.Released }

func (s *scripted) propose(ctx context.Context, c events.Candidate) error {
	e := s.of(c.Task)
	refuse := func(r events.Reason) error {
		if _, first := e.refusals[c.ID]; !first {
			e.refusals[c.ID] = events.Refusal{Agent: c.Agent, Task: c.Task, Version: c.Version, Current: e.state.Version, Of: "candidate", ID: c.ID, Reason: r, At: time.Now()}
		}
		return s.b.Wake(s.b.Space().Wake(c.Agent, c.Task, "refused"))
	}
	switch {
	case e.seq > 0 && e.state.Candidate.ID == c.ID && e.state.Content == c.Content():
		return nil
	case e.seq > 0 && e.state.Candidate.ID == c.ID:
		return refuse(events.Changed)
	case c.Version <= e.state.Version:
		return refuse(events.StaleVersion)
	case e.state.Kind == events.Claimed || e.state.Kind == events.InDoubt:
		return refuse(events.Busy)
	}
	kind := s.decide(c)
	if kind == "" {
		return nil
	}
	return s.append(ctx, c.Task, kind, func(st *events.State) {
		*st = events.State{
			Agent: c.Agent, Task: c.Task, Version: c.Version, Candidate: c, Content: c.Content(),
			Decision: events.Decided{Decision: events.Proceed{Why: events.Basis{Rule: "scripted", Reason: "Because.", Action: c.Action()}}},
		}
	})
}

// move makes a task's next transition.
func (s *scripted) move(task events.Task, k events.Kind, change func(*events.State)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.append(context.Background(), task, k, change); err != nil {
		s.t.Error(err)
	}
}

func (s *scripted) append(ctx context.Context, task events.Task, k events.Kind, change func(*events.State)) error {
	e := s.of(task)
	next := e.state
	if change != nil {
		change(&next)
	}
	next.Kind, next.At, next.Cause = k, time.Now().UTC(), events.NewID()
	s.pause(&next)
	if k == events.Released && next.Release == nil {
		next.Release = &events.Release{Version: next.Version, Action: next.Candidate.Action(), From: events.FromProceed, At: next.At}
	}
	space := s.b.Space()
	seq, err := s.b.Append(ctx, bus.Entry{
		Subject: space.Task(next.Agent, task, k), Envelope: events.Envelope{Data: next},
		Guard: space.TaskAll(next.Agent, task), Last: e.seq,
	})
	if err == nil {
		e.state, e.seq = next, seq
	}
	return err
}

func (s *scripted) pause(st *events.State) {
	kind := map[events.Kind]events.PauseKind{events.Asked: events.Clarification, events.ApprovalAsked: events.Approval, events.Escalated: events.Escalation}[st.Kind]
	if kind == "" {
		return
	}
	if st.Pause != nil {
		st.Version++
	}
	st.Pause = &events.Pause{Question: events.NewQuestionID(), Kind: kind, Version: st.Version, Status: events.PauseWaiting, Responders: []string{"ana"}}
}

func (s *scripted) lost(what string) bool {
	if s.lose[what] == 0 {
		return false
	}
	s.lose[what]--
	return true
}

func (s *scripted) state(_ context.Context, r bus.Request) (any, error) {
	var q events.StateRequest
	if err := events.Decode(r.Body, 1<<20, &q); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost("state") {
		return nil, errLost
	}
	e := s.of(r.Subject.Task)
	var reply events.StateReply
	if refused, ok := e.refusals[q.Candidate]; ok && e.state.Candidate.ID != q.Candidate {
		reply.Refused = &refused
	}
	if e.seq > 0 {
		reply.View = view(*e)
	}
	return reply, nil
}

func view(e entry) *events.View {
	st := e.state
	v := &events.View{
		Agent: st.Agent, Task: st.Task, Version: st.Version, Seq: e.seq, Kind: st.Kind, Candidate: st.Candidate.ID,
		Content: st.Content, Step: st.Candidate.Step, Action: st.Candidate.Action(), At: st.At, Why: st.Decision.Basis(),
	}
	v.By, v.Note, v.Effect, v.Release = st.By, st.Note, st.Effect, st.Release
	if p := st.Pause; p != nil {
		v.Pause = &events.PauseView{Question: p.Question, Kind: p.Kind, Version: p.Version, Status: p.Status, Deadline: p.Deadline}
	}
	return v
}

func (s *scripted) claim(ctx context.Context, r bus.Request) (any, error) {
	var q events.ClaimRequest
	if err := events.Decode(r.Body, 1<<20, &q); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard.claims = append(s.heard.claims, q)
	if s.asked != nil {
		s.asked()
	}
	e := s.of(q.Task)
	again := e.state.Kind == events.InDoubt && e.state.Decision.Basis().Traits.Idempotent
	switch {
	case e.state.Claim != nil && e.state.Claim.Nonce == q.Nonce && e.state.Kind == events.Claimed:
	case e.state.Kind == events.Released || again:
		err := s.append(ctx, q.Task, events.Claimed, func(st *events.State) {
			st.Claim = &events.Claim{Nonce: q.Nonce, Worker: q.Worker, Fence: e.seq, Until: time.Now().Add(s.lease), Count: 1}
		})
		if err != nil {
			return nil, err
		}
	default:
		reason := events.NotReleased
		if e.state.Kind == events.Claimed || e.state.Kind == events.InDoubt {
			reason = events.Taken
		}
		return events.ClaimReply{Refused: &events.Refusal{Agent: q.Agent, Task: q.Task, Version: q.Version, Of: "claim", ID: q.Nonce, Reason: reason}}, nil
	}
	if s.lost("claim") {
		return nil, errLost
	}
	c := e.state.Candidate
	g := events.Grant{
		Version: e.state.Release.Version, Step: c.Step, Tool: c.Tool, Arguments: c.Arguments, Action: e.state.Release.Action,
		Fence: e.state.Claim.Fence, Until: e.state.Claim.Until,
	}
	if s.tamper != nil {
		s.tamper(&g)
	}
	return events.ClaimReply{Granted: &g}, nil
}

func (s *scripted) effect(ctx context.Context, r bus.Request) (any, error) {
	var q events.EffectReport
	if err := events.Decode(r.Body, 1<<20, &q); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard.effects = append(s.heard.effects, q)
	if s.deaf {
		return nil, errLost
	}
	e := s.of(q.Task)
	claim := e.state.Claim
	if claim == nil || claim.Nonce != q.Nonce || claim.Fence != q.Fence || q.Status == events.EffectRunning && e.state.Kind != events.Claimed {
		return events.EffectReply{Refused: &events.Refusal{Agent: q.Agent, Task: q.Task, Of: "effect", Reason: events.Taken}}, nil
	}
	if e.state.Effect == nil {
		if err := s.record(ctx, q); err != nil {
			return nil, err
		}
	}
	if s.lost("effect") {
		return nil, errLost
	}
	return events.EffectReply{Kind: e.state.Kind, Until: e.state.Claim.Until}, nil
}

func (s *scripted) record(ctx context.Context, q events.EffectReport) error {
	kind := map[events.EffectStatus]events.Kind{events.EffectRunning: events.Claimed, events.EffectDone: events.Done, events.EffectFailed: events.Failed}[q.Status]
	return s.append(ctx, q.Task, kind, func(st *events.State) {
		if q.Status == events.EffectRunning {
			c := *st.Claim
			c.Until = time.Now().Add(s.lease)
			st.Claim = &c
			return
		}
		st.Effect = &events.Effect{Status: q.Status, Action: q.Action, Fence: q.Fence, Result: q.Result, Error: q.Error, At: time.Now().UTC()}
	})
}

// gated returns a gate on the bus that is closed with the test.
func gated(t *testing.T, b *bus.Bus) *gate.Gate {
	t.Helper()
	g, err := gate.New(b, agent, gate.WithWorker("w1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}
