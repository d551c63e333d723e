package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// grace is how much longer than the caller's context a claim is asked about whose reply was lost, and an outcome reported
// that the broker has not acknowledged.
const (
	claimGrace  = 10 * time.Second
	reportGrace = time.Minute
)

// Tool runs an action with the arguments of the grant, as they were answered and approved. Its context ends, with an
// [*InDoubt] as its cause, when the lease is lost. The result is recorded if it has a JSON form of at most 64 KiB.
//
// A tool that returns an error says that it failed. One that returns the error of its own ended context, or an [*InDoubt],
// says nothing of the sort: whether it had its effect is not known, and the step ends in doubt.
type Tool func(ctx context.Context, grant events.Grant) (result any, err error)

// Outcome is what became of an action.
type Outcome struct {
	Result      events.Secret       // what the tool returned; zero when a result was too large to be recorded and is asked for again
	Assumptions []events.Assumption // values the policy supplied in place of a question
	Ran         bool                // the tool ran in this call; otherwise the result is the recorded one of an earlier run or another worker
}

// DoOption changes how [Gate.Do] runs a tool.
type DoOption func(*errand)

// Recheck has look read the world once more just before the claim: facts such as "record.status", which the policy's
// reconcile rules see. An error of look keeps the tool from running.
func Recheck(look func(context.Context) (map[string]events.Secret, error)) DoOption {
	return func(e *errand) { e.look = look }
}

// errand is one release to be claimed and run.
type errand struct {
	ticket Ticket // at the version of its release
	step   string
	tool   events.Tool
	action events.Digest // what was decided
	run    Tool
	look   func(context.Context) (map[string]events.Secret, error)
}

// Do proposes an action, waits until it is released, claims it, runs the tool and reports the outcome. An identical repeat
// returns the recorded outcome and does not run the tool. When another worker has the claim, Do waits for its outcome.
//
// Errors are those of [Gate.Submit] and [Gate.Wait]; [*Mismatch] when what was granted is not what was decided; the tool's own
// error, wrapped, when it failed in this call, and [*Failed] when it did in another; [*InDoubt] when the tool may have run and
// its outcome could not be recorded. Beside an error Outcome.Ran still says whether the tool ran.
func (g *Gate) Do(ctx context.Context, c events.Candidate, tool Tool, opts ...DoOption) (Outcome, error) {
	t, err := g.Submit(ctx, c)
	if err != nil {
		return Outcome{}, err
	}
	e := errand{ticket: t, step: c.Step, tool: c.Tool, run: tool}
	for _, o := range opts {
		o(&e)
	}
	for pace := newPace(100*time.Millisecond, 30*time.Second); ; {
		view, at, err := g.follow(ctx, t, released)
		doubt, _ := errors.AsType[*InDoubt](err)
		switch {
		case doubt != nil && view.Why.Traits.Idempotent && view.Release != nil: // the policy lets it be claimed again
		case err != nil:
			return Outcome{}, err
		case at != released:
			return g.Result(ctx, t)
		}
		e.ticket.Version, e.action = view.Release.Version, view.Release.Action
		h, err := g.claim(ctx, e)
		if err == nil {
			out, err := g.carryOut(ctx, h)
			out.Assumptions = view.Why.Assumptions
			return out, err
		}
		switch why := refusal(err); {
		case !lookAgain(why):
			return Outcome{}, err
		case doubt != nil && why != events.Taken:
			return Outcome{}, doubt
		}
		pace.sleep(ctx)
		if ctx.Err() != nil {
			return Outcome{}, stillWaiting(view, t, ctx.Err())
		}
	}
}

// refusal is why a claim was refused, and nothing for any other error. What the error wraps does not matter: it can be a
// tool's or a recheck's own.
func refusal(err error) events.Reason {
	if r, ok := err.(*Refused); ok { //nolint:errorlint // see above
		return r.Why
	}
	return ""
}

