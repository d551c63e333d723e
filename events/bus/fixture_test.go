package bus_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const agent = events.Agent("crm-bot")

var errAtWork = errors.New("cannot now")

// world is a bus with all streams, and the connection behind it for what only tests do.
type world struct {
	*bus.Bus
	server *embedded.Server
	nc     *nats.Conn
	js     jetstream.JetStream
}

func newWorld(t testing.TB) world {
	t.Helper()
	return worldOn(t, bustest.Server(t, embedded.Options{}))
}

func worldOn(t testing.TB, s *embedded.Server) world {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, err := bus.Open(t.Context(), nc, bus.Options{Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return world{Bus: b, server: s, nc: nc, js: js}
}

func state(task events.Task, v events.Version, k events.Kind) events.State {
	return events.State{Agent: agent, Task: task, Version: v, Kind: k, Decision: events.Decided{Decision: events.Stop{}}}
}

// entry is a transition behind a sequence.
func (w world) entry(s events.State, last uint64) bus.Entry {
	return bus.Entry{
		Subject:  w.Space().Task(s.Agent, s.Task, s.Kind),
		Envelope: events.Envelope{Data: s},
		Guard:    w.Space().TaskAll(s.Agent, s.Task),
		Last:     last,
	}
}

func (w world) append(t testing.TB, s events.State, last uint64) uint64 {
	t.Helper()
	seq, err := w.Append(t.Context(), w.entry(s, last))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func candidate(task events.Task) events.Candidate {
	return events.Candidate{
		Agent: agent, Task: task, Version: 1, Step: "update-record", Tool: events.Tool{Name: "crm.update_record"},
		Arguments: events.Arguments{"name": events.SecretOf("Juan")},
	}
}

func (w world) propose(t testing.TB, task events.Task) uint64 {
	t.Helper()
	seq, err := w.Publish(t.Context(), w.Space().Candidate(agent, task), events.Envelope{Data: candidate(task)})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// start runs f until the test has ended or stop is called, which returns what f returned.
func start(t testing.TB, f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { err = f(ctx) })
	stop = func() error {
		cancel()
		wg.Wait()
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-t.Context().Done():
		t.Fatal("the test ended first")
		panic("unreachable")
	}
}

func count(t testing.TB, w world, stream string) uint64 {
	t.Helper()
	s, err := w.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func portOf(t testing.TB, url string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
