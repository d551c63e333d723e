package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
)

// scriptVar makes this test's binary play one role of a crash test in place of running tests.
const scriptVar = "CLARIFY_TEST_SCRIPT"

// script is what a process of a crash test is told.
type script struct {
	Role string `json:"role"`
	Dir  string `json:"dir"` // of the run
	Port int    `json:"port"`
	Kill *kill  `json:"kill,omitempty"`
	Task string `json:"task,omitempty"` // tool

	alive *os.File // executor: see crew
}

func (s script) url() string     { return fmt.Sprintf("nats://127.0.0.1:%d", s.Port) }
func (s script) effects() string { return filepath.Join(s.Dir, "effects") }

func TestMain(m *testing.M) {
	text, playing := os.LookupEnv(scriptVar)
	if !playing {
		os.Exit(m.Run())
	}
	var s script
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	if err := s.play(); err != nil {
		fmt.Fprintln(os.Stderr, s.Role, "failed:", err)
		os.Exit(1)
	}
}

// play does the role until it is done or the process that started this one is gone.
func (s script) play() error {
	t := newTrap(s)
	if s.Role == "tool" {
		return s.tool(t)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	switch s.Role {
	case "server":
		return s.server(ctx)
	case "broker":
		return s.broker(ctx, t)
	case "people":
		return s.people(ctx, t)
	case "executor":
		return s.executor(ctx, t)
	}
	return errors.New("no such role")
}

func (s script) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("role", s.Role)
}

func (s script) server(ctx context.Context) error {
	server, err := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(s.Dir, "nats"), Host: "127.0.0.1", Port: s.Port})
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	<-ctx.Done()
	return server.Shutdown()
}

func options(t *trap) []nats.Option {
	return []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.SetCustomDialer(t)}
}

// connect tries until there is a server that says when it syncs, which one that has just started again does not at first.
func (s script) connect(ctx context.Context, t *trap, opts ...nats.Option) (b *bus.Bus) {
	persist(ctx, func() error {
		nc, err := nats.Connect(s.url(), append(options(t), opts...)...)
		if err != nil {
			return err
		}
		b, err = bus.Open(ctx, nc, bus.Options{Instance: s.Role, Logger: s.log()})
		if err == nil && b.Sync() != bus.SyncAlways {
			err = errors.New("not up yet")
		}
		if err != nil {
			nc.Close()
		}
		return err
	})
	return b
}

func (s script) broker(ctx context.Context, t *trap) error {
	text, err := os.ReadFile("../broker/testdata/desk.yaml")
	if err != nil {
		return err
	}
	p, err := policy.Parse("desk.yaml", []byte(hurried(string(text))))
	if err != nil {
		return err
	}
	replica, err := broker.New(s.connect(ctx, t), broker.Config{Policy: p, People: deskPeople(), Lease: crashLease, AuditKey: []byte("0123456789abcdef"), Logger: s.log()})
	if err != nil {
		return err
	}
	return replica.Run(ctx)
}

// hurried is the policy with a deadline in seconds for the one question that nobody answers.
func hurried(text string) string {
	routes, format, _ := strings.Cut(text, `question.field == "format"`)
	return routes + `question.field == "format"` + strings.Replace(format, "deadline: 10m", "deadline: 2s", 1)
}

// crashLease is longer than a lost reply is waited for, so that only a killed executor is ever in doubt.
const crashLease = 10 * time.Second

