package policy_test

import (
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// candidate reads a candidate from JSON; agent, task, version, step and arguments may be left out.
func candidate(t testing.TB, text string) events.Candidate {
	t.Helper()
	c := events.Candidate{Agent: "good-bot", Task: "t-1", Version: 1, Step: "s", Arguments: events.Arguments{}}
	if err := json.Unmarshal([]byte(text), &c, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func kindRule(d events.Decision) string { return string(events.KindOf(d)) + " " + d.Basis().Rule }

// TestDecide is the pipeline: which stage decides, and by which rule.
func TestDecide(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	for _, c := range []struct {
		name, candidate string
		asks            events.Asks
		want            string
	}{
		{name: "unknown_tool", candidate: `{"tool":{"name":"rm"}}`, want: "stop unknown-tool"},
		{name: "unknown_tool_of_an_untrusted_server", candidate: `{"tool":{"name":"x","server":"mcp://evil","input_schema":{"type":"object"}}}`, want: "stop unknown-tool"},
		{name: "unknown_tool_of_an_untrusted_agent", candidate: `{"agent":"bad-bot","tool":{"name":"x","server":"mcp://trusted","input_schema":{"type":"object"}}}`, want: "stop unknown-tool"},
		{name: "trusted_agent_defines_a_read", candidate: `{"tool":{"name":"x","server":"mcp://trusted","input_schema":{"type":"object"},"annotations":{"readOnlyHint":true}}}`, want: "proceed class/read"},
		{name: "trusted_agent_says_nothing", candidate: `{"tool":{"name":"x","server":"mcp://trusted","input_schema":{"type":"object"}}}`, want: "approve class/destructive"},
		{name: "untrusted_hints_do_not_loosen", candidate: `{"tool":{"name":"billing.refund","annotations":{"readOnlyHint":true,"destructiveHint":false}},"arguments":{"payment_id":"p","amount":1}}`, want: "approve class/destructive"},
		{name: "untrusted_hints_tighten", candidate: `{"tool":{"name":"crm.find","annotations":{"readOnlyHint":false,"destructiveHint":true}},"arguments":{"name":"Juan"}}`, want: "approve class/destructive"},
		{name: "schema_that_cannot_be_used", candidate: `{"tool":{"name":"x","server":"mcp://trusted","input_schema":{"type":"dict"}}}`, want: "stop invalid-schema"},
		{name: "schema_that_would_be_fetched", candidate: `{"tool":{"name":"x","server":"mcp://trusted","input_schema":{"$ref":"http://127.0.0.1/s.json"}}}`, want: "stop invalid-schema"},
		{name: "argument_the_tool_does_not_have", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-1","colour":"red"}}`, want: "stop invalid-arguments"},
		{name: "number_that_would_fill_the_memory", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":1e999999999}}`, want: "stop invalid-arguments"},
		{name: "state_contradicts", candidate: `{"tool":{"name":"orders.cancel"},"arguments":{},"state":{"order.status":"delivered"}}`, want: "reconcile order-not-pending"},
		{name: "not_the_agents_to_take", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":9000}}`, want: "escalate refund-limit"},
		{name: "not_allowed_at_all", candidate: `{"tool":{"name":"shell.run"},"arguments":{"cmd":"ls"}}`, want: "stop tool/shell.run"},
		{name: "rule_that_fails", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"amount":10}}`, want: "stop policy-error/refund-self"},
		{name: "lookup_first", candidate: `{"tool":{"name":"crm.update"},"arguments":{"phone":"1"}}`, want: "ask lookup/customer_id"},
		{name: "lookup_was_tried", candidate: `{"tool":{"name":"crm.update"},"arguments":{"phone":"1"}}`, asks: events.Asks{Lookups: []string{"customer_id"}}, want: "ask open/customer_id"},
		{name: "lookup_does_not_count_as_a_question", candidate: `{"tool":{"name":"crm.update"}}`, asks: events.Asks{Total: 9, Consecutive: 9}, want: "ask lookup/customer_id"},
		{name: "several_records_fit", candidate: `{"tool":{"name":"crm.update"},"candidates":[{"arguments":{"customer_id":"c-1"}},{"arguments":{"customer_id":"c-2"}}]}`, want: "ask open/customer_id"},
		{name: "one_record_fits_and_nobody_would_see_it", candidate: `{"tool":{"name":"crm.update"},"candidates":[{"arguments":{"customer_id":"c-1"}}]}`, want: "ask open/customer_id"},
		{name: "one_record_fits_and_comes_from_a_lookup", candidate: `{"tool":{"name":"crm.update"},"provenance":{"customer_id":{"from":"lookup"}},"candidates":[{"arguments":{"customer_id":"c-1"}}]}`, want: "proceed tool/crm.update"},
		{name: "one_record_fits_and_an_approver_sees_it", candidate: `{"tool":{"name":"orders.cancel"},"arguments":{"reason":"ordered by mistake"},"candidates":[{"arguments":{"order_id":"W1"}}]}`, want: "approve class/destructive"},
		{name: "the_record_was_inferred", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-9"},"provenance":{"customer_id":{"from":"inferred"}}}`, asks: events.Asks{Lookups: []string{"customer_id"}}, want: "ask open/customer_id"},
		{name: "the_agent_says_it_lacks_what_it_fills_in", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-9"},"missing":[{"field":"customer_id"}]}`, asks: events.Asks{Lookups: []string{"customer_id"}}, want: "ask open/customer_id"},
		{name: "the_agent_chose_among_several", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-1"},"candidates":[{"arguments":{"customer_id":"c-1"}},{"arguments":{"customer_id":"c-2"}}]}`, want: "ask open/customer_id"},
		{name: "the_person_chose_among_several", candidate: `{"tool":{"name":"crm.update"},"missing":[{"field":"customer_id"}],"arguments":{"customer_id":"c-2"},"provenance":{"customer_id":{"from":"user"}},"candidates":[{"arguments":{"customer_id":"c-1"}},{"arguments":{"customer_id":"c-2"}}]}`, want: "proceed tool/crm.update"},
		{name: "the_record_is_blank", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":" "}}`, asks: events.Asks{Lookups: []string{"customer_id"}}, want: "ask open/customer_id"},
		{name: "value_outside_the_schema", candidate: `{"tool":{"name":"orders.cancel"},"arguments":{"order_id":"W1","reason":"because"}}`, want: "ask open/reason"},
		{name: "optional_and_declared_missing", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-1"},"missing":[{"field":"phone"}]}`, want: "ask open/phone"},
		{name: "declared_missing_but_the_tool_has_no_such_argument", candidate: `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-1"},"missing":[{"field":"colour"}]}`, want: "proceed tool/crm.update"},
		{name: "read_with_several_records", candidate: `{"tool":{"name":"crm.find"},"arguments":{"name":"Juan"},"candidates":[{"arguments":{"name":"Juan P"}},{"arguments":{"name":"Juan G"}}]}`, want: "proceed class/read"},
		{name: "limit_in_a_row", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`, asks: events.Asks{Total: 2, Consecutive: 2}, want: "escalate question-limit/consecutive"},
		{name: "limit_of_the_task", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`, asks: events.Asks{Total: 4}, want: "escalate question-limit/task"},
		{name: "limit_of_the_field", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`, asks: events.Asks{Total: 1, PerField: map[string]int{"amount": 1}}, want: "escalate question-limit/field"},
		{name: "none_of_the_options_was_right", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`, asks: events.Asks{Total: 1, Declined: []string{"amount"}}, want: "escalate declined/amount"},
		{name: "nobody_is_there_to_answer", candidate: `{"attended":false,"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`, want: "escalate unattended/ask"},
		{name: "nobody_is_there_but_the_agent_can_look", candidate: `{"attended":false,"tool":{"name":"crm.update"}}`, want: "ask lookup/customer_id"},
		{name: "nobody_is_there_to_approve", candidate: `{"attended":false,"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":1}}`, want: "stop unattended/approve"},
		{name: "an_effect_nobody_allowed_yet", candidate: `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":5}}`, want: "approve class/destructive"},
		{name: "harmless_and_reversible", candidate: `{"tool":{"name":"notes.append"},"arguments":{"text":"hello"}}`, want: "proceed tool/notes.append"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := policy.Input{Candidate: candidate(t, c.candidate), Asks: c.asks}
			d := p.Decide(in)
			if got := kindRule(d); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
			b := d.Basis()
			if b.Action != policy.Assume(in.Candidate, b).Action() || b.Policy != p.Ref() || b.Reason == "" {
				t.Errorf("the basis does not say what was decided, by whom or why: %+v", b)
			}
		})
	}
}

// TestDecide_grant checks that an approval is one for exactly this action, and gives no authority.
func TestDecide_grant(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	small := candidate(t, `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":5}}`)
	other := candidate(t, `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":6}}`)
	large := candidate(t, `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p","amount":9000}}`)
	open := candidate(t, `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"}}`)
	moved := candidate(t, `{"tool":{"name":"orders.cancel"},"arguments":{"order_id":"W1","reason":"ordered by mistake"},"state":{"order.status":"delivered"}}`)
	for _, c := range []struct {
		name    string
		in      events.Candidate
		granted events.Digest
		want    string
	}{
		{"this_action", small, small.Action(), "proceed approved"},
		{"another_amount", small, other.Action(), "approve class/destructive"},
		{"no_authority", large, large.Action(), "escalate refund-limit"},
		{"no_value", open, open.Action(), "ask open/amount"},
		{"state_moved_on", moved, moved.Action(), "reconcile order-not-pending"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := kindRule(p.Decide(policy.Input{Candidate: c.in, Granted: c.granted})); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestDecide_grantWithAssumption checks that an approval that showed an assumption is one for the whole action.
func TestDecide_grantWithAssumption(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"orders.cancel"},"arguments":{"reason":"ordered by mistake"},"candidates":[{"arguments":{"order_id":"W1"}}]}`)
	asked := p.Decide(policy.Input{Candidate: c})
	want := []events.Assumption{{Field: "order_id", Value: events.SecretOf("W1"), Source: "single_candidate"}}
	if diff := cmp.Diff(want, asked.Basis().Assumptions); diff != "" {
		t.Fatal(diff)
	}
	if whole := policy.Assume(c, asked.Basis()); whole.Action() != asked.Basis().Action || whole.Action() == c.Action() {
		t.Error("the action that was decided on is not the one with the assumption among its arguments")
	}
	if got := kindRule(p.Decide(policy.Input{Candidate: c, Granted: asked.Basis().Action})); got != "proceed approved" {
		t.Errorf("granted as it was shown: %s", got)
	}
	if got := kindRule(p.Decide(policy.Input{Candidate: c, Granted: c.Action()})); got != "approve class/destructive" {
		t.Errorf("granted without the assumption: %s", got)
	}
}

// TestDecide_ask checks what a question carries.
func TestDecide_ask(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"requester":{"id":"ana"},"tool":{"name":"crm.update"},"arguments":{"phone":"1"},"missing":[{"field":"customer_id","question":"who??"}],
		"candidates":[{"arguments":{"customer_id":"c-101"},"label":"Juan Pérez, Lima"},{"arguments":{"customer_id":"c 207"},"label":"Juan Pérez, Lima"},
		{"arguments":{"customer_id":"c-311"},"label":"Juan Ruiz, Madrid","weight":2},{"arguments":{"customer_id":"c-400"}}]}`)
	got, ok := p.Decide(policy.Input{Candidate: c}).(events.Ask)
	if !ok {
		t.Fatalf("got %T", p.Decide(policy.Input{Candidate: c}))
	}
	want := []events.Field{{
		Name: "customer_id", Role: events.RoleIdentity, Prompt: "Which customer should be updated?", Changes: "effect",
		Sources: []string{"required", "declared", "candidates"},
		Options: []events.Option{
			{ID: "c-311", Label: "Juan Ruiz, Madrid", Hint: "c-311", Value: events.SecretOf("c-311")},
			{ID: "c-101", Label: "Juan Pérez, Lima (c-101)", Value: events.SecretOf("c-101")},
			{ID: "value-8e687f481e454d777803", Label: "Juan Pérez, Lima (c 207)", Value: events.SecretOf("c 207")},
			{ID: events.NoneOfThese, Label: "None of these"},
		},
	}}
	if diff := cmp.Diff(want, got.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	plan := events.Plan{
		Route: []events.RouteStep{
			{Targets: []events.RouteTarget{{Channel: "slack", Who: "requester"}}},
			{Targets: []events.RouteTarget{{Channel: "email", Who: "requester"}}, After: minutes(5)},
		},
		Deadline: minutes(30), Cap: minutes(240), Remind: minutes(15), AfterDeadline: events.DeadlineHold,
	}
	if diff := cmp.Diff(plan, got.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	traits := events.Traits{Consequence: "low", Reversible: true, Retention: minutes(720 * 60)}
	if diff := cmp.Diff(traits, got.Why.Traits); diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
}

// TestDecide_approve checks whom an approval is asked of, and that silence cannot give it.
func TestDecide_approve(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"orders.cancel"},"arguments":{"order_id":"W1","reason":"ordered by mistake"}}`)
	got, ok := p.Decide(policy.Input{Candidate: c}).(events.Approve)
	if !ok {
		t.Fatal("no approval is asked for")
	}
	if diff := cmp.Diff([]string{"requester", "role:manager"}, got.From); diff != "" {
		t.Error(diff)
	}
	if got.Plan.Cap != minutes(15) || got.Plan.AfterDeadline != events.DeadlineStop || len(got.Plan.Route[0].Targets) != 2 {
		t.Errorf("plan %+v", got.Plan)
	}
	if diff := cmp.Diff([]string{"order_id", "reason"}, got.Why.Traits.Show); diff != "" {
		t.Error(diff)
	}
}

// TestDecide_approveInSilence checks that a route on which silence means the default never makes silence an approval.
func TestDecide_approveInSilence(t *testing.T) {
	p := parse(t, `
apiVersion: clarify/v1
kind: Policy
metadata: {name: silent}
defaults: {approvers: [ana]}
tools:
  - match: act
    reversible: true
    fields: {x: {role: effect, ask: "X?", default: {value: d, documented: guide, use: after-deadline}}}
routes: [{to: [{channel: inbox, who: ana}], deadline: 1m, afterDeadline: default}]
unattended: {ask: hold, approve: hold}
`)
	d, ok := p.Decide(policy.Input{Candidate: candidate(t, `{"attended":false,"tool":{"name":"act"}}`)}).(events.Approve)
	if !ok || d.Plan.AfterDeadline != events.DeadlineStop || d.Plan.Deadline != minutes(1) {
		t.Errorf("got %+v", d)
	}
}

// TestDecide_escalate checks that an owner is asked, can hand back a value, and is not passed over by silence.
func TestDecide_escalate(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"orders.cancel"}}`)
	got, ok := p.Decide(policy.Input{Candidate: c, Asks: events.Asks{Total: 4}}).(events.Escalate)
	if !ok {
		t.Fatal("it is not escalated")
	}
	want := []events.RouteStep{{Targets: []events.RouteTarget{{Channel: "inbox", Who: "owner"}}}}
	if diff := cmp.Diff(want, got.Plan.Route); diff != "" {
		t.Error(diff)
	}
	if got.To != "role:desk" || len(got.Fields) != 2 || got.Plan.AfterDeadline != events.DeadlineHold {
		t.Errorf("to %s, %d fields, after the deadline %s", got.To, len(got.Fields), got.Plan.AfterDeadline)
	}
}

// TestDecide_assumptions checks that rules also judge what the policy itself supplies.
func TestDecide_assumptions(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"billing.refund"},"arguments":{"payment_id":"p"},"candidates":[{"arguments":{"amount":9000}}]}`)
	if got := kindRule(p.Decide(policy.Input{Candidate: c})); got != "escalate refund-limit" {
		t.Errorf("got %s", got)
	}
}

// TestDecide_afterDeadline checks that silence means the documented default only once it is overdue.
func TestDecide_afterDeadline(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"docs.render"},"arguments":{"page":"intro"}}`)
	ask, ok := p.Decide(policy.Input{Candidate: c}).(events.Ask)
	if !ok || ask.Plan.AfterDeadline != events.DeadlineDefault || len(ask.Fields[0].Options) != 2 || ask.Fields[0].FreeText != nil {
		t.Fatalf("got %+v", ask)
	}
	d := p.Decide(policy.Input{Candidate: c, Overdue: []string{"format"}})
	want := []events.Assumption{{Field: "format", Value: events.SecretOf("markdown"), Source: "after_deadline", Documented: "style guide"}}
	if diff := cmp.Diff(want, d.Basis().Assumptions); diff != "" || events.KindOf(d) != events.KindProceed {
		t.Errorf("%s %s", kindRule(d), diff)
	}
	other := p.Decide(policy.Input{Candidate: candidate(t, `{"tool":{"name":"docs.render"},"arguments":{"format":"html"}}`), Overdue: []string{"page", "format"}})
	if a, ok := other.(events.Ask); !ok || a.Plan.AfterDeadline != events.DeadlineStop {
		t.Errorf("a field without a default waits for one: %+v", other)
	}
}

// TestDecide_secret checks that a secret value is nowhere in the question about it.
func TestDecide_secret(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"vault.unlock"},"candidates":[{"arguments":{"pin":"12345678901234"},"label":"pin 12345678901234"},{"arguments":{"pin":"99999999999999"}}]}`)
	ask, ok := p.Decide(policy.Input{Candidate: c}).(events.Ask)
	if !ok || !ask.Fields[0].Secret {
		t.Fatalf("got %+v", ask)
	}
	for i, o := range ask.Fields[0].Options[:2] {
		if o.ID != []string{"option-1", "option-2"}[i] || o.Label != []string{"••••1234", "••••9999"}[i] {
			t.Errorf("option %+v", o)
		}
	}
	if diff := cmp.Diff([]string{"pin"}, ask.Why.Traits.Redact); diff != "" {
		t.Error(diff)
	}
}

func minutes(n int) events.Duration { return events.Duration(time.Duration(n) * time.Minute) }
