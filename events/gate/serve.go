package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// Handler runs the released actions of one tool.
type Handler struct {
	Run Tool
	// Recheck reads the world once more just before the claim, for the policy's reconcile rules. The candidate has the
	// answers in its arguments. Nil for none; an error has the release delivered again later.
	Recheck func(context.Context, events.Candidate) (map[string]events.Secret, error)
}

// Serve runs the agent's releases, one at a time, with the handler of the tool's name, until the context ends. Then it lets
// the tool that runs finish: only a lost lease interrupts one. Call it more often, here and on other machines, to run more at
// a time: all share the durable consumer that the broker makes with the agent's first candidate, for which it waits, and
// each release is run by one of them.
//
// A release is acknowledged after its outcome. One whose claim another worker won is acknowledged; one whose tool has no
// handler here is left to another worker.
func (g *Gate) Serve(ctx context.Context, handlers map[string]Handler) error {
	for name, h := range handlers {
		if h.Run == nil {
			return &events.Invalid{Field: "handlers", Problem: fmt.Sprintf("have no Run for %.80q", name), Fix: "set it"}
		}
	}
	pool := g.bus.Pool(g.agent)
	pool.Bind = true
	return g.bus.Consume(ctx, pool, func(ctx context.Context, m bus.Message) error { return g.serve(ctx, handlers, m) })
}

func (g *Gate) serve(ctx context.Context, handlers map[string]Handler, m bus.Message) error {
	s, ok := m.Envelope.Data.(events.State)
	if !ok || s.Kind != events.Released || s.Release == nil || s.Agent != g.agent {
		return bus.Poison("not a release of this agent")
	}
	log := g.log.With("task", string(s.Task), "version", uint64(s.Version))
	h, ok := handlers[s.Candidate.Tool.Name]
	if !ok {
		log.Warn("no handler", "tool", s.Candidate.Tool.Name, "deliveries", m.Deliveries)
		return bus.Later(2*time.Second+rand.N(3*time.Second), errors.New("no handler for its tool here")) //nolint:gosec // jitter
	}
	idempotent := s.Decision.Basis().Traits.Idempotent
	claim, err := g.claim(ctx, h.errand(s))
	if err != nil {
		return unclaimed(err, idempotent)
	}
	_, err = g.carryOut(context.WithoutCancel(ctx), claim)
	log.Info("release handled", "succeeded", err == nil)
	return carried(err, idempotent)
}

func (h Handler) errand(s events.State) errand {
	e := errand{
		ticket: Ticket{Task: s.Task, Candidate: s.Candidate.ID, Version: s.Release.Version}, step: s.Candidate.Step,
		tool: s.Candidate.Tool, action: s.Release.Action, run: h.Run,
	}
	if h.Recheck != nil {
		e.look = func(ctx context.Context) (map[string]events.Secret, error) { return h.Recheck(ctx, s.Candidate) }
	}
	return e
}

// unclaimed says what becomes of a delivered release whose claim was not granted: nil acknowledges it, because another
// worker has it or it is no longer to be run. What is claimed and may be claimed again, because its tool is idempotent, comes
// again until its outcome is recorded.
func unclaimed(err error, idempotent bool) error {
	switch why := refusal(err); {
	case why == "":
		return bus.Later(5*time.Second, err)
	case why == events.Frozen, idempotent && (why == events.Taken || why == events.Busy):
		return bus.Later(30*time.Second, err)
	}
	return nil
}

// carried says what becomes of a release that was claimed here: only one in doubt whose tool is idempotent comes again.
func carried(err error, idempotent bool) error {
	if _, doubt := errors.AsType[*InDoubt](err); doubt && idempotent {
		return bus.Later(30*time.Second, err)
	}
	return nil
}
