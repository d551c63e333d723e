package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// maxRequest is the size of a core request, in bytes: an outcome carries a tool's result of up to 64 KiB.
const maxRequest = 96 << 10

// requests answers what agents, executors, adapters and operators ask directly. Whatever changes a task is answered after
// it is durable.
type requests struct {
	core
	index  *Index
	audit  *audit.Writer
	health func() events.Health
}

func (r requests) run(ctx context.Context) error {
	s := r.bus.Space()
	var stages []stage
	for _, q := range []struct {
		name, subject string
		handle        func(context.Context, bus.Request) (any, error)
	}{
		{"state agent", s.AgentState("*", "*"), r.agentState},
		{"state adapter", s.AdapterState("*", "*", "*"), r.adapterState},
		{"report", s.Reports(), r.report},
		{"claim", s.Claim("*", "*"), r.claim},
		{"effect", s.Effect("*", "*"), r.effect},
		{"operator", s.Operator("*"), r.operator},
		{"operator task", s.OperatorTask("*", "*", "*"), r.operatorTask},
	} {
		stages = append(stages, stage{q.name, func(ctx context.Context) error {
			return r.bus.Serve(ctx, q.subject, "brokers", workers, inTime(q.handle))
		}})
	}
	return runAll(ctx, r.log, stages)
}

// patience is how long whoever asked is taken to wait: what is not done by then is not done for them, least of all a claim.
const patience = 5 * time.Second

func inTime(handle func(context.Context, bus.Request) (any, error)) func(context.Context, bus.Request) (any, error) {
	return func(ctx context.Context, q bus.Request) (any, error) {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		return handle(ctx, q)
	}
}

func (r requests) agentState(ctx context.Context, q bus.Request) (any, error) {
	var req events.StateRequest
	if err := events.Decode(q.Body, maxRequest, &req); err != nil {
		return nil, err
	}
	k := Key{q.Subject.Agent, q.Subject.Task}
	s, err := r.ledger.ReadAtLeast(ctx, k, req.AtLeast)
	if err != nil {
		return nil, err
	}
	reply := events.StateReply{}
	if s.Known() {
		reply.View = view(s)
	}
	switch past := before(s.State, req.Candidate); {
	case req.Candidate == "" || s.State.Candidate.ID == req.Candidate:
	case past.ID != "":
		reply.View, err = r.past(ctx, past)
	default:
		reply.Refused, err = r.ledger.Refused(ctx, k, req.Candidate)
	}
	return reply, err
}

// past is what became of an earlier candidate: how it ended, or that a newer one replaced it.
func (r requests) past(ctx context.Context, p events.Past) (*events.View, error) {
	m, err := r.bus.At(ctx, bus.Tasks, p.Seq)
	if err != nil {
		return nil, err
	}
	s, ok := m.Envelope.Data.(events.State)
	if !ok {
		return nil, fmt.Errorf("message %d of the log is not a state", p.Seq)
	}
	v := view(Snapshot{State: s, Seq: m.Seq})
	if !Final(s.Kind) {
		v.Kind = events.Superseded
	}
	return v, nil
}

// view is a task as its agent may see it.
func view(s Snapshot) *events.View {
	st := s.State
	v := events.View{
		Agent: st.Agent, Task: st.Task, Version: st.Version, Seq: s.Seq, Kind: st.Kind, Candidate: st.Candidate.ID, Content: st.Content,
		Step: st.Candidate.Step, Action: st.Decision.Basis().Action, At: st.At, Why: st.Decision.Basis(),
	}
	v.Pause, v.By, v.Note, v.Effect, v.Release = pauseView(st), st.By, st.Note, st.Effect, st.Release
	if d, ok := st.Decision.Decision.(events.Ask); ok && waiting(st) {
		v.Lookup = d.Lookup
	}
	return &v
}

