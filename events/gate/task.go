package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Task is a handle on one line of execution. A task has one current step; what runs beside it are its children.
type Task struct {
	gate *Gate
	id   events.Task

	mu       sync.Mutex
	children []*Task
}

// Task returns a handle on a task of this agent. It knows only the children that are made with it.
func (g *Gate) Task(id events.Task) *Task { return &Task{gate: g, id: id} }

// ID is what candidates of the task name.
func (t *Task) ID() events.Task { return t.id }

// Child returns the task for a step that runs beside its parent, such as one of several parallel tool calls. The same parent
// and step have the same child, also after a restart.
func (t *Task) Child(step string) *Task {
	id := childOf(t.id, step)
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.children, func(c *Task) bool { return c.id == id }); i >= 0 {
		return t.children[i]
	}
	child := &Task{gate: t.gate, id: id}
	t.children = append(t.children, child)
	return child
}

// childOf cannot collide with a task's own name: it always ends in a hash, since no task has a slash.
func childOf(parent events.Task, step string) events.Task {
	return events.Task(events.TokenFor(string(parent) + "/" + step))
}

// Cancel calls off what the children made with this handle are doing, and then the task's own step. What has ended or was
// never proposed is passed over; errors are those of [Gate.Cancel], joined, and do not keep the rest from being tried.
func (t *Task) Cancel(ctx context.Context, reason string) error {
	t.mu.Lock()
	children := slices.Clone(t.children)
	t.mu.Unlock()
	var errs []error
	for _, c := range children {
		errs = append(errs, c.Cancel(ctx, reason))
	}
	ticket, err := t.current(ctx)
	if err == nil && ticket.Candidate != "" {
		err = t.gate.Cancel(ctx, ticket, reason)
	}
	return errors.Join(append(errs, err)...)
}

// current returns the ticket of the task's step if it can still be called off, and an empty one if there is nothing to do.
func (t *Task) current(ctx context.Context) (Ticket, error) {
	for pace := newPace(200*time.Millisecond, 10*time.Second); ; pace.sleep(ctx) {
		reply, err := t.gate.state(ctx, t.id, "", 0)
		switch {
		case err == nil && reply.View == nil:
			return Ticket{}, nil
		case err == nil:
			ticket := Ticket{Task: t.id, Candidate: reply.View.Candidate, Version: reply.View.Version}
			if tooLate(*reply.View, ticket) == events.NotPending {
				return Ticket{}, nil
			}
			return ticket, nil
		case ctx.Err() != nil:
			return Ticket{}, fmt.Errorf("cancel task %s: %w", t.id, ended(ctx, err))
		}
	}
}
