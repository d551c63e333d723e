// Package embedded runs a nats-server with JetStream inside the process: it syncs every write before it acknowledges it,
// listens on nothing unless told to, and locks its data folder against a second server. Agents never link it.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Options say where the server keeps its data and who can reach it. The zero value is a server for a test.
type Options struct {
	Dir       string                // made with mode 0700; "" means a temporary folder that Shutdown removes
	Host      string                // the address to listen on; "" means that only this process can connect
	Port      int                   // 0 lets the system choose one: see [Server.URL]
	MaxStore  int64                 // bytes JetStream may keep on disk; 0 means three quarters of what is free
	Logger    *slog.Logger          // hears the server's warnings and errors; nil for silence
	Configure func(*server.Options) // users, permissions, TLS, a cluster; called last
}

const (
	startTimeout = 5 * time.Minute // a large data folder is read before the server is ready
	readyPoll    = 250 * time.Millisecond
)

// Server is a nats-server of this process.
type Server struct {
	nats     *server.Server
	log      *slog.Logger
	accounts []string     // configured, besides the global one
	release  func() error // the folder
	once     sync.Once
}

// Start runs a server and returns when it takes connections. It fails at once when another server has the folder.
func Start(ctx context.Context, o Options) (*Server, error) {
	release := func() error { return nil }
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "clarify-nats-")
		if err != nil {
			return nil, fmt.Errorf("start nats-server: %w", err)
		}
		o.Dir, release = dir, func() error { return os.RemoveAll(dir) }
	}
	unlock, err := lock(o.Dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start nats-server: %w", err), release())
	}
	s := &Server{log: o.Logger, release: func() error { return errors.Join(unlock(), release()) }}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start nats-server: %w", err), s.stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) (err error) {
	opts := options(o)
	if s.nats, err = server.NewServer(opts); err != nil {
		return err
	}
	for _, a := range opts.Accounts {
		s.accounts = append(s.accounts, a.Name)
	}
	log := &logger{log: s.log, fatal: make(chan string, 1)}
	s.nats.SetLoggerV2(log, false, false, false)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(s.nats.Start)
	return s.await(ctx, log.fatal)
}

// await returns when the server is ready, has given up, or took too long.
func (s *Server) await(ctx context.Context, fatal <-chan string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	for !s.nats.ReadyForConnections(readyPoll) {
		select {
		case why := <-fatal:
			return errors.New(why)
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
	}
	return s.shareSync()
}

func options(o Options) *server.Options {
	opts := &server.Options{
		ServerName:             "clarify",
		DontListen:             o.Host == "",
		Host:                   o.Host,
		Port:                   o.Port,
		JetStream:              true,
		StoreDir:               o.Dir,
		SyncAlways:             true,
		JetStreamMaxStore:      o.MaxStore,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	}
	if o.Host != "" && o.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if o.Configure != nil {
		o.Configure(opts)
	}
	return opts
}

// Connect connects inside the process, and reconnects for ever. With users configured it needs credentials like anybody.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	own := []nats.Option{
		nats.InProcessServer(s.nats), nats.MaxReconnects(-1), nats.Name("clarify"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.log.Warn("connection in doubt", "error", err) }),
	}
	return nats.Connect("", append(own, opts...)...)
}

// URL is where clients outside the process connect; empty when the server listens on nothing.
func (s *Server) URL() string {
	if _, ok := s.nats.Addr().(*net.TCPAddr); !ok {
		return ""
	}
	return s.nats.ClientURL()
}

// Shutdown stops the server, waits until its data is on disk, and unlocks the folder. It may be called twice.
func (s *Server) Shutdown() error { return s.stop() }

func (s *Server) stop() (err error) {
	s.once.Do(func() {
		if s.nats != nil {
			s.nats.Shutdown()
			s.nats.WaitForShutdown()
		}
		err = s.release()
	})
	return err
}
