package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

// race is a world of three brokers, three executors and two desks, which all know nothing of each other.
type race struct {
	*world
	gates []*gate.Gate
	pager *channels.Desk

	mu      sync.Mutex
	ran     map[string]int             // effects, by task and version
	told    map[string]map[string]bool // the verdicts given, by task and submission
	waiting map[events.Task]chan events.Question
}

// newRace starts a race whose brokers connect through wire.
func newRace(t *testing.T, wire nats.Option) *race {
	server := bustest.Server(t, embedded.Options{Dir: t.TempDir()})
	w := &world{t: t, bus: bustest.Open(t, server, bus.Options{}), asked: make(chan events.Question, 4096), log: slog.New(slog.DiscardHandler)}
	if err := w.bus.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	var replicas []*bus.Bus
	for i := range 3 {
		replicas = append(replicas, bustest.Open(t, server, bus.Options{Instance: "replica-" + strconv.Itoa(i), Logger: w.log}, wire))
	}
	var executors []*bus.Bus
	for range 3 {
		executors = append(executors, bustest.Open(t, server, bus.Options{Logger: w.log}))
	}
	w.start(server)
	r := &race{world: w, ran: map[string]int{}, told: map[string]map[string]bool{}, waiting: map[events.Task]chan events.Question{}}
	for _, b := range replicas {
		r.replica(b)
	}
	w.channels()
	r.pager = channels.NewDesk(w.bus, "pager", 0)
	w.run("pager", r.pager.Run)
	heard, err := w.bus.Subscribe(t.Context(), w.bus.Space().Verdicts("*"))
	if err != nil {
		t.Fatal(err)
	}
	w.run("verdicts", func(ctx context.Context) error { return heard.Hear(ctx, r.hear) })
	for _, b := range executors {
		g, err := gate.New(b, "bot")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		r.gates = append(r.gates, g)
		w.run("pool", func(ctx context.Context) error { return g.Serve(ctx, r.handlers()) })
	}
	return r
}

func (r *race) replica(b *bus.Bus) {
	text, err := os.ReadFile("../broker/testdata/desk.yaml")
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := policy.Parse("desk.yaml", text)
	if err != nil {
		r.t.Fatal(err)
	}
	replica, err := broker.New(b, broker.Config{Policy: p, People: deskPeople(), AuditKey: []byte("0123456789abcdef"), Logger: r.log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.run("broker", replica.Run)
}

func (r *race) handlers() map[string]gate.Handler {
	all := map[string]gate.Handler{}
	for _, tool := range []string{"crm.update_record", "docs.review", "mail.send"} {
		all[tool] = gate.Handler{Run: r.tool}
	}
	return all
}

// tool counts; the step of each task is its own.
func (r *race) tool(_ context.Context, g events.Grant) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran[at(events.Task(g.Step), g.Version)]++
	return "done", nil
}

func at(task events.Task, v events.Version) string { return fmt.Sprintf("%s v%d", task, v) }

func (r *race) hear(m bus.Message) {
	if v, ok := m.Envelope.Data.(events.Verdict); ok {
		r.note(v)
	}
}

// note keeps a verdict. A person may be told the same one as often as the network likes, and never another.
func (r *race) note(v events.Verdict) {
	said := "accepted"
	if !v.Accepted {
		said = "refused"
		if v.Refusal != nil {
			said = string(v.Refusal.Reason)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := string(v.Task) + " " + string(v.Submission)
	if r.told[id] == nil {
		r.told[id] = map[string]bool{}
	}
	r.told[id][said] = true
}

// hand submits until there is a verdict. It is done as often as there are wires to the provider: twice.
func (r *race) hand(submit func(context.Context) (events.Verdict, error)) {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			persist(r.t.Context(), func() error {
				v, err := submit(r.t.Context())
				if err == nil {
					r.note(v)
				}
				if _, never := errors.AsType[*events.Invalid](err); never {
					r.t.Error(err)
					return nil
				}
				return err
			})
		})
	}
	both.Wait()
}

// direct is the connection of a broker as it is.
func direct(*nats.Options) error { return nil }

// unguarded is a connection that takes the guard off every append on its way to the server.
func unguarded(o *nats.Options) error {
	o.InProcessServer = wired{o.InProcessServer, func(conn net.Conn) net.Conn {
		return &sender{Conn: conn, out: func(frame []byte, send func([]byte) error) error { return send(unguard(frame)) }}
	}}
	return nil
}

// wired passes connections inside the process through a wire.
type wired struct {
	nats.InProcessConnProvider
	wire func(net.Conn) net.Conn
}

func (w wired) InProcessConn() (net.Conn, error) {
	conn, err := w.InProcessConnProvider.InProcessConn()
	if err != nil {
		return nil, err
	}
	return w.wire(conn), nil
}

// unguard removes the headers of the guard from a publish, and corrects the sizes in its control line.
func unguard(frame []byte) []byte {
	words, body := control(frame)
	if words[0] != "HPUB" || !bytes.Contains(body, []byte("Nats-Expected-Last-Subject-Sequence")) {
		return frame
	}
	size, err := strconv.Atoi(words[len(words)-2])
	if err != nil {
		panic(err)
	}
	header, payload := body[:size], body[size:]
	var kept []string
	for line := range strings.SplitSeq(string(header), "\r\n") {
		if !strings.HasPrefix(line, "Nats-Expected-Last-Subject-Sequence") {
			kept = append(kept, line)
		}
	}
	rest := strings.Join(kept, "\r\n")
	words[len(words)-2], words[len(words)-1] = strconv.Itoa(len(rest)), strconv.Itoa(len(rest)+len(payload))
	return []byte(strings.Join(words, " ") + "\r\n" + rest + string(payload) + "\r\n")
}
