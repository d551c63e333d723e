package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// pretend is a listener that greets one client like a nats-server would and knows nothing else.
func pretend(t *testing.T, info string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "INFO {%s,\"headers\":true,\"max_payload\":1048576}\r\n", info)
		for in := bufio.NewScanner(c); in.Scan(); {
			if strings.HasPrefix(in.Text(), "PING") {
				fmt.Fprint(c, "PONG\r\n")
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return "nats://" + l.Addr().String()
}

func TestOpen_server(t *testing.T) {
	for name, test := range map[string]struct{ info, want string }{
		"too_old":       {`"version":"2.12.4","jetstream":true`, `nats-server "2.12.4" is too old: Clarify needs 2.14 or later`},
		"much_too_old":  {`"version":"1.99.0","jetstream":true`, "too old"},
		"no_version":    {`"version":"dev","jetstream":true`, "too old"},
		"no_jetstream":  {`"version":"2.14.0"`, "JetStream is off"},
		"next_major":    {`"version":"3.0.0"`, "JetStream is off"},
		"just_released": {`"version":"2.14.0-RC.1"`, "JetStream is off"},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := nats.Connect(pretend(t, test.info), nats.NoReconnect())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			if _, err := bus.Open(t.Context(), nc, bus.Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		nc, err := bustest.Server(t, embedded.Options{}).Connect()
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		if _, err := bus.Open(t.Context(), nc, bus.Options{}); !errors.Is(err, bus.ErrNobody) {
			t.Errorf("got %v, want ErrNobody", err)
		}
	})
}

func TestOpen_sync(t *testing.T) {
	accounts := func(o *server.Options) {
		a := server.NewAccount("TEAM")
		o.Accounts = append(o.Accounts, a)
		o.Users = []*server.User{{Username: "broker", Password: "pw", Account: a}}
	}
	for name, test := range map[string]struct {
		configure func(*server.Options)
		allow     bool
		want      bus.Sync
		refused   bool
	}{
		"always":          {nil, false, bus.SyncAlways, false},
		"in_an_account":   {accounts, false, bus.SyncAlways, false},
		"lazy":            {func(o *server.Options) { o.SyncAlways = false }, false, "", true},
		"lazy_is_allowed": {func(o *server.Options) { o.SyncAlways = false }, true, bus.SyncLazy, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t, embedded.Options{Configure: test.configure})
			nc, err := s.Connect(nats.UserInfo("broker", "pw"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			b, err := bus.Open(t.Context(), nc, bus.Options{AllowLazySync: test.allow})
			if test.refused {
				if err == nil || !strings.Contains(err.Error(), "allow_lazy_sync") {
					t.Errorf("got %v, want a refusal that says what to do", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Sync(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A server whose operator has not let this account ask when it syncs.
func TestOpen_sync_unknown(t *testing.T) {
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, err := bus.Open(t.Context(), nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Sync(); got != bus.SyncUnknown {
		t.Errorf("got %q, want unknown", got)
	}
}

// What a credential may not do is told as such, at once, not as a time-out.
func TestDenied(t *testing.T) {
	s := bustest.Server(t, embedded.Options{Configure: func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "broker", Password: "pw"},
			{Username: "agent", Password: "pw", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"clarify.candidate.crm-bot.*"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	}})
	if err := bustest.Open(t, s, bus.Options{}, nats.UserInfo("broker", "pw")).Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := world{Bus: bustest.Open(t, s, bus.Options{}, nats.UserInfo("agent", "pw"))}
	w.propose(t, "t-1") // what it may do
	space := w.Space()
	foreign := events.Candidate{Agent: "other", Task: "t-1", Version: 1, Step: "s", Tool: events.Tool{Name: "t"}, Arguments: events.Arguments{}}
	for name, try := range map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error {
			_, err := w.Publish(ctx, space.Candidate("other", "t-1"), events.Envelope{Data: foreign})
			return err
		},
		"append": func(ctx context.Context) error {
			_, err := w.Append(ctx, w.entry(state("t-1", 1, events.Released), 0))
			return err
		},
		"append_all": func(ctx context.Context) error {
			_, err := w.AppendAll(ctx, []bus.Entry{w.entry(state("t-1", 1, events.Released), 0), w.entry(state("t-2", 1, events.Released), 0)})
			return err
		},
		"arm": func(ctx context.Context) error {
			return w.Arm(ctx, events.Timer{Agent: agent, Task: "t-1"}, 0)
		},
		"last": func(ctx context.Context) error {
			_, err := w.Last(ctx, bus.Tasks, space.TaskAll(agent, "t-1"))
			return err
		},
		"ask": func(ctx context.Context) error {
			return w.Ask(ctx, space.AgentState(agent, "t-1"), events.StateRequest{}, &events.StateReply{})
		},
		"consume": func(ctx context.Context) error {
			return w.Consume(ctx, w.Pool(agent), func(context.Context, bus.Message) error { return nil })
		},
		"listen": func(ctx context.Context) error {
			return w.Listen(ctx, space.Wake("*", "*", "*"), func(bus.Message) {})
		},
		"serve": func(ctx context.Context) error {
			return w.Serve(ctx, space.Claim("*", "*"), "broker", 1, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := try(t.Context())
			if !errors.Is(err, bus.ErrDenied) || errors.Is(err, bus.ErrReread) || !strings.Contains(err.Error(), "permissions") {
				t.Errorf("got %v, want ErrDenied", err)
			}
		})
	}
}
