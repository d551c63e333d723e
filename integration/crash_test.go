package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// TestCrash kills the processes of a whole Clarify, a run each, just before and just after each thing they do that others can
// see, starts them again, and has them finish: every task ends, no effect happens twice, and the audit finds nothing wrong.
// CLARIFY_CRASH=all has each point be one of its own, at its first crossings; otherwise runs kill more than once.
func TestCrash(t *testing.T) {
	runs := packed()
	if os.Getenv("CLARIFY_CRASH") == "all" {
		runs = single()
	}
	var all sync.WaitGroup
	for turn := range abreast {
		all.Go(func() {
			for i := turn; i < len(runs); i += abreast {
				t.Run(crashName(runs[i]), func(t *testing.T) { crashRun(t, runs[i]) })
			}
		})
	}
	all.Wait()
}

// abreast is how many runs there are at a time: they wait for time-outs most of theirs.
const abreast = 8

func crashName(kills []kill) string {
	var name []string
	for _, k := range kills {
		name = append(name, k.String())
	}
	return strings.Join(name, "+")
}

// What the processes cross, in the order of a task's life. Points of one row can each be reached again after a kill at any
// point of an earlier row.
func brokerPoints() [][]string {
	return [][]string{
		{"task.asked", "task.approval_asked", "ack.intake", "question", "timer", "ack.outbox", "reply.report", "task.reached", "task.cancelled"},
		{"refused", "verdict", "ack.answers", "task.released", "reply.claim", "task.claimed", "reply.effect", "task.done", "audit", "ack.due"},
	}
}

func executorPoints() []string {
	return []string{"candidate", "cancel", "claim", "tool", "effect", "ack.pool-bot"}
}

func peoplePoints() []string { return []string{"report", "ack.channel-desk", "answer", "approval"} }

func times() []string { return []string{before, after} }

func kills(role, point, when string, nth int, who ...string) kill {
	if len(who) == 0 {
		who = []string{role}
	}
	return kill{By: role, Point: point, When: when, Nth: nth, Who: who}
}

// packed covers every point before and after. A run kills the broker twice, and people or the executor once.
func packed() [][]kill {
	early, late := brokerPoints()[0], brokerPoints()[1]
	var runs [][]kill
	for _, when := range times() {
		for i := range late {
			var run []kill
			if i < len(early) {
				run = append(run, kills("broker", early[i], when, 1))
			}
			runs = append(runs, append(run, kills("broker", late[i], when, 1)))
		}
	}
	i := 0
	for _, when := range times() {
		for _, point := range peoplePoints() {
			runs[i] = append(runs[i], kills("people", point, when, 1))
			i++
		}
	}
	for _, when := range times() {
		for _, point := range executorPoints() {
			if i < len(runs) {
				runs[i] = append(runs[i], kills("executor", point, when, 1))
			} else {
				runs = append(runs, []kill{kills("executor", point, when, 1)})
			}
			i++
		}
	}
	return append(append(runs, []kill{kills("tool", "effect", before, 1)}, []kill{kills("tool", "effect", after, 1)}), others()...)
}

// others kill the server, and all at once.
func others() [][]kill {
	all := []string{"server", "executor", "people", "broker"}
	var runs [][]kill
	for _, when := range times() {
		runs = append(runs,
			[]kill{kills("broker", "task.reached", when, 1, "server")},
			[]kill{kills("broker", "ack.outbox", when, 1, "server")}, // the question it acknowledges is not on disk yet
			[]kill{kills("executor", "claim", when, 1, "server")},
			[]kill{kills("people", "answer", when, 1, "server")},
			[]kill{kills("broker", "task.claimed", when, 1, all...)},
			[]kill{kills("broker", "question", when, 1, all...)})
	}
	return runs
}

// single has a run for each of the first crossings of each point.
func single() [][]kill {
	var runs [][]kill
	add := func(role string, points []string) {
		for _, point := range points {
			for _, when := range times() {
				for nth := 1; nth <= crossings(point); nth++ {
					runs = append(runs, []kill{kills(role, point, when, nth)})
				}
			}
		}
	}
	for _, points := range brokerPoints() {
		add("broker", points)
	}
	add("people", peoplePoints())
	add("executor", executorPoints())
	add("tool", []string{"effect"})
	return append(runs, others()...)
}

