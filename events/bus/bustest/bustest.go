// Package bustest gives tests a real bus on an embedded server, and a bubble of fake time to run it in.
package bustest

import (
	"testing"

	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats.go"
)

// Start runs a server for the test, with all streams made, and returns a bus on it. Both end with the test: what uses the
// bus must have ended before.
func Start(t testing.TB) *bus.Bus {
	t.Helper()
	b := Open(t, Server(t, embedded.Options{}), bus.Options{})
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// Server runs a server that ends with the test. Its data is in o.Dir, or in a folder of the test.
func Server(t testing.TB, o embedded.Options) *embedded.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Open connects to the server in this process and opens a bus. The connection ends with the test. It makes no streams.
func Open(t testing.TB, s *embedded.Server, o bus.Options, opts ...nats.Option) *bus.Bus {
	t.Helper()
	nc, err := s.Connect(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if o.Instance == "" {
		o.Instance = "test"
	}
	b, err := bus.Open(t.Context(), nc, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