func (r requests) adapterState(ctx context.Context, q bus.Request) (any, error) {
	var req events.StateRequest
	if err := events.Decode(q.Body, maxRequest, &req); err != nil {
		return nil, err
	}
	k := Key{q.Subject.Agent, q.Subject.Task}
	s, err := r.ledger.Read(ctx, k)
	if err != nil || !s.Known() {
		return events.QuestionReply{}, err
	}
	reply := events.QuestionReply{Kind: s.State.Kind, Current: s.State.Version}
	if p := s.State.Pause; p != nil && asked(p, q.Subject.Channel) {
		reply.Pause, reply.Question = pauseView(s.State), onChannel(s.State, q.Subject.Channel)
	}
	if req.Submission == "" {
		return reply, nil
	}
	refusal, err := r.ledger.Refused(ctx, k, string(req.Submission))
	if err == nil && (refusal != nil || movedBy(s, q.Subject.Channel, req.Submission)) {
		var asked events.QuestionID
		if p := s.State.Pause; p != nil && p.Version == req.Version {
			asked = p.Question
		}
		v := verdict(Result{Snapshot: s, Refusal: refusal}, req.Version, asked, req.Submission)
		reply.Verdict = &v
	}
	return reply, err
}

// onChannel is the current question as one channel shows it, asked or closed.
func onChannel(s events.State, c events.Channel) *events.Question {
	p := s.Pause
	q := question(s, p, events.Delivery{Target: events.RouteTarget{Channel: c}}, events.PhaseAsk)
	for _, d := range p.Deliveries {
		if d.Target.Channel == c {
			q.Delivery = d
		}
	}
	if p.Status != events.PauseWaiting {
		q.Phase, q.Closed = events.PhaseClose, &events.Closed{Status: p.Status, Kind: s.Kind, At: p.Ended}
		if acc, ok := acceptedAt(s, p.Version); ok {
			q.Closed.By, q.Closed.At = &acc.Responder, acc.At
		}
	}
	return &q
}

func (r requests) report(ctx context.Context, q bus.Request) (any, error) {
	var rep events.DeliveryReport
	if err := events.Decode(q.Body, maxRequest, &rep); err != nil {
		return nil, err
	}
	rep.Agent, rep.Task, rep.Version = q.Subject.Agent, q.Subject.Task, q.Subject.Version
	if err := rep.Validate(); err != nil {
		return nil, err
	}
	res, err := r.ledger.Apply(ctx, Key{rep.Agent, rep.Task}, func(s Snapshot, now time.Time) Change {
		return r.rules().Report(s, rep, q.Subject.Channel, moment(now, events.NewID()))
	})
	return events.EffectReply{Kind: res.State.Kind}, err
}

func (r requests) claim(ctx context.Context, q bus.Request) (any, error) {
	var req events.ClaimRequest
	if err := events.Decode(q.Body, maxRequest, &req); err != nil {
		return nil, err
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	req.Agent, req.Task = q.Subject.Agent, q.Subject.Task
	res, err := r.ledger.Apply(ctx, Key{req.Agent, req.Task}, func(s Snapshot, now time.Time) Change {
		return r.rules().Claim(s, req, moment(now, req.Nonce))
	})
	switch {
	case err != nil:
		return nil, err
	case res.Refusal != nil:
		return events.ClaimReply{Refused: res.Refusal}, nil
	case res.State.Kind != events.Claimed:
		this := attempt{Key{req.Agent, req.Task}, "claim", req.Nonce, req.Version}
		return events.ClaimReply{Refused: this.refused(res.Snapshot, events.NotReleased, Moment{Now: res.State.At}).Refusal}, nil
	}
	return events.ClaimReply{Granted: grant(res.State)}, nil
}

func (r requests) effect(ctx context.Context, q bus.Request) (any, error) {
	var rep events.EffectReport
	if err := events.Decode(q.Body, maxRequest, &rep); err != nil {
		return nil, err
	}
	if err := rep.Validate(); err != nil {
		return nil, err
	}
	rep.Agent, rep.Task = q.Subject.Agent, q.Subject.Task
	res, err := r.ledger.Apply(ctx, Key{rep.Agent, rep.Task}, func(s Snapshot, now time.Time) Change {
		return r.rules().Effect(s, rep, moment(now, rep.Nonce))
	})
	if err != nil {
		return nil, err
	}
	reply := events.EffectReply{Kind: res.State.Kind, Refused: res.Refusal}
	if res.State.Claim != nil {
		reply.Until = res.State.Claim.Until
	}
	return reply, nil
}
