// Package bus carries events over JetStream: which streams there are, how a message is published and consumed, the guarded
// append that is the only way a task's state changes, and the schedules that wake a task up.
//
// # Guarantees
//
// Delivery. What [Bus.Publish], [Bus.Append], [Bus.AppendAll] and [Bus.AppendAudit] return without an error is stored: on
// disk if the server syncs before it acknowledges, which [Bus.Sync] tells, but for candidates and questions on one server,
// which a power cut may lose and their senders send again. What they return with an error may be stored all the same.
// [Bus.Consume] hands out every stored message at least once, in no order across deliveries.
//
// Exactly once, by which key. A task changes by [Bus.Append] alone, and of all appends behind one (guard, sequence) at most
// one is stored, for as long as the task is kept. That holds only while every writer of a task gives the same guard, so the
// guard is checked here. No Nats-Msg-Id is used anywhere: its window is per stream, and another publisher could take the id.
//
// Order. [Bus.Tail] hands out a stream in its order, without gaps. [Bus.Last] and [Bus.LastSeq] are answered by the stream's
// leader: what was acknowledged before they were asked is seen. Direct gets can be stale and are never used.
//
// Silence. A missing acknowledgement proves nothing: [ErrReread]. [ErrNotFound] proves nothing until a guarded append has
// succeeded on it. A request that nobody answered may have been carried out: [ErrNobody].
//
// Identity. What a message's subject says of channel, agent, task and version wins, since credentials are bound to subjects.
// A payload that names others is malformed, and so is a payload whose type is not its subject's.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrReread means that an append was not acknowledged: another writer was first, or the outcome is unknown. It proves
// nothing about the task; only reading it again does.
var ErrReread = errors.New("not acknowledged: read the task again")

// ErrNotFound means that the leader has no such message now. Absence is not believed without a guarded append.
var ErrNotFound = errors.New("no such message")

// ErrNobody means that no broker, or no server, answered a request. It may have been carried out.
var ErrNobody = errors.New("nobody answers")

// ErrFull means that the stream refuses more for now: back off and send again.
var ErrFull = errors.New("the stream is full")

// ErrTooLarge means that a message is larger than its stream, or the server, takes. Sending it again does not help.
var ErrTooLarge = errors.New("the message is too large")

// ErrDenied means that the server's permissions keep this credential from the subject. Nothing was stored.
var ErrDenied = errors.New("permissions: this credential may not use the subject")

// Options say which Clarify on which server this is.
type Options struct {
	Space         events.Space // events.DefaultSpace when empty
	Instance      string       // becomes the source of events: /clarify/<instance>; the host's name when empty
	Replicas      int          // of every stream; 1 when 0
	AllowLazySync bool         // accept a server that acknowledges before it has synced
	Logger        *slog.Logger // slog.Default() when nil
}

// Bus is one connection's view of Clarify's streams. It is safe for concurrent use. The connection stays its owner's: end
// whatever was started with a context first, then close the connection.
type Bus struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	space    events.Space
	source   string
	replicas int
	sync     atomic.Pointer[Sync]
	log      *slog.Logger
	denials  *denials
	pools    sync.Map // events.Agent -> time.Time
	opened   *opened
	batch    sync.Mutex // keeps one atomic batch contiguous on the wire: the server allows 50 open ones
}

// Open checks the server (version, JetStream, when it syncs) and returns the bus. It makes no streams: see Apply. It adds
// itself to the connection's error handler, to learn of denied subjects.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*Bus, error) {
	b := &Bus{nc: nc, opened: newOpened(), space: o.Space, replicas: max(o.Replicas, 1), log: o.Logger}
	if b.space == "" {
		b.space = events.DefaultSpace
	}
	if err := checkSpace(b.space); err != nil {
		return nil, fmt.Errorf("open the bus: %w", err)
	}
	if b.log == nil {
		b.log = slog.Default()
	}
	if o.Instance == "" {
		o.Instance, _ = os.Hostname()
	}
	b.source = "/clarify/" + events.TokenFor(o.Instance)
	if err := checkServer(nc); err != nil {
		return nil, fmt.Errorf("open the bus: %w", err)
	}
	var err error
	if b.js, err = jetstream.New(nc); err != nil {
		return nil, fmt.Errorf("open the bus: %w", err)
	}
	b.denials = watchDenials(nc, b.log)
	said, err := b.askSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the bus: %w", err)
	}
	b.sync.Store(&said)
	if said == SyncLazy && !o.AllowLazySync {
		return nil, fmt.Errorf("open the bus: %w", errLazySync)
	}
	return b, nil
}

// checkSpace refuses capitals, since stream names are the space in capitals and must tell spaces apart.
func checkSpace(s events.Space) error {
	if _, err := events.ParseAgent(string(s)); err != nil || strings.ToLower(string(s)) != string(s) {
		return &events.Invalid{Field: "space", Problem: fmt.Sprintf("%.80q is no prefix for subjects",
			string(s)), Fix: "use 1 to 64 lower-case letters, digits, _ and -"}
	}
	return nil
}

// Space returns the first token of all subjects.
func (b *Bus) Space() events.Space { return b.space }

// Source returns what this process puts into events as their source.
func (b *Bus) Source() string { return b.source }

// Stream is the role of a stream; its name has the space's prefix.
type Stream string

// The streams.
const (
	Candidates Stream = "CANDIDATES"
	Tasks      Stream = "TASKS"
	Questions  Stream = "QUESTIONS"
	Answers    Stream = "ANSWERS"
	Audit      Stream = "AUDIT"
	Advisories Stream = "ADVISORIES"
)

// Message is one event as it was stored or heard.
type Message struct {
	Subject    events.Subject
	Envelope   events.Envelope
	Seq        uint64    // in its stream, for a wake-up in the log; 0 for what is not stored
	Stored     time.Time // the server's time; zero for what is not stored
	Deliveries int       // 1 for the first
	Pending    uint64    // how many messages the consumer or tail had still to come after this one
	After      uint64    // what a guarded append was made over: its task's last sequence in the log then; 0 when there was none
	Problem    error     // why it could not be read: only a Malformed handler and a tail are given such messages
}
