// Package integration_test runs all of Clarify together, over a real JetStream, and counts what a real tool did.
package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
)

// world is a broker, an agent with a tool that counts its effects, and people on the channels desk and pager.
type world struct {
	t       *testing.T
	server  *embedded.Server
	bus     *bus.Bus
	gate    *gate.Gate
	desk    *channels.Desk
	asked   chan events.Question // what the desk was asked
	refuses atomic.Bool          // the channels take no message
	effects atomic.Int64
	log     *slog.Logger
	run     func(name string, f func(context.Context) error)
	stop    func() // ends all parts and the server; the test's end does so too
}

func newWorld(t *testing.T) *world { return newWorldIn(t, t.TempDir()) }

// newWorldIn is a world whose server keeps its data in dir.
func newWorldIn(t *testing.T, dir string) *world { return newWorldOn(t, embeddedIn(dir)) }

// newWorldOn is a world on a server of its own.
func newWorldOn(t *testing.T, o embedded.Options) *world {
	server := bustest.Server(t, o)
	w := &world{
		t: t, server: server, bus: bustest.Open(t, server, bus.Options{}), asked: make(chan events.Question, 64),
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if err := w.bus.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start(server)
	w.brokers(1)
	w.channels()
	g, err := gate.New(w.bus, "bot", gate.WithLogger(w.log))
	if err != nil {
		t.Fatal(err)
	}
	stop := w.stop
	w.stop = sync.OnceFunc(func() {
		g.Close()
		stop()
	})
	t.Cleanup(w.stop)
	w.gate = g
	return w
}

func embeddedIn(dir string) embedded.Options { return embedded.Options{Dir: dir} }

// start lets parts run until the world stops, which waits for them.
func (w *world) start(server *embedded.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	w.run = func(name string, f func(context.Context) error) {
		parts.Go(func() {
			if err := f(ctx); err != nil && !errors.Is(err, context.Canceled) {
				w.t.Errorf("%s: %v", name, err)
			}
		})
	}
	w.stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		if err := server.Shutdown(); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
}

func (w *world) brokers(n int) {
	text, err := os.ReadFile("../broker/testdata/desk.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := policy.Parse("desk.yaml", text)
	if err != nil {
		w.t.Fatal(err)
	}
	people := broker.Directory{People: []broker.Person{
		{ID: "ana", Name: "Ana", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ana", "pager": "ana"}},
		{ID: "ben", Name: "Ben", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ben"}},
		{ID: "eve", Name: "Eve", Addresses: map[string]string{"desk": "eve"}},
	}}
	for range n {
		b, err := broker.New(w.bus, broker.Config{Policy: p, People: people, AuditKey: []byte("0123456789abcdef"), Retention: 2 * time.Hour, Logger: w.log})
		if err != nil {
			w.t.Fatal(err)
		}
		w.run("broker", b.Run)
	}
}

func (w *world) channels() {
	w.desk = channels.NewDesk(w.bus, "desk", 0)
	w.run("desk", w.desk.Run)
	courier, err := channels.NewCourier(w.bus, []channels.Adapter{person{"desk", w}, person{"pager", w}}, channels.CourierConfig{}, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run("courier", courier.Run)
}

// person is an adapter whose provider is the test.
type person struct {
	name events.Channel
	w    *world
}

func (p person) Name() events.Channel { return p.name }

func (p person) Deliver(_ context.Context, q events.Question) (events.Receipt, error) {
	if p.w.refuses.Load() {
		return events.Receipt{}, channels.Fault(channels.Permanent, "target_not_found", nil)
	}
	p.w.asked <- q
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID}, nil
}

// do has the agent do something, and returns where its end is told.
func (w *world) do(ctx context.Context, c events.Candidate) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.gate.Do(ctx, c, func(context.Context, events.Grant) (any, error) {
			w.effects.Add(1)
			return "done", nil
		})
		done <- err
	}()
	return done
}

// question waits until a channel is asked.
func (w *world) question() events.Question {
	w.t.Helper()
	select {
	case q := <-w.asked:
		return q
	case <-time.After(time.Hour):
		w.t.Fatal("nobody was asked")
		return events.Question{}
	}
}

func (w *world) answer(q events.Question, who, option string) events.Verdict {
	w.t.Helper()
	v, err := w.desk.Submit(w.t.Context(), answerTo(q, who, option))
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func answerTo(q events.Question, who, option string) events.Answer {
	return events.Answer{
		Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question, Submission: events.NewSubmissionID(),
		Responder: events.Responder{Subject: who, Name: who, Assurance: events.Platform},
		Values:    []events.Given{{Field: q.Content.Fields[0].Name, Option: option}},
	}
}

func (w *world) wantRefused(v events.Verdict, reason events.Reason, open bool) {
	w.t.Helper()
	if v.Accepted || v.Refusal == nil || v.Refusal.Reason != reason || v.Open != open {
		w.t.Fatalf("verdict %+v (refusal %+v), want %s, question open: %t", v, v.Refusal, reason, open)
	}
}

func (w *world) wantEffects(n int64) {
	w.t.Helper()
	if got := w.effects.Load(); got != n {
		w.t.Fatalf("%d effects, want %d", got, n)
	}
}

// view is what the broker says of a task.
func (w *world) view(task events.Task) events.View {
	w.t.Helper()
	var reply events.StateReply
	if err := w.bus.Ask(w.t.Context(), w.bus.Space().AgentState("bot", task), events.StateRequest{}, &reply); err != nil {
		w.t.Fatal(err)
	}
	if reply.View == nil {
		return events.View{}
	}
	return *reply.View
}

// wantStill waits until everything has settled and checks that nothing has happened.
func (w *world) wantStill(done <-chan error, kind events.Kind, task events.Task) {
	w.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		w.t.Fatalf("the agent went on: %v", err)
	default:
	}
	if v := w.view(task); v.Kind != kind {
		w.t.Fatalf("the task is %q, want %q", v.Kind, kind)
	}
	w.wantEffects(0)
}

func candidate(task events.Task, tool string, args events.Arguments) events.Candidate {
	no := false
	c := events.Candidate{
		Task: task, ID: string(task) + "-" + events.NewID(), Step: "step-" + tool, Arguments: args,
		Tool: events.Tool{
			Name: tool, Server: "mcp://crm", InputSchema: schemas[tool],
			Annotations: &events.Annotations{ReadOnly: &no, Destructive: &no, OpenWorld: &no},
		},
	}
	c.Provenance = map[string]events.Provenance{}
	for name := range args {
		c.Provenance[name] = events.Provenance{From: events.FromUser}
	}
	c.Requester = &events.Requester{ID: "eve", Name: "Eve"}
	return c
}

var schemas = map[string]events.Raw{
	"crm.update_record": events.Raw(`{"type":"object","properties":{"customer_id":{"type":"string"},"phone":{"type":"string"}},"required":["customer_id"]}`),
	"docs.render":       events.Raw(`{"type":"object","properties":{"format":{"type":"string"}},"required":["format"]}`),
	"docs.publish":      events.Raw(`{"type":"object","properties":{"format":{"type":"string"}},"required":["format"]}`),
	"docs.translate":    events.Raw(`{"type":"object","properties":{"language":{"type":"string"}},"required":["language"]}`),
	"docs.archive":      events.Raw(`{"type":"object"}`),
	"docs.review":       events.Raw(`{"type":"object","properties":{"outcome":{"type":"string","enum":["ready","not ready"]}},"required":["outcome"]}`),
	"mail.send":         events.Raw(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`),
	"bank.pay":          events.Raw(`{"type":"object","properties":{"amount":{"type":"number"}}}`),
}

// juans is an update that could mean three people.
func juans(task events.Task) events.Candidate {
	c := candidate(task, "crm.update_record", events.Arguments{"phone": events.SecretOf("+34 600 000 000")})
	c.Missing = []events.Missing{{Field: "customer_id", Question: "Which Juan should be updated?"}}
	for id, where := range map[string]string{"c-101": "Lima", "c-207": "Quito", "c-311": "Madrid"} {
		c.Candidates = append(c.Candidates, events.Alternative{Arguments: events.Arguments{"customer_id": events.SecretOf(id)}, Label: "Juan, " + where, Weight: 1})
	}
	return c
}
