package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

// Server is a broker with its channels, and the server that carries its events where that is embedded.
type Server struct {
	Bus    *bus.Bus
	Policy *policy.Policy // what it started with
	URL    string         // of the server that carries the events
	Inbox  string         // the page; empty without one

	parts *stack
	log   *slog.Logger
}

// Start starts everything that the configuration names, and returns when it takes work. p is what to decide by until a
// policy is pushed; nil when one must be there already. Stop must be called, also when ctx has ended.
func Start(ctx context.Context, c Config, p *policy.Policy, log *slog.Logger) (*Server, error) {
	s := &Server{Policy: p, parts: newStack(), log: log}
	if err := s.start(ctx, c); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop stops everything in the opposite order and says what went wrong on the way.
func (s *Server) Stop() error { return s.parts.unwind() }

// Serve is Wait that reads the policy file again at every signal.
func (s *Server) Serve(ctx context.Context, file string, reload <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.parts.failed:
			return err
		case <-reload:
			s.reload(ctx, file)
		}
	}
}

// Wait returns when the context ends, with nil, or when a part ended by itself, with its error.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.parts.failed:
		return err
	}
}

func (s *Server) start(ctx context.Context, c Config) error {
	if err := s.open(ctx, c); err != nil {
		return err
	}
	return s.work(ctx, c)
}

// open reaches the server that carries the events, and its streams.
func (s *Server) open(ctx context.Context, c Config) error {
	nc, err := s.connect(ctx, c)
	if err != nil {
		return err
	}
	s.Bus, err = bus.Open(ctx, nc, bus.Options{Space: c.Space, Replicas: c.Replicas, AllowLazySync: c.AllowLazySync, Logger: s.log})
	if err != nil {
		return err
	}
	return s.streams(ctx, c)
}

// work starts what decides, and then what lets people and agents in.
func (s *Server) work(ctx context.Context, c Config) error {
	if err := s.startBroker(ctx, c); err != nil {
		return err
	}
	return s.startChannels(ctx, c)
}

// connect reaches the server that carries the events, and starts it where it is embedded.
func (s *Server) connect(ctx context.Context, c Config) (nc *nats.Conn, err error) {
	if c.NATS.Embedded == nil {
		if nc, err = nats.Connect(c.NATS.URL, s.shared(c.NATS.Creds)...); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", Redact(c.NATS.URL), err)
		}
		s.URL = Redact(c.NATS.URL)
	} else if nc, err = s.embed(ctx, *c.NATS.Embedded); err != nil {
		return nil, err
	}
	s.parts.push("connection", func() error { nc.Close(); return nil })
	return nc, nil
}

// shared are the options of a connection to a server that is not this process's.
func (s *Server) shared(creds string) []nats.Option {
	opts := []nats.Option{nats.Name("clarify serve"), nats.MaxReconnects(-1), s.heard()}
	if creds != "" {
		opts = append(opts, nats.UserCredentials(creds))
	}
	return opts
}

// Redact is a URL as it may be printed: without a password in it.
func Redact(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if _, host, secret := strings.Cut(rest, "@"); ok && secret {
		return scheme + "://" + host
	}
	return url
}

func (s *Server) embed(ctx context.Context, e Embedded) (*nats.Conn, error) {
	port := DefaultPort
	if e.Port != nil {
		port = *e.Port
	}
	if err := free(ctx, port); err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: natsDir(e.Dir), Host: "127.0.0.1", Port: port, Logger: s.log})
	if err != nil {
		return nil, err
	}
	s.parts.push("nats-server", server.Shutdown)
	s.URL = server.URL()
	return server.Connect(s.heard())
}

// heard logs what the connection learns by itself, such as messages it had to drop.
func (s *Server) heard() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.log.Warn("nats connection", "error", err) })
}

func natsDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "nats")
}

// PortTaken means that somebody else listens where Clarify should.
type PortTaken struct {
	Address string
	HTTP    bool // it is the inbox's; else the NATS server's
	cause   error
}

func (e *PortTaken) Error() string { return fmt.Sprintf("listen on %s: %s", e.Address, e.cause) }

// Unwrap returns the system's error.
func (e *PortTaken) Unwrap() error { return e.cause }

// free looks whether a port can be listened on, since nats-server only logs that it cannot.
func free(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	l, err := listen(ctx, fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return nil, &PortTaken{Address: address, cause: op.Err}
	}
	return l, err
}

// streams makes the streams of an embedded server. Those of a shared one are an operator's: they are only looked at.
func (s *Server) streams(ctx context.Context, c Config) error {
	if c.NATS.Embedded != nil {
		return s.Bus.Apply(ctx)
	}
	changes, err := s.Bus.Plan(ctx)
	if err != nil {
		return err
	}
	for _, one := range changes {
		if one.Setting == "" {
			return fmt.Errorf("stream %s is missing: `clarify nats apply` makes it", one.Stream)
		}
		s.log.Warn("stream differs from what it should be", "stream", one.Stream, "setting", one.Setting, "is", one.Is, "should", one.Should)
	}
	return nil
}

func (s *Server) startBroker(ctx context.Context, c Config) error {
	key, err := auditKey(c)
	if err != nil {
		return err
	}
	if err := s.choosePolicy(ctx, c); err != nil {
		return err
	}
	b, err := broker.New(s.Bus, broker.Config{
		LazySync: c.AllowLazySync, Policy: s.Policy, People: broker.Directory{People: c.People}, Lease: time.Duration(c.Lease),
		Retention: time.Duration(c.Retention), AuditKey: key, Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.parts.launch(ctx, "broker", b.Run)
	if err := s.answering(ctx); err != nil {
		return err
	}
	s.parts.launch(ctx, "policy", func(ctx context.Context) error { return s.Bus.WatchPolicy(ctx, s.follow(b)) })
	return nil
}

// readyLimit is how long a broker may take to answer its first request.
const readyLimit = time.Minute

// answering returns when the broker takes requests, or has failed.
func (s *Server) answering(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("the broker does not answer"))
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		var h events.Health
		err := s.Bus.Ask(ctx, s.Bus.Space().Operator(events.VerbHealth), events.OperatorRequest{}, &h)
		if err == nil {
			return nil
		}
		select {
		case failed := <-s.parts.failed:
			return failed
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-again.C:
		}
	}
}

// auditKey reads the key of the audit's HMACs. An embedded server's is made once and kept beside its data.
func auditKey(c Config) ([]byte, error) {
	file := c.AuditKeyFile
	if file == "" && c.NATS.Embedded != nil {
		if c.NATS.Embedded.Dir == "" {
			return []byte(rand.Text()), nil
		}
		file = filepath.Join(c.NATS.Embedded.Dir, "audit.key")
		if err := makeKey(file); err != nil {
			return nil, fmt.Errorf("make the audit key: %w", err)
		}
	}
	key, err := readKey(file)
	if err != nil {
		return nil, fmt.Errorf("read the audit key: %s: %w", file, err)
	}
	return key, nil
}

// makeKey makes a key unless there is one. It is in place all at once or not at all, whatever happens meanwhile; an empty
// file has never been a key.
func makeKey(file string) error {
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		return nil
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	f, err := os.CreateTemp(filepath.Dir(file), "audit.key.*") // readable by its owner only
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // there is nothing to remove when it was renamed
	_, err = f.WriteString(hex.EncodeToString(secret) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
