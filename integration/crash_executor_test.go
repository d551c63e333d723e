package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
)

// executor proposes every task, and runs what is released: some of it twice at once, here and from the agent's pool. It ends
// when all tasks have.
func (s script) executor(ctx context.Context, t *trap) error {
	var g *gate.Gate
	persist(ctx, func() (err error) {
		g, err = gate.Connect(ctx, s.url(), gate.WithAgent("bot"), gate.WithWorker("executor"), gate.WithNATS(options(t)...), gate.WithLogger(s.log()))
		return err
	})
	defer g.Close()
	s.alive = os.NewFile(3, "alive")
	run := func(_ context.Context, grant events.Grant) (any, error) {
		return "done", t.around("tool", func() error { return s.runTool(grant.Step) })
	}
	handlers := map[string]gate.Handler{}
	for _, task := range crashTasks() {
		handlers[crashCandidate(task).Tool.Name] = gate.Handler{Run: run}
	}
	serving, stop := context.WithCancel(ctx)
	var server sync.WaitGroup
	var err error
	server.Go(func() { err = errors.Join(err, g.Serve(serving, handlers)) })
	failed := make([]error, len(crashTasks()))
	var all sync.WaitGroup
	for i, task := range crashTasks() {
		all.Go(func() {
			if failed[i] = drive(ctx, g, task, run); failed[i] != nil {
				failed[i] = fmt.Errorf("%s: %w", task, failed[i])
			}
		})
	}
	all.Wait()
	stop()
	server.Wait()
	return errors.Join(append(failed, err)...)
}

// drive takes one task to its end. The error is nil for an end it may have.
func drive(ctx context.Context, g *gate.Gate, task events.Task, run gate.Tool) error {
	c := crashCandidate(task)
	switch task {
	case taskCancel:
		t, err := g.Submit(ctx, c)
		if err == nil {
			err = g.Cancel(ctx, t, "not any more")
		}
		if r, is := errors.AsType[*gate.Refused](err); is && r.Why == events.NotPending {
			err = nil // it was cancelled in an earlier life
		}
		if err == nil {
			_, err = g.Wait(ctx, t)
		}
		if _, is := errors.AsType[*gate.Cancelled](err); is {
			return nil
		}
		return fmt.Errorf("not cancelled: %w", err)
	case taskApproval: // run by the pool alone
		if _, err := g.Submit(ctx, c); err != nil {
			return err
		}
	default:
		if _, err := g.Do(ctx, c, run); !inDoubt(err) {
			return err
		}
	}
	_, err := g.Result(ctx, gate.Ticket{Task: task, Candidate: c.ID, Version: 1}) // what is in doubt here is so in the log soon
	if inDoubt(err) {
		return nil
	}
	return err
}

func inDoubt(err error) bool {
	_, is := errors.AsType[*gate.InDoubt](err)
	return is
}

// runTool runs the tool in a process of its own. One that was killed has said nothing of its effect.
func (s script) runTool(task string) error {
	s.Role, s.Task = "tool", task
	if s.Kill != nil && (s.Kill.By != "tool" || exists(firedFile(s.Dir, *s.Kill))) {
		s.Kill = nil
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), s.env())
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{s.alive}
	err := cmd.Run()
	if exit, is := errors.AsType[*exec.ExitError](err); is && !exit.Exited() {
		return &gate.InDoubt{Case: gate.Case{Task: events.Task(task), Reason: "the tool was killed"}, Cause: err}
	}
	return err
}

func (s script) env() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return scriptVar + "=" + string(text)
}