// deskPeople are the people of the policy in broker/testdata.
func deskPeople() broker.Directory {
	return broker.Directory{People: []broker.Person{
		{ID: "ana", Name: "Ana", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ana", "pager": "ana"}},
		{ID: "ben", Name: "Ben", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ben"}},
		{ID: "eve", Name: "Eve", Addresses: map[string]string{"desk": "eve"}},
	}}
}

// The tasks of a crash test, by what becomes of them.
const (
	taskProceed  = "proceed"
	taskAsked    = "asked"
	taskApproval = "approval"
	taskCancel   = "cancel"
	taskLate     = "late" // its deadline passes, and the policy has a default for that
)

func crashTasks() []events.Task {
	return []events.Task{taskProceed, taskAsked, taskApproval, taskCancel, taskLate}
}

// crashCandidate is the same whoever proposes it, however often.
func crashCandidate(task events.Task) events.Candidate {
	var c events.Candidate
	switch task {
	case taskProceed:
		c = candidate(task, "docs.render", events.Arguments{})
	case taskLate:
		c = candidate(task, "docs.publish", events.Arguments{})
	case taskApproval:
		c = candidate(task, "mail.send", events.Arguments{"to": events.SecretOf("ana@example.org")})
	default:
		c = juans(task)
		slices.SortFunc(c.Candidates, func(a, b events.Alternative) int { return strings.Compare(a.Label, b.Label) })
	}
	c.ID, c.Step = "only-"+string(task), string(task)
	return c
}

// tool is the effect: one line of a file, on disk before it is said to be done.
func (s script) tool(t *trap) error {
	return t.around("effect", func() error {
		f, err := os.OpenFile(s.effects(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(s.Task + "\n")
		return errors.Join(err, f.Sync(), f.Close())
	})
}

// people are a channel: the courier's adapter takes every question, and a person answers what was reached, a wrong option
// first. The same click has the same submission, however often it is handed in.
func (s script) people(ctx context.Context, t *trap) error {
	look := make(chan struct{}, 1)
	b := s.connect(ctx, t, nats.ReconnectHandler(func(*nats.Conn) {
		select {
		case look <- struct{}{}:
		default:
		}
	}))
	desk := channels.NewDesk(b, "desk", 2*time.Second)
	courier, err := channels.NewCourier(b, []channels.Adapter{provider{"desk"}, provider{"pager"}}, channels.CourierConfig{}, s.log())
	if err != nil {
		return err
	}
	reached, err := b.Subscribe(ctx, b.Space().Wake("bot", "*", events.Reached))
	if err != nil {
		return err
	}
	look <- struct{}{}
	return together(ctx, desk.Run, courier.Run,
		func(ctx context.Context) error {
			return reached.Hear(ctx, func(bus.Message) {
				select {
				case look <- struct{}{}:
				default:
				}
			})
		},
		func(ctx context.Context) error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-look:
					for _, task := range []events.Task{taskAsked, taskApproval} {
						answerReached(ctx, desk, task)
					}
				}
			}
		})
}

// together runs parts until the context ends or one of them fails.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() {
			if err := part(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// provider takes everything at once.
type provider struct{ name events.Channel }

func (p provider) Name() events.Channel { return p.name }
func (p provider) Deliver(_ context.Context, q events.Question) (events.Receipt, error) {
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID}, nil
}

// answerReached answers the task's question, if it waits for somebody who was reached.
func answerReached(ctx context.Context, desk *channels.Desk, task events.Task) {
	var reply events.QuestionReply
	persist(ctx, func() (err error) {
		reply, err = desk.Look(ctx, events.Place{Agent: "bot", Task: task, Version: 1})
		return err
	})
	q := reply.Question
	if q == nil || reply.Kind != events.Reached {
		return
	}
	who := events.Responder{Subject: "ana", Name: "Ana", Assurance: events.Platform}
	if q.Kind == events.Approval {
		persist(ctx, func() error {
			_, err := desk.SubmitApproval(ctx, events.ApprovalAnswer{
				Agent: "bot", Task: task, Version: q.Version, Question: q.Question,
				Submission: events.SubmissionID("yes-" + q.Question), Responder: who, Verdict: events.Granted, Action: q.Content.Action,
			})
			return err
		})
		return
	}
	for _, option := range []string{"c-999", "c-207"} {
		a := answerTo(*q, "ana", option)
		a.Submission = events.SubmissionID(option + "-" + string(q.Question))
		persist(ctx, func() error { _, err := desk.Submit(ctx, a); return err })
	}
}

// persist does something again until it succeeds.
func persist(ctx context.Context, do func() error) {
	for do() != nil {
		again := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-again.C:
		}
	}
}
