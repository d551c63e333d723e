package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
)

const (
	maxResult = 64 << 10 // bytes of a result that is recorded
	maxDetail = 1 << 10  // bytes of a tool's error that is recorded

	// renewMost is the longest time between two renewals, whatever the lease: with clocks that disagree a lease may be
	// shorter than it looks from here.
	renewMost = time.Minute
	// renewLeast keeps a lease that seems to be over from being renewed in a tight loop.
	renewLeast = time.Second
)

// runTool runs the tool under its lease and reports what it said.
func (g *Gate) runTool(ctx context.Context, h hold) (Outcome, error) {
	out := Outcome{Ran: true}
	result, err := g.underLease(ctx, h)
	doubt, _ := errors.AsType[*InDoubt](err)
	switch {
	case doubt != nil:
		return out, err
	case err != nil:
		h.report.Status, h.report.Error = events.EffectFailed, detail(err)
		err = fmt.Errorf("FAILED: the tool ran%s: %w", h.where().where(), err)
	default:
		h.report.Status = events.EffectDone
		if out.Result, err = box(result); len(out.Result.Reveal()) <= maxResult {
			h.report.Result = out.Result
		}
	}
	return out, errors.Join(err, g.report(ctx, h.report))
}

// underLease runs the tool and renews its lease meanwhile. When a tool was interrupted and gave up, it is unknown whether it
// had its effect: the error is an [*InDoubt] then, and otherwise the tool's own.
func (g *Gate) underLease(ctx context.Context, h hold) (any, error) {
	toolCtx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewer sync.WaitGroup
	defer renewer.Wait()
	defer stop()
	renewer.Go(func() {
		if cause := g.renew(renewing, h); cause != nil {
			g.log.Error("lease lost", "task", string(h.ticket.Task), "version", uint64(h.ticket.Version), "error", cause)
			interrupt(h.doubt("the lease was lost while the tool ran", cause))
		}
	})
	result, err := h.run(toolCtx, h.grant)
	cause := context.Cause(toolCtx)
	doubt, lost := errors.AsType[*InDoubt](cause)
	switch {
	case err == nil || cause == nil:
		return result, err
	case lost:
		return nil, doubt
	case errors.Is(err, cause) || errors.Is(err, toolCtx.Err()):
		return nil, h.doubt("the tool was interrupted", err)
	}
	return nil, err
}

func (e errand) doubt(reason string, cause error) *InDoubt {
	c := e.where()
	c.Reason = reason
	return &InDoubt{Case: c, Cause: cause}
}

// renew extends the lease every third of it, until the context ends. It returns why the lease was lost.
func (g *Gate) renew(ctx context.Context, h hold) error {
	h.report.Status = events.EffectRunning
	until := h.grant.Until
	retry := newPace(200*time.Millisecond, 2*time.Second)
	for wait := untilRenewal(until); rest(ctx, wait); {
		var reply events.EffectReply
		err := g.ask(ctx, g.bus.Space().Effect(g.agent, h.ticket.Task), h.report, &reply)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the tool is done: nothing was lost, whatever the request says
		case err == nil && reply.Refused != nil:
			return refusedBy(*reply.Refused)
		case err == nil && reply.Until.After(until):
			until = reply.Until
			wait = untilRenewal(until)
			retry.reset()
		case !time.Now().Before(until):
			return errors.Join(errors.New("it ran out before a broker renewed it"), err)
		default:
			wait = retry.delay()
		}
	}
	return nil
}

func untilRenewal(until time.Time) time.Duration {
	return min(max(time.Until(until)/3, renewLeast), renewMost)
}

// rest waits for d and reports that the context has not ended.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// report tells the broker the outcome until it says that it is stored, or for a minute, whatever the caller's context says.
// Its error is an [*InDoubt].
func (g *Gate) report(ctx context.Context, r events.EffectReport) error {
	held, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportGrace)
	defer cancel()
	doubt := &InDoubt{Case: Case{Task: r.Task, Version: r.Version, Reason: "the outcome could not be reported"}}
	for pace := newPace(100*time.Millisecond, 5*time.Second); ; pace.sleep(held) {
		var reply events.EffectReply
		err := g.ask(held, g.bus.Space().Effect(g.agent, r.Task), r, &reply)
		switch {
		case err == nil && reply.Refused != nil:
			doubt.Cause = refusedBy(*reply.Refused)
			return doubt
		case err == nil && string(reply.Kind) == string(r.Status):
			return nil
		case err == nil:
			doubt.Cause = fmt.Errorf("the log says %.40q", reply.Kind)
			return doubt
		case hopeless(err) || held.Err() != nil:
			doubt.Cause = err
			return doubt
		}
		g.log.Warn("outcome not acknowledged", "task", string(r.Task), "version", uint64(r.Version), "error", err)
	}
}

// box gives a result its JSON form. Without one the action is done all the same.
func box(result any) (events.Secret, error) {
	switch v := result.(type) {
	case nil:
		return events.Secret{}, nil
	case events.Secret:
		result = v.Reveal()
	}
	raw, err := json.Marshal(result, json.Deterministic(true))
	if err != nil {
		return events.Secret{}, errors.New("the tool ran and is recorded as done, but its result has no JSON form")
	}
	return events.NewSecret(raw), nil
}

// detail is a tool's error as it is recorded for the agent.
func detail(err error) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) <= maxDetail {
		return text
	}
	text = text[:maxDetail]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
