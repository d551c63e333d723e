package integration_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

// cast is a world that remembers in which scene each reason was heard. A scene's tasks are named for it.
type cast struct {
	*world
	raw     *nats.Conn
	scene   string
	reasons map[events.Reason][]string // scenes
}

// newCast is a world whose policy also has a route that holds.
func newCast(t *testing.T) *cast {
	server := bustest.Server(t, embeddedIn(t.TempDir()))
	raw, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	w := &world{t: t, bus: bustest.Open(t, server, bus.Options{}), asked: make(chan events.Question, 64), log: slog.New(slog.DiscardHandler)}
	if err := w.bus.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start(server)
	text, err := os.ReadFile("../broker/testdata/desk.yaml")
	if err != nil {
		t.Fatal(err)
	}
	review, rest, found := strings.Cut(string(text), `question.field == "outcome"`)
	held := review + `question.field == "outcome"` + strings.Replace(rest, "afterDeadline: stop", "afterDeadline: hold", 1)
	p, err := policy.Parse("desk.yaml", []byte(held))
	if err != nil || !found {
		t.Fatal(err, found)
	}
	b, err := broker.New(w.bus, broker.Config{Policy: p, People: deskPeople(), AuditKey: []byte("0123456789abcdef"), Logger: w.log})
	if err != nil {
		t.Fatal(err)
	}
	w.run("broker", b.Run)
	w.channels()
	if w.gate, err = gate.New(w.bus, "bot"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.gate.Close)
	return &cast{world: w, raw: raw, reasons: map[events.Reason][]string{}}
}

// task is the scene's task, or another of its tasks.
func (c *cast) task(more ...string) events.Task {
	return events.Task(strings.Join(append([]string{c.scene}, more...), "-"))
}

func (c *cast) heard(r *events.Refusal) {
	if r != nil && !slices.Contains(c.reasons[r.Reason], c.scene) {
		c.reasons[r.Reason] = append(c.reasons[r.Reason], c.scene)
	}
}

func (c *cast) ask(subject string, request, reply any) {
	c.t.Helper()
	if err := c.bus.Ask(c.t.Context(), subject, request, reply); err != nil {
		c.t.Fatalf("%s: %v", c.scene, err)
	}
}

// submit proposes a candidate and returns its ticket.
func (c *cast) submit(of events.Candidate) gate.Ticket {
	c.t.Helper()
	t, err := c.gate.Submit(c.t.Context(), of)
	if err != nil {
		c.t.Fatalf("%s: %v", c.scene, err)
	}
	return t
}

func (c *cast) claim(task events.Task, nonce string, recheck map[string]events.Secret) *events.Grant {
	c.t.Helper()
	var reply events.ClaimReply
	c.ask(c.bus.Space().Claim("bot", task), events.ClaimRequest{Agent: "bot", Task: task, Version: max(c.view(task).Version, 1), Nonce: nonce, Recheck: recheck}, &reply)
	c.heard(reply.Refused)
	return reply.Granted
}

func (c *cast) report(task events.Task, g events.Grant, nonce string, status events.EffectStatus) {
	c.t.Helper()
	var reply events.EffectReply
	c.ask(c.bus.Space().Effect("bot", task), events.EffectReport{Agent: "bot", Task: task, Version: g.Version, Nonce: nonce, Fence: g.Fence, Action: g.Action, Status: status}, &reply)
	c.heard(reply.Refused)
}

func (c *cast) operate(verb string, task events.Task, r events.OperatorRequest) {
	c.t.Helper()
	subject := c.bus.Space().Operator(verb)
	if task != "" {
		subject = c.bus.Space().OperatorTask(verb, "bot", task)
	}
	r.By = "op"
	var reply events.OperatorReply
	c.ask(subject, r, &reply)
	if reply.Error != "" {
		c.t.Fatalf("%s: %s", c.scene, reply.Error)
	}
	c.heard(reply.Refused)
}

func (c *cast) freeze(move events.FreezeMove) {
	c.t.Helper()
	c.operate(events.VerbFreeze, "", events.OperatorRequest{Freeze: move, Reason: "a drill"})
}

// hand submits an answer, and approve an approval.
func (c *cast) hand(a events.Answer) events.Verdict {
	c.t.Helper()
	v, err := c.desk.Submit(c.t.Context(), a)
	if err != nil {
		c.t.Fatalf("%s: %v", c.scene, err)
	}
	return v
}

func (c *cast) approve(a events.ApprovalAnswer) events.Verdict {
	c.t.Helper()
	v, err := c.desk.SubmitApproval(c.t.Context(), a)
	if err != nil {
		c.t.Fatalf("%s: %v", c.scene, err)
	}
	return v
}

// kinds reads from the audit in which scenes each kind and each recorded reason arose.
func (c *cast) kinds(records []events.Record) map[events.Kind][]string {
	all := map[events.Kind][]string{}
	for _, r := range records {
		c.scene, _, _ = strings.Cut(string(r.Task), "-")
		switch {
		case r.Refusal != nil:
			c.heard(&events.Refusal{Reason: r.Refusal.Reason})
		case r.Transition != nil && !slices.Contains(all[r.Transition.Kind], c.scene):
			all[r.Transition.Kind] = append(all[r.Transition.Kind], c.scene)
		}
	}
	return all
}

// want compares what arose with what there is, and lists where it did.
func want[K ~string](t *testing.T, there []K, arose map[K][]string) {
	t.Helper()
	for _, k := range there {
		if len(arose[k]) == 0 {
			t.Errorf("%s arises from no public input", k)
			continue
		}
		t.Logf("%-16s %s", k, strings.Join(arose[k], ", "))
	}
	for _, k := range slices.Sorted(maps.Keys(arose)) {
		if !slices.Contains(there, k) {
			t.Errorf("%s arose in %v, and is not among those there are", k, arose[k])
		}
	}
}

func nothing(context.Context, events.Grant) (any, error) { return nil, nil }
