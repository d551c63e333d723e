package app_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// asked routes every question to a channel that runs outside the broker's process.
const asked = `
apiVersion: clarify/v1
kind: Policy
metadata: {name: roles}
trust: ["*"]
classes:
  - {name: read, when: tool.readOnly && !tool.destructive, consequence: low, reversible: true, approval: none}
routes:
  - {to: [{channel: sms, who: anyone}], deadline: 10m, cap: 1h}
unattended: {ask: stop, approve: stop}
`

// account is a server whose users have the roles that Roles lists, each with the password "pw".
type account struct {
	server *embedded.Server
	roles  []app.Role
}

func startAccount(t *testing.T) account {
	t.Helper()
	roles, err := app.Roles(events.DefaultSpace, app.Who{Agents: []string{"crm-bot"}, Channels: []string{"sms"}})
	if err != nil {
		t.Fatal(err)
	}
	var users []*server.User
	for _, r := range roles {
		p := &server.Permissions{Publish: &server.SubjectPermission{Allow: r.Publish}, Subscribe: &server.SubjectPermission{Allow: r.Subscribe}}
		if r.Responds {
			p.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
		}
		users = append(users, &server.User{Username: r.Name, Password: "pw", Permissions: p})
	}
	s, err := embedded.Start(t.Context(), embedded.Options{Host: "127.0.0.1", Configure: func(o *server.Options) { o.Users = users }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.Shutdown()) })
	return account{s, roles}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func (a account) dial(t *testing.T, role, inbox string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(a.server.URL(), nats.UserInfo(role, "pw"), nats.CustomInboxPrefix(inbox),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func (a account) connect(t *testing.T, role, inbox string) *bus.Bus {
	t.Helper()
	nc := a.dial(t, role, inbox)
	b, err := bus.Open(t.Context(), nc, bus.Options{AllowLazySync: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startBroker starts a broker on the server as on any shared one.
func (a account) startBroker(t *testing.T) {
	t.Helper()
	check(t, a.connect(t, "broker", "_INBOX").Apply(t.Context()))
	key := filepath.Join(t.TempDir(), "audit.key")
	check(t, os.WriteFile(key, []byte("sixteen bytes or more"), 0o600))
	p, err := policy.Parse("roles", []byte(asked))
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://broker:pw@" + a.server.URL()[len("nats://"):]
	s, err := app.Start(t.Context(), app.Config{NATS: app.NATS{URL: url}, AuditKeyFile: key, AllowLazySync: true}, p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.Stop()) })
}

// textMessage is a channel in a process of its own: it answers what it is asked.
type textMessage struct {
	desk *channels.Desk
	told chan events.Verdict
}

func (m textMessage) Name() events.Channel { return "sms" }

func (m textMessage) Deliver(ctx context.Context, q events.Question) (events.Receipt, error) {
	if q.Phase == events.PhaseAsk {
		v, err := m.desk.Submit(ctx, events.Answer{
			Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question,
			Submission: events.NewSubmissionID(), Responder: events.Responder{Subject: "+34 600", Assurance: events.Platform},
			Values: []events.Given{{Field: "city", Value: events.SecretOf("Quito")}},
		})
		if err != nil {
			return events.Receipt{}, err
		}
		m.told <- v
	}
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID}, nil
}

// TestRoles takes one question from proposal to effect with every part held to its own role.
func TestRoles(t *testing.T) {
	t.Parallel()
	a := startAccount(t)
	a.startBroker(t)
	sms := a.connect(t, "channel-sms", "_INBOX_sms")
	m := textMessage{channels.NewDesk(sms, "sms", 0), make(chan events.Verdict, 1)}
	courier, err := channels.NewCourier(sms, []channels.Adapter{m}, channels.CourierConfig{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	background(t, courier.Run)
	background(t, m.desk.Run)

	g, err := gate.New(a.connect(t, "agent-crm-bot", "_INBOX_crm-bot"), "crm-bot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	runs := 0
	out, err := g.Do(t.Context(), weather("t-1"), func(_ context.Context, grant events.Grant) (any, error) {
		runs++
		return grant.Arguments["city"], nil
	})
	if err != nil || runs != 1 || out.Result.RevealString() != "Quito" {
		t.Errorf("Do: %d runs, %v", runs, err)
	}
	if v := <-m.told; !v.Accepted {
		t.Errorf("verdict: %+v", v)
	}
	a.operates(t)
	a.audits(t)
}

func weather(task events.Task) events.Candidate {
	yes, no := true, false
	return events.Candidate{Task: task, Version: 1, Step: "look", Arguments: events.Arguments{}, Tool: events.Tool{
		Name: "weather", Server: "mcp://weather",
		Annotations: &events.Annotations{ReadOnly: &yes, Destructive: &no},
		InputSchema: events.Raw(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}}
}

func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func (a account) operates(t *testing.T) {
	t.Helper()
	b := a.connect(t, "operator", "_INBOX_operator")
	var list events.ListReply
	check(t, b.Ask(t.Context(), b.Space().Operator(events.VerbList), events.ListRequest{Ended: true}, &list))
	var reply events.OperatorReply
	check(t, b.Ask(t.Context(), b.Space().OperatorTask(events.VerbState, "crm-bot", "t-1"), events.OperatorRequest{}, &reply))
	if reply.View == nil || reply.View.Kind != events.Done {
		t.Errorf("the operator sees %+v", reply)
	}
}

func (a account) audits(t *testing.T) {
	t.Helper()
	b := a.connect(t, "auditor", "_INBOX_auditor")
	var kinds []events.Kind
	enough := errors.New("enough")
	err := b.Tail(t.Context(), bus.Audit, 1, nil, func(_ context.Context, m bus.Message) error {
		r, isRecord := m.Envelope.Data.(events.Record)
		if !isRecord || r.Transition == nil {
			t.Errorf("audit message %d: %v", m.Seq, m.Problem)
			return enough
		}
		kinds = append(kinds, r.Transition.Kind)
		if r.Transition.Kind == events.Done {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Contains(kinds, events.Released) {
		t.Errorf("the auditor reads %v: %v", kinds, err)
	}
	if _, err := b.Publish(t.Context(), b.Space().Candidate("crm-bot", "t-2"), events.Envelope{Source: "/x", Data: events.Candidate{}}); err == nil {
		t.Error("an auditor proposed something")
	}
}

// TestRoles_forbid holds each role to what only others may do.
func TestRoles_forbid(t *testing.T) {
	t.Parallel()
	a := startAccount(t)
	s := events.DefaultSpace
	place := events.Place{Channel: "sms", Agent: "crm-bot", Task: "t-1", Version: 1}
	for _, c := range []struct{ role, inbox, subject string }{
		{"agent-crm-bot", "_INBOX_crm-bot", s.Task("crm-bot", "t-1", events.Released)},
		{"agent-crm-bot", "_INBOX_crm-bot", s.Candidate("other", "t-1")},
		{"agent-crm-bot", "_INBOX_crm-bot", s.Answer(place)},
		{"agent-crm-bot", "_INBOX_crm-bot", s.Operator(events.VerbFreeze)},
		{"channel-sms", "_INBOX_sms", s.Task("crm-bot", "t-1", events.Released)},
		{"channel-sms", "_INBOX_sms", s.Candidate("crm-bot", "t-1")},
		{"channel-sms", "_INBOX_sms", s.Claim("crm-bot", "t-1")},
		{"operator", "_INBOX_operator", s.Task("crm-bot", "t-1", events.Released)},
		{"operator", "_INBOX_operator", s.Claim("crm-bot", "t-1")},
		{"operator", "_INBOX_operator", s.Answer(place)},
		{"auditor", "_INBOX_auditor", s.Operator(events.VerbCancel)},
		{"auditor", "_INBOX_auditor", s.Audit("crm-bot", "t-1")},
	} {
		b := a.connect(t, c.role, c.inbox)
		if err := b.Ask(t.Context(), c.subject, nil, &struct{}{}); !errors.Is(err, bus.ErrDenied) {
			t.Errorf("%s on %s: %v, want denied", c.role, c.subject, err)
		}
	}
	for _, c := range []struct{ role, inbox, subject string }{
		{"agent-crm-bot", "_INBOX_crm-bot", s.Wake("other", "*", "*")},
		{"agent-crm-bot", "_INBOX_crm-bot", "_INBOX.>"},
		{"channel-sms", "_INBOX_sms", s.Verdicts("slack")},
		{"operator", "_INBOX_operator", "_INBOX.>"},
		{"auditor", "_INBOX_auditor", s.TaskAll("crm-bot", "*")},
	} {
		nc := a.dial(t, c.role, c.inbox)
		if _, err := nc.SubscribeSync(c.subject); err != nil {
			t.Fatal(err)
		}
		check(t, nc.Flush())
		if err := nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s hears %s: %v, want denied", c.role, c.subject, err)
		}
	}
}