// lookAgain reports that a claim was refused for a reason that the task's state explains, or that passes.
func lookAgain(why events.Reason) bool {
	switch why {
	case events.Taken, events.Busy, events.NotReleased, events.StaleVersion, events.Frozen:
		return true
	default:
		return false
	}
}

// hold is a claim that was granted.
type hold struct {
	errand
	grant  events.Grant
	report events.EffectReport // what every word on the claim has in common
}

// carryOut checks that what was granted is what was decided, runs the tool under its lease and reports the outcome.
func (g *Gate) carryOut(ctx context.Context, h hold) (Outcome, error) {
	h.report.Status, h.report.Action = events.EffectFailed, h.action
	if err := g.verify(h); err != nil {
		h.report.Error = "digest_mismatch"
		return Outcome{}, errors.Join(err, g.report(ctx, h.report))
	}
	if ctx.Err() != nil {
		h.report.Error = "not_started"
		return Outcome{}, errors.Join(h.notStarted(ctx.Err()), g.report(ctx, h.report))
	}
	return g.runTool(ctx, h)
}

func (e errand) where() Case { return Case{Task: e.ticket.Task, Version: e.ticket.Version} }

func (e errand) notStarted(cause error) error {
	return fmt.Errorf("NOT EXECUTED: the caller gave up before the tool started%s: %w", e.where().where(), cause)
}

// verify computes the digest of what the tool would be given and holds it against what was decided. A tool other than the
// proposed one is a new candidate, never an edit.
func (g *Gate) verify(h hold) error {
	computed := events.ActionDigest(g.agent, h.ticket.Task, h.grant.Step, h.grant.Tool, h.grant.Arguments)
	if computed == h.action && h.grant.Action == h.action && h.grant.Step == h.step &&
		h.grant.Tool.Name == h.tool.Name && h.grant.Tool.Server == h.tool.Server {
		return nil
	}
	return &Mismatch{Case: h.where(), Decided: h.action, Granted: h.grant.Action, Computed: computed}
}

// claim asks for the release until the broker answers; the same nonce gets the same answer. The facts are looked at first.
// A caller who gives up meanwhile is not obeyed at once: a claim that was granted to nobody would leave the step in doubt.
func (g *Gate) claim(ctx context.Context, e errand) (hold, error) {
	req := events.ClaimRequest{Agent: g.agent, Task: e.ticket.Task, Version: e.ticket.Version, Nonce: rand.Text(), Worker: g.worker}
	if e.look != nil {
		facts, err := e.look(ctx)
		if err != nil {
			return hold{}, fmt.Errorf("NOT EXECUTED: the recheck before the claim did not succeed%s: %w", e.where().where(), err)
		}
		req.Recheck = facts
	}
	if err := ctx.Err(); err != nil {
		return hold{}, e.notStarted(err)
	}
	held, cancel := linger(ctx, claimGrace)
	defer cancel()
	for pace := newPace(100*time.Millisecond, 5*time.Second); ; pace.sleep(held) {
		var reply events.ClaimReply
		err := g.ask(held, g.bus.Space().Claim(g.agent, e.ticket.Task), req, &reply)
		switch {
		case err == nil && reply.Refused != nil:
			return hold{}, refusedBy(*reply.Refused)
		case err == nil && reply.Granted != nil:
			return hold{errand: e, grant: *reply.Granted, report: events.EffectReport{
				Agent: g.agent, Task: e.ticket.Task,
				Version: reply.Granted.Version, Nonce: req.Nonce, Fence: reply.Granted.Fence,
			}}, nil
		case hopeless(err):
			return hold{}, e.ticket.impossible("claim", err)
		case held.Err() != nil:
			return hold{}, &Waiting{Case: e.where(), Ticket: e.ticket, State: events.Released, cause: ended(ctx, err)}
		}
		g.log.Debug("claim not answered", "task", string(e.ticket.Task), "version", uint64(e.ticket.Version), "error", err)
	}
}

// linger returns a context that outlives its parent by d.
func linger(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(d, cancel) })
	return ctx, func() { stop(); cancel() }
}
