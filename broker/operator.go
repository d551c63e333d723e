package broker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// operator answers what is asked about all tasks.
func (r requests) operator(ctx context.Context, q bus.Request) (any, error) {
	switch q.Subject.Verb {
	case events.VerbList:
		var req events.ListRequest
		if err := events.Decode(q.Body, maxRequest, &req); err != nil {
			return nil, err
		}
		if !r.index.ready() {
			return nil, fmt.Errorf("%w: the log is still being read", bus.ErrNobody)
		}
		return r.index.list(req), nil
	case events.VerbHealth:
		return r.health(), nil
	case events.VerbFreeze:
		var req events.OperatorRequest
		if err := events.Decode(q.Body, maxRequest, &req); err != nil {
			return nil, err
		}
		return r.move(ctx, req)
	}
	return events.OperatorReply{Error: "unknown verb; use list, health or freeze"}, nil
}

// move freezes or thaws the releases of all replicas. Thawing also acknowledges a loss of data, so that no replica raises it
// again.
func (r requests) move(ctx context.Context, req events.OperatorRequest) (events.OperatorReply, error) {
	by := cmp.Or(req.By, "operator")
	switch req.Freeze {
	case events.FreezeReleases:
		return events.OperatorReply{}, r.bus.PutFreeze(ctx, bus.Freeze{Reason: cmp.Or(req.Reason, "an operator said so"), By: by})
	case events.ThawReleases:
		if err := r.audit.Acknowledge(ctx, by); err != nil {
			return events.OperatorReply{}, err
		}
		return events.OperatorReply{}, r.bus.PutFreeze(ctx, bus.Freeze{By: by})
	}
	return events.OperatorReply{Error: "freeze: use freeze or thaw"}, nil
}

// operatorTask answers what is asked about one task.
func (r requests) operatorTask(ctx context.Context, q bus.Request) (any, error) {
	var req events.OperatorRequest
	if err := events.Decode(q.Body, maxRequest, &req); err != nil {
		return nil, err
	}
	req.Agent, req.Task = q.Subject.Agent, q.Subject.Task
	k, cause := Key{req.Agent, req.Task}, events.NewID()
	var fn func(Snapshot, time.Time) Change
	switch q.Subject.Verb {
	case events.VerbState:
		fn = func(Snapshot, time.Time) Change { return Change{} }
	case events.VerbCancel:
		fn = func(s Snapshot, now time.Time) Change {
			c := events.CancelRequest{Agent: k.Agent, Task: k.Task, Version: cmp.Or(req.Version, s.State.Version), Reason: req.Reason}
			return r.rules().Cancel(s, c, cmp.Or(req.By, "operator"), moment(now, cause))
		}
	case events.VerbReconcile:
		fn = func(s Snapshot, now time.Time) Change { return r.rules().Reconcile(s, req, moment(now, cause)) }
	default:
		return events.OperatorReply{Error: "unknown verb; use state, cancel or reconcile"}, nil
	}
	res, err := r.ledger.Apply(ctx, k, fn)
	if err != nil {
		return nil, err
	}
	reply := events.OperatorReply{Refused: res.Refusal}
	if res.Known() {
		reply.View = view(res.Snapshot)
	}
	return reply, nil
}