// crossings is how often a run is certain to cross a point without a kill, up to three.
func crossings(point string) int {
	switch point {
	case "task.approval_asked", "task.cancelled", "refused", "approval", "cancel", "effect", "timer", "ack.due":
		return 1
	case "task.asked", "task.reached", "reply.report", "report", "ack.channel-desk", "answer":
		return 2
	}
	return 3
}

// crashLimit is when a run is given up: something hangs.
const crashLimit = 3 * time.Minute

func crashRun(t *testing.T, kills []kill) {
	ctx, cancel := context.WithTimeout(t.Context(), crashLimit)
	defer cancel()
	c := newCrew(t, kills, cancel)
	c.keep(ctx, "server")
	select {
	case <-c.up:
	case <-ctx.Done():
		t.Fatal("the server does not start")
	}
	b := c.connect(ctx)
	c.keep(ctx, "broker")
	c.keep(ctx, "people")
	select {
	case <-c.keep(ctx, "executor"):
	case <-ctx.Done():
	}
	switch {
	case t.Failed():
		t.FailNow()
	case ctx.Err() != nil:
		for _, task := range crashTasks() {
			t.Logf("%s is %q", task, c.view(t.Context(), b, task).Kind)
		}
		t.Fatal("not all tasks have ended")
	}
	c.settle()
	c.check(ctx, b)
}

func (c *crew) connect(ctx context.Context) *bus.Bus {
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", c.address()), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	b, err := bus.Open(ctx, nc, bus.Options{Instance: "test"})
	if err == nil {
		err = b.Apply(ctx)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *crew) view(ctx context.Context, b *bus.Bus, task events.Task) events.View {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var reply events.StateReply
	persist(ctx, func() error { return b.Ask(ctx, b.Space().AgentState("bot", task), events.StateRequest{}, &reply) })
	if reply.View == nil {
		return events.View{}
	}
	return *reply.View
}

// check holds what the log says of each task against what the tool did, and has the audit verified.
func (c *crew) check(ctx context.Context, b *bus.Bus) {
	for _, k := range c.kills {
		if !c.fired(k) {
			c.t.Errorf("nobody was killed: %s was not crossed", k)
		}
	}
	doubtful := slices.ContainsFunc(c.kills, func(k kill) bool { return k.By == "tool" || slices.Contains(k.Who, "executor") })
	text, err := os.ReadFile(c.script().effects())
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	records := readAudit(ctx, c.t, b, readLog(ctx, c.t, b).end)
	for _, task := range crashTasks() {
		effects, claims := strings.Count(string(text), string(task)+"\n"), claimsOf(records, task)
		switch kind := c.view(ctx, b, task).Kind; {
		case task == taskCancel && kind == events.Cancelled && effects == 0 && claims == 0:
		case task != taskCancel && kind == events.Done && effects == 1 && claims == 1:
		case task != taskCancel && kind == events.InDoubt && effects <= 1 && claims == 1 && doubtful:
		default:
			c.t.Errorf("%s is %q, with %d effects and %d claims", task, kind, effects, claims)
		}
	}
}

func (c *crew) script() script { return script{Dir: c.dir} }

// claimsOf counts a task's claims, each of which has a fence of its own.
func claimsOf(records []events.Record, task events.Task) int {
	fences := map[uint64]bool{}
	for _, r := range records {
		if r.Task == task && r.Transition != nil && r.Transition.Kind == events.Claimed {
			fences[r.Transition.Claim.Fence] = true
		}
	}
	return len(fences)
}

// readAudit follows the audit to a sequence of the log and has it verified.
func readAudit(ctx context.Context, t *testing.T, b *bus.Bus, end uint64) []events.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var records []events.Record
	for r, err := range audit.Follow(ctx, b, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
		if r.Log >= end {
			break
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the audit has not come to the end of the log: %d records", len(records))
	}
	report := audit.Verify(func(yield func(events.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	for _, v := range report.Violations {
		t.Error(v)
	}
	return records
}

// logEnd is the sequence of the last transition or refusal.
func logEnd(ctx context.Context, t *testing.T, b *bus.Bus) (end uint64) {
	t.Helper()
	for _, pattern := range []string{b.Space().Task("*", "*", "*"), string(b.Space()) + ".refused.*.*.*"} {
		m, err := b.Last(ctx, bus.Tasks, pattern)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			t.Fatal(err)
		}
		end = max(end, m.Seq)
	}
	return end
}
