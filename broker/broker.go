package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/policy"
)

// Config is what a broker needs beside its bus.
type Config struct {
	Policy    *policy.Policy
	People    Directory
	Lease     time.Duration // of a claim; 1 m when 0
	Retention time.Duration // of a final task; 30 d when 0
	LazySync  bool          // run on a server that does not say, or denies, that it syncs before it acknowledges
	AuditKey  []byte        // keys the HMACs in the audit; at least 16 bytes
	Logger    *slog.Logger
}

// Validate says what a broker cannot run without.
func (c Config) Validate() error {
	switch {
	case c.Policy == nil:
		return fmt.Errorf("policy: is missing; nothing is decided without one")
	case len(c.AuditKey) < 16:
		return fmt.Errorf("audit key: is %d bytes; give at least 16", len(c.AuditKey))
	}
	return nil
}

var errNotSynced = errors.New("the server does not say that it syncs before it acknowledges, so a power cut could lose saved answers; " +
	"let this account ask $SYS.REQ.SERVER.PING.JSZ and set sync_interval: always there, or set allow_lazy_sync: true here")

// Broker is one replica. Any number may run on the same streams; no replica owns a task.
type Broker struct {
	core
	index   *Index
	freeze  *freeze
	audit   *audit.Writer
	policy  *atomic.Pointer[policy.Policy]
	lazy    bool // a server that does not say that it syncs will do
	started time.Time
}

// core is what every stage works with.
type core struct {
	bus    *bus.Bus
	ledger *Ledger
	rules  func() Rules
	log    *slog.Logger
}

// New returns a broker on a bus whose streams exist.
func New(b *bus.Bus, c Config) (*Broker, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	c.Lease, c.Retention = cmp.Or(c.Lease, time.Minute), cmp.Or(c.Retention, 30*24*time.Hour)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	following, stop := &atomic.Pointer[policy.Policy]{}, &freeze{log: c.Logger}
	writer := audit.NewWriter(b, c.AuditKey, c.Logger, stop.raise)
	stop.checked = writer.Checked
	following.Store(c.Policy)
	rules := func() Rules {
		return Rules{Policy: following.Load(), People: c.People, Lease: c.Lease, Retention: c.Retention, Frozen: stop.why() != ""}
	}
	return &Broker{
		core:    core{b, NewLedger(b), rules, c.Logger},
		index:   NewIndex(),
		freeze:  stop,
		audit:   writer,
		policy:  following,
		lazy:    c.LazySync,
		started: time.Now(),
	}, nil
}

// Follow makes p the policy of all decisions from now on. A pause keeps what it was asked under; its answer is decided
// under p, and both digests are recorded.
func (b *Broker) Follow(p *policy.Policy) { b.policy.Store(p) }

// Run runs every stage until the context ends or one of them cannot go on, and returns when all have ended.
func (b *Broker) Run(ctx context.Context) error {
	if b.bus.Durable(ctx) != bus.SyncAlways && !b.lazy && ctx.Err() == nil {
		return fmt.Errorf("broker: %w", errNotSynced)
	}
	timers, space := timers{b.core, b.audit.Cursor}, &room{core: b.core}
	return runAll(ctx, b.log, []stage{
		{"appends", b.ledger.log.run},
		{"freeze", b.freeze.follow(b.bus)},
		{"index", b.index.follow(b.bus)},
		{"room", space.run},
		{"intake", b.once(intake{b.core, space}.run)},
		{"answers", b.once(answers{b.core, b.index}.run)},
		{"outbox", outbox{b.core}.run},
		{"timers", b.once(timers.run)},
		{"requests", requests{b.core, b.index, b.audit, b.health}.run},
		{"watchdog", b.once(watchdog{b.core, b.index, timers}.run)},
		{"audit", b.audit.Run},
	})
}

// once lets a stage begin when it is known whether releases are frozen.
func (b *Broker) once(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		b.freeze.await(ctx)
		return run(ctx)
	}
}

func (b *Broker) health() events.Health {
	h := events.Health{Instance: b.bus.Source(), Started: b.started, Policy: b.policy.Load().Ref(), Frozen: b.freeze.why()}
	h.Server, h.Sync = b.bus.Server(), string(b.bus.Sync())
	h.Tasks, h.Waiting = b.index.size()
	return h
}

func moment(now time.Time, cause string) Moment {
	return Moment{Now: now, Question: events.NewQuestionID(), Cause: cause}
}
