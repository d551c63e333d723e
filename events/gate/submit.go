package gate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// oldRefusals is how many proposals are made before a refusal that was there before the first of them is believed: the
// broker keeps only the first refusal of an id, so a new one cannot be told from it.
const oldRefusals = 4

// Ticket is a candidate that was proposed. It is plain data: kept across a restart, it re-attaches to the candidate.
type Ticket struct {
	Task      events.Task    `json:"task"`
	Candidate string         `json:"candidate"` // the candidate's id
	Version   events.Version `json:"version"`   // the one it was proposed at
}

// Submit proposes an action and returns when the task's log shows it. The candidate is sent again, at growing intervals,
// until then, because a broker may keep candidates in memory only; the same id re-attaches.
//
// Agent may be empty. With Version 0 the task's current version and one more is taken. ID is task, step and version when it
// is empty, or task, step and a digest of the content when there is no version either, so that an identical call re-attaches:
// give an ID or a Version to have the same action done twice.
//
// It returns an [*events.Invalid] for what could not be sent, a [*Refused] when the broker does not take it (changed,
// stale_version, busy, too_large), and a [*Waiting] when the context ended before the log showed it; it may be in the log
// all the same, and the ticket is good.
func (g *Gate) Submit(ctx context.Context, c events.Candidate) (Ticket, error) {
	c, err := g.complete(c)
	if err != nil {
		return Ticket{}, err
	}
	one := g.ears.join(c.Task)
	defer g.ears.leave(c.Task, one)
	var old events.Refusal
	for again := newResend(); ; again.listen(ctx, one) {
		reply, err := g.state(ctx, c.Task, c.ID, one.last.Swap(0))
		if err == nil && c.Version == 0 {
			c.Version = nextVersion(reply, c)
		}
		t := Ticket{Task: c.Task, Candidate: c.ID, Version: c.Version}
		switch {
		case ctx.Err() != nil:
			return t, t.unconfirmed(ctx, err)
		case hopeless(err):
			return t, t.impossible("propose", err)
		case err != nil:
		case reply.View != nil && reply.View.Candidate == c.ID:
			return t, attach(*reply.View, c)
		case reply.Refused != nil && again.sent == 0:
			old = *reply.Refused
		case reply.Refused != nil && (again.sent > oldRefusals || !reply.Refused.At.Equal(old.At)):
			return t, refusedBy(*reply.Refused)
		}
		if !again.isDue() {
			continue
		}
		if err := g.propose(ctx, c); hopeless(err) {
			return t, t.impossible("propose", err)
		}
		again.wasSent()
	}
}

// propose sends a candidate once. Whether it arrived, the log says.
func (g *Gate) propose(ctx context.Context, c events.Candidate) error {
	if c.Version == 0 {
		return nil // its version is not known yet: no broker answers
	}
	return g.send(ctx, g.bus.Space().Candidate(g.agent, c.Task), c.Task, g.envelope(c.ID, c))
}

// send stores one event, and logs it when that is not acknowledged.
func (g *Gate) send(ctx context.Context, subject string, task events.Task, e events.Envelope) error {
	attempt, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := g.bus.Publish(attempt, subject, e)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("event not acknowledged", "task", string(task), "error", err)
	}
	return err
}

// nextVersion is the task's current version and one more, or the candidate's own when the log has it already.
func nextVersion(reply events.StateReply, c events.Candidate) events.Version {
	switch {
	case reply.View == nil:
		return 1
	case reply.View.Candidate == c.ID:
		return reply.View.Version
	}
	return reply.View.Version + 1
}

// attach refuses to take a candidate for one whose id it shares and whose content it does not.
func attach(v events.View, c events.Candidate) error {
	if v.Content == c.Content() {
		return nil
	}
	return &Refused{Case: Case{Task: c.Task, Version: c.Version}, Of: "candidate", Why: events.Changed, Current: v.Version}
}

func refusedBy(r events.Refusal) *Refused {
	return &Refused{Case: Case{Task: r.Task, Version: r.Version, Reason: r.Detail}, Of: r.Of, Why: r.Reason, Current: r.Current}
}

// impossible is an error that only another credential or a smaller event mends.
func (t Ticket) impossible(what string, err error) error {
	return fmt.Errorf("NOT EXECUTED: %s task %s v%d: %w", what, t.Task, t.Version, err)
}

// unconfirmed is the end of a context before the log showed what was sent.
func (t Ticket) unconfirmed(ctx context.Context, err error) *Waiting {
	return &Waiting{Case: Case{Task: t.Task, Version: t.Version}, Ticket: t, cause: ended(ctx, err)}
}

// envelope makes an agent's event. The same event sent again has the same id.
func (g *Gate) envelope(id string, data any) events.Envelope {
	return events.Envelope{ID: id, Source: "/agents/" + string(g.agent), Time: time.Now().UTC(), Data: data}
}

// complete fills in what a candidate may leave out, except a version of 0, and checks it exactly as the broker will.
func (g *Gate) complete(c events.Candidate) (events.Candidate, error) {
	if c.Agent == "" {
		c.Agent = g.agent
	}
	if c.Agent != g.agent {
		return c, &events.Invalid{Field: "agent", Problem: "is not the agent of this gate", Fix: "leave it empty"}
	}
	if err := checkValues(c); err != nil {
		return c, err
	}
	version := c.Version
	c.Version = max(version, 1)
	c, err := g.reread(c)
	if err != nil {
		return c, err
	}
	c.Version = version
	if c.ID == "" {
		c.ID = idOf(c)
	}
	return c, nil
}

// idOf names a candidate so that the same call has the same name.
func idOf(c events.Candidate) string {
	last := strconv.FormatUint(uint64(c.Version), 10)
	if c.Version == 0 {
		last = string(c.Content())[len("sha256:"):][:32]
	}
	return string(c.Task) + ":" + events.TokenFor(c.Step) + ":" + last
}

// reread seals a candidate and opens it again, so that what the broker would refuse is refused here.
func (g *Gate) reread(c events.Candidate) (events.Candidate, error) {
	if err := c.Validate(); err != nil {
		return c, err
	}
	body, err := events.Seal(g.envelope("", c))
	if err != nil {
		return c, &events.Invalid{Field: "candidate", Problem: "has no JSON form", Fix: "send JSON values"}
	}
	e, err := events.Open(map[string][]string{"Content-Type": {events.ContentType}}, body)
	if err != nil {
		return c, err
	}
	read, ok := e.Data.(events.Candidate)
	if !ok {
		return c, &events.Invalid{Field: "candidate", Problem: "is read back as another event"}
	}
	return read, nil
}

// checkValues makes sure that boxed values are JSON, before anything computes a digest over them.
func checkValues(c events.Candidate) error {
	groups := map[string]map[string]events.Secret{"arguments": c.Arguments, "state": c.State}
	for i, a := range c.Candidates {
		groups["candidates."+strconv.Itoa(i)] = a.Arguments
	}
	for field, values := range groups {
		for name, v := range values {
			if !v.IsZero() && !v.Reveal().IsValid() {
				return &events.Invalid{Field: field + "." + name, Problem: "is not a JSON value", Fix: "make it with events.SecretOf"}
			}
		}
	}
	return nil
}
