package gate_test

import (
	"errors"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// agentOnly are all the rights an agent's credential needs.
func agentOnly() *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			"clarify.candidate.crm-bot.*", "clarify.cancel.crm-bot.*", "clarify.state.agent.crm-bot.*", "clarify.claim.crm-bot.*",
			"clarify.effect.crm-bot.*", "$JS.API.CONSUMER.INFO.CLARIFY_TASKS.pool-crm-bot",
			"$JS.API.CONSUMER.MSG.NEXT.CLARIFY_TASKS.pool-crm-bot", "$JS.ACK.CLARIFY_TASKS.pool-crm-bot.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{"clarify.wake.crm-bot.*.*", "_INBOX_crm-bot.>"}},
	}
}

func TestConnect_needs_no_rights_but_its_own(t *testing.T) {
	s := bustest.Server(t, embedded.Options{Host: "127.0.0.1", Configure: func(o *server.Options) {
		o.Users = []*server.User{{Username: "broker", Password: "b"}, {Username: "crm-bot", Password: "a", Permissions: agentOnly()}}
	}})
	b := bustest.Open(t, s, bus.Options{}, nats.UserInfo("broker", "b"))
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	script(t, b, always(events.Released))
	connect := func(agent string) *gate.Gate {
		g, err := gate.Connect(t.Context(), s.URL(), gate.WithAgent(agent), gate.WithNATS(nats.UserInfo("crm-bot", "a"), nats.CustomInboxPrefix("_INBOX_crm-bot")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}

	g := connect("crm-bot")
	var tool counted
	if _, err := g.Do(t.Context(), updateRecord(), tool.run); err != nil || tool.runs.Load() != 1 {
		t.Errorf("Do: %d runs, %v", tool.runs.Load(), err)
	}
	served := updateRecord()
	served.Task = "t-43"
	ticket, err := g.Submit(t.Context(), served)
	if err != nil {
		t.Fatal(err)
	}
	serving(t, g, map[string]gate.Handler{"crm.update_record": {Run: tool.run}})
	if _, err := g.Result(t.Context(), ticket); err != nil || tool.runs.Load() != 2 {
		t.Errorf("Serve: %d runs, %v", tool.runs.Load(), err)
	}

	if _, err := connect("other-bot").Submit(t.Context(), updateRecord()); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("another agent's subject: %v", err)
	}
}

func TestConnect_names_what_is_missing(t *testing.T) {
	if _, ok := func() (*events.Invalid, bool) {
		_, err := gate.Connect(t.Context(), "nats://127.0.0.1:1")
		return errors.AsType[*events.Invalid](err)
	}(); !ok {
		t.Error("no agent was needed")
	}
}
