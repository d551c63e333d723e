package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// askTimeout bounds one request to the broker.
const askTimeout = 5 * time.Second

// asksAtOnce bounds how many states are asked for at the same time, so that a reconnect of many waiters is no stampede.
const asksAtOnce = 64

// Gate is one agent's way to its broker, for any number of tasks at once. It is safe for concurrent use.
type Gate struct {
	bus    *bus.Bus
	agent  events.Agent
	worker string
	log    *slog.Logger
	ears   *ears
	asks   chan struct{}
	close  func()
}

// Option sets something up that has a default.
type Option func(*settings)

type settings struct {
	agent  string
	worker string
	log    *slog.Logger
	nats   []nats.Option
}

// WithAgent names the agent whose credential [Connect] uses. It is required there.
func WithAgent(agent string) Option { return func(s *settings) { s.agent = agent } }

// WithWorker names this process in claims and logs; a random name when it is not given.
func WithWorker(name string) Option { return func(s *settings) { s.worker = name } }

// WithLogger takes the log, which carries ids and reasons and never a value. Nothing is logged without it.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.log = log } }

// WithNATS passes options such as credentials and TLS on to the connection that [Connect] makes.
func WithNATS(opts ...nats.Option) Option {
	return func(s *settings) { s.nats = append(s.nats, opts...) }
}

func collect(opts []Option) settings {
	s := settings{log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(&s)
	}
	if s.worker == "" {
		s.worker = "worker-" + events.NewID()
	}
	return s
}

// Connect opens a connection to the server at url, in the default space, and a gate on it. For a connection or a space of
// one's own see [New]. It returns an [*events.Invalid] without [WithAgent].
func Connect(ctx context.Context, url string, opts ...Option) (*Gate, error) {
	s := collect(opts)
	agent, err := events.ParseAgent(s.agent)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(url, append([]nats.Option{
		nats.Name("clarify gate " + s.worker), nats.MaxReconnects(-1), nats.CustomInboxPrefix("_INBOX_" + s.agent),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrPermissionViolation) { // the bus tells of those
				s.log.Error("nats connection", "agent", s.agent, "error", err)
			}
		}),
	}, s.nats...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	// When the server syncs is for its broker to judge, which refuses to start on one that loses acknowledged answers.
	b, err := bus.Open(ctx, nc, bus.Options{Instance: s.worker, Logger: s.log, AllowLazySync: true})
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open the bus: %w", err)
	}
	back := nc.StatusChanged(nats.CONNECTED)
	return start(b, agent, s, back, func() { nc.RemoveStatusListener(back); nc.Close() }), nil
}

// New returns a gate on a bus that is open, which stays open when the gate is closed. [WithAgent] and [WithNATS] have no
// effect. The error is an [*events.Invalid].
func New(b *bus.Bus, agent events.Agent, opts ...Option) (*Gate, error) {
	if _, err := events.ParseAgent(string(agent)); err != nil {
		return nil, err
	}
	return start(b, agent, collect(opts), nil, func() {}), nil
}

// start makes the gate and the one subscription that wakes all of its waiters.
func start(b *bus.Bus, agent events.Agent, s settings, back <-chan nats.Status, release func()) *Gate {
	ctx, stop := context.WithCancel(context.Background())
	g := &Gate{
		bus: b, agent: agent, worker: s.worker, log: s.log.With("agent", string(agent)),
		ears: newEars(), asks: make(chan struct{}, asksAtOnce),
	}
	var running sync.WaitGroup
	running.Go(func() { g.listen(ctx) })
	running.Go(func() { g.hearReconnects(ctx, back) })
	g.close = sync.OnceFunc(func() { stop(); running.Wait(); release() })
	return g
}

// Close ends the wake-ups and, if [Connect] made it, the connection. End what uses the gate first. Nothing is cancelled.
func (g *Gate) Close() { g.close() }

// hopeless reports that trying again cannot help: the credential, the size or the request is wrong.
func hopeless(err error) bool {
	failed, _ := errors.AsType[*bus.Failed](err)
	return errors.Is(err, bus.ErrDenied) || errors.Is(err, bus.ErrTooLarge) || failed != nil && failed.Code == bus.CodeInvalid
}

// ended is why a caller is told nothing final: its context, and that nobody answers if that is so.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, bus.ErrNobody) {
		return errors.Join(ctx.Err(), bus.ErrNobody)
	}
	return ctx.Err()
}

// ask sends one request to the broker and waits for its answer, which comes after the durable append.
func (g *Gate) ask(ctx context.Context, subject string, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return g.bus.Ask(ctx, subject, request, reply)
}

// state asks what has become of one candidate of a task, at a sequence of the log or later; 0 is the latest.
func (g *Gate) state(ctx context.Context, task events.Task, candidate string, atLeast uint64) (events.StateReply, error) {
	select {
	case g.asks <- struct{}{}:
		defer func() { <-g.asks }()
	case <-ctx.Done():
		return events.StateReply{}, ctx.Err()
	}
	var reply events.StateReply
	err := g.ask(ctx, g.bus.Space().AgentState(g.agent, task), events.StateRequest{Candidate: candidate, AtLeast: atLeast}, &reply)
	return reply, err
}
