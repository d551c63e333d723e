package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/google/go-cmp/cmp"
)

// row is one input of the function that every decision starts from.
type row struct {
	missing, def, reversible, low, approval bool
}

func (r row) String() string {
	name := func(b bool, yes, no string) string {
		if b {
			return yes
		}
		return no
	}
	return strings.Join([]string{
		name(r.missing, "missing", "known"), name(r.def, "default", "no_default"), name(r.reversible, "reversible", "irreversible"),
		name(r.low, "low", "high"), name(r.approval, "approval", "no_approval"),
	}, "-")
}

func (r row) policy(t *testing.T) *policy.Policy {
	t.Helper()
	consequence, approval, def := "high", "none", ""
	if r.low {
		consequence = "low"
	}
	if r.approval {
		approval = "required"
	}
	if r.def && r.reversible { // a default for a tool that is not reversible is refused when the file is read
		def = ", default: {value: d, documented: guide}"
	}
	return parse(t, fmt.Sprintf(`
apiVersion: clarify/v1
kind: Policy
metadata: {name: row}
defaults: {approvers: [ana]}
tools:
  - match: tool
    class: {consequence: %s, reversible: %t, approval: %s}
    fields:
      x: {role: effect, ask: "Which x?"%s}
routes: [{to: [{channel: inbox, who: anyone}]}]
unattended: {ask: hold, approve: hold}
`, consequence, r.reversible, approval, def))
}

// want is the decision, and whether it must rest on an assumption.
func (r row) want() (events.DecisionKind, bool) {
	assumes := r.missing && r.def && r.reversible
	switch {
	case r.missing && !assumes:
		return events.KindAsk, false
	case r.approval:
		return events.KindApprove, assumes
	case r.low && r.reversible:
		return events.KindProceed, assumes
	}
	return events.KindStop, assumes
}

// TestTable is the whole of {missing} × {default} × {reversible} × {consequence} × {approval}.
func TestTable(t *testing.T) {
	kinds := map[events.DecisionKind]int{}
	for i := range 32 {
		r := row{i&16 != 0, i&8 != 0, i&4 != 0, i&2 != 0, i&1 != 0}
		t.Run(r.String(), func(t *testing.T) {
			text := `{"tool":{"name":"tool","input_schema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}},"arguments":{"x":"v"}}`
			if r.missing {
				text = strings.Replace(text, `"arguments":{"x":"v"}`, `"arguments":{}`, 1)
			}
			p, c := r.policy(t), candidate(t, text)
			d := p.Decide(policy.Input{Candidate: c})
			kind, assumes := r.want()
			kinds[kind]++
			if got := events.KindOf(d); got != kind {
				t.Fatalf("got %s (%s), want %s", got, d.Basis().Rule, kind)
			}
			if got := len(d.Basis().Assumptions) == 1; got != assumes {
				t.Errorf("assumptions %+v, want one: %t", d.Basis().Assumptions, assumes)
			}
			if kind == events.KindApprove {
				again := p.Decide(policy.Input{Candidate: c, Granted: d.Basis().Action})
				if events.KindOf(again) != events.KindProceed || len(again.Basis().Assumptions) != len(d.Basis().Assumptions) {
					t.Errorf("once approved: %s %+v", kindRule(again), again.Basis().Assumptions)
				}
			}
		})
	}
	want := map[events.DecisionKind]int{events.KindAsk: 12, events.KindApprove: 10, events.KindStop: 7, events.KindProceed: 3}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

// TestMatrix is the product's promise in five lines, as far as a decision shows it: no line that needs a person may run.
func TestMatrix(t *testing.T) {
	p := parse(t, string(policy.DemoText()))
	for _, c := range []struct {
		name, candidate, want, assumed string
	}{
		{"identifier_missing_and_several_candidates", `{"tool":{"name":"crm.update_record"},"arguments":{"phone":"1"},
			"candidates":[{"arguments":{"customer_id":"c-1"}},{"arguments":{"customer_id":"c-2"}}]}`, "ask open/customer_id", ""},
		{"reversible_preference_with_a_documented_default", `{"tool":{"name":"docs.render","input_schema":
			{"type":"object","properties":{"format":{"enum":["markdown","html"]}},"required":["format"]}}}`, "proceed tool/docs.render", "format"},
		{"external_effect_not_yet_authorised", `{"tool":{"name":"mail.send"},"arguments":{"to":"ana@example.com","body":"hola"}}`, "approve tool/mail.send", ""},
		{"stored_state_contradicts", `{"tool":{"name":"crm.update_record"},"state":{"record.status":"closed"}}`, "reconcile record-closed", ""},
		{"incomplete_name_on_a_read", `{"tool":{"name":"crm.find","annotations":{"readOnlyHint":true},"input_schema":{"type":"object","required":["name"]}},
			"arguments":{"name":"Juan"}}`, "proceed class/read", ""},
		{"the_same_name_before_a_write", `{"tool":{"name":"crm.update_record"},"arguments":{"name":"Juan","phone":"1"}}`, "ask open/customer_id", ""},
		{"recipient_unknown", `{"tool":{"name":"mail.send"},"arguments":{"body":"hola"}}`, "ask open/to", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := p.Decide(policy.Input{Candidate: candidate(t, c.candidate)})
			if got := kindRule(d); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			for _, a := range d.Basis().Assumptions {
				if a.Field != c.assumed || a.Documented == "" {
					t.Errorf("assumed %+v", a)
				}
			}
		})
	}
}

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
