package policy_test

import (
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// shop is a policy with one tool whose fields a test chooses.
func shop(t *testing.T, class, fields, questions string) *policy.Policy {
	t.Helper()
	return parse(t, strings.NewReplacer("CLASS", class, "FIELDS", fields, "QUESTIONS", questions).Replace(`
apiVersion: clarify/v1
kind: Policy
metadata: {name: shop}
defaults: {approvers: [ana]}
trust: ["mcp://shop"]
tools:
  - match: act
    class: {CLASS}
    fields: {FIELDS}
questions: {QUESTIONS}
routes: [{to: [{channel: inbox, who: anyone}]}]
unattended: {ask: hold, approve: hold}
`))
}

const (
	careful = "consequence: high, reversible: false, approval: required"
	light   = "consequence: low, reversible: true, approval: none"
)

func asked(t *testing.T, p *policy.Policy, text string) events.Ask {
	t.Helper()
	d := p.Decide(policy.Input{Candidate: candidate(t, text)})
	ask, ok := d.(events.Ask)
	if !ok {
		t.Fatalf("got %s, want a question", kindRule(d))
	}
	return ask
}

const town = `{"tool":{"name":"act","server":"mcp://shop"},"candidates":[
	{"arguments":{"id":"1","town":"Madrid"},"weight":0.30},{"arguments":{"id":"2","town":"Lima"},"weight":0.25},
	{"arguments":{"id":"3","town":"Quito"},"weight":0.20},{"arguments":{"id":"4","town":"Madrid"},"weight":0.15},
	{"arguments":{"id":"5","town":"Lima"},"weight":0.10}]}`

const orders = `{"tool":{"name":"act","server":"mcp://shop"},"candidates":[
	{"arguments":{"order":"W1","reason":"not needed"},"weight":0.45},{"arguments":{"order":"W1","reason":"mistake"},"weight":0.05},
	{"arguments":{"order":"W2","reason":"not needed"},"weight":0.27},{"arguments":{"order":"W2","reason":"mistake"},"weight":0.03},
	{"arguments":{"order":"W3","reason":"not needed"},"weight":0.18},{"arguments":{"order":"W3","reason":"mistake"},"weight":0.02}]}`

// TestSelection is which field is asked first.
func TestSelection(t *testing.T) {
	ids := "id: {role: identity, ask: Who?}, town: {role: plain, ask: Where?}"
	for _, c := range []struct {
		name, class, fields, questions, candidate, want string
	}{
		{"the_id_when_its_options_fit", careful, ids, "maxOptions: 5, stopCost: 1000", town, "open/id"},
		{"the_town_when_the_ids_are_too_many", careful, ids, "maxOptions: 3, stopCost: 1000", town, "open/town"},
		{"the_order_before_the_reason", careful, "order: {role: identity, ask: Which?}, reason: {role: effect, ask: Why?, severity: 2}", "stopCost: 1000", orders, "open/order"},
		{"an_identity_however_likely_one_is", careful, "id: {role: identity, ask: Who?}", "", `{"tool":{"name":"act","server":"mcp://shop"},
			"candidates":[{"arguments":{"id":"1"},"weight":0.99},{"arguments":{"id":"2"},"weight":0.005},{"arguments":{"id":"3"},"weight":0.005}]}`, "open/id"},
		{
			"an_identity_before_an_effect", light, "a: {role: effect, ask: A?}, z: {role: identity, ask: Z?}", "",
			`{"tool":{"name":"act"},"missing":[{"field":"a"},{"field":"z"}]}`, "open/z",
		},
		{"the_schemas_order_among_equals", light, "a: {role: effect, ask: A?}, b: {role: effect, ask: B?}", "", `{"tool":{"name":"act",
			"input_schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}},"required":["a","b"]}}}`, "open/b"},
		{"the_shorter_list_among_equals", careful, "a: {role: effect, ask: A?}, b: {role: effect, ask: B?}", "", `{"tool":{"name":"act",
			"input_schema":{"type":"object","properties":{"a":{"enum":[1,2,3,4]},"b":{"enum":[1,2]}},"required":["a","b"]}}}`, "open/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := asked(t, shop(t, c.class, c.fields, c.questions), c.candidate).Why.Rule; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestSelection_afterAnAnswer checks that what a person said rules alternatives out, so that the rest need not be asked.
func TestSelection_afterAnAnswer(t *testing.T) {
	p := shop(t, careful, "id: {role: identity, ask: Who?}, town: {role: plain, ask: Where?}", "maxOptions: 3, stopCost: 1000")
	inLima := strings.Replace(town, `"candidates"`, `"arguments":{"town":"Lima"},"provenance":{"town":{"from":"user"}},"candidates"`, 1)
	ask := asked(t, p, inLima)
	if ask.Why.Rule != "open/id" || len(ask.Fields[0].Options) != 3 || ask.Fields[0].Options[0].ID != "2" {
		t.Errorf("asks %s with %+v", ask.Why.Rule, ask.Fields[0].Options)
	}
	known := strings.Replace(town, `"candidates"`, `"arguments":{"id":"5"},"provenance":{"id":{"from":"user"}},"candidates"`, 1)
	d := p.Decide(policy.Input{Candidate: candidate(t, known)})
	if _, approve := d.(events.Approve); !approve || len(d.Basis().Assumptions) != 1 || d.Basis().Assumptions[0].Value.RevealString() != "Lima" {
		t.Errorf("got %s %+v", kindRule(d), d.Basis().Assumptions)
	}
}

// TestSelection_sameEffect checks that alternatives that do the same are no reason to ask.
func TestSelection_sameEffect(t *testing.T) {
	p := shop(t, light, "id: {role: identity, ask: Who?}, note: {role: plain}", "")
	d := p.Decide(policy.Input{Candidate: candidate(t, `{"tool":{"name":"act"},"arguments":{"id":"1"},"candidates":[
		{"arguments":{"id":"1","note":"a"}},{"arguments":{"id":"1","note":"b"},"weight":2}]}`)})
	if got := d.Basis().Assumptions; kindRule(d) != "proceed tool/act" || len(got) != 1 || got[0].Source != "same_effect" || got[0].Value.RevealString() != "b" {
		t.Errorf("got %s %+v", kindRule(d), got)
	}
}

// TestSelection_weights checks that an agent nobody trusts cannot make a record likelier, only list it first.
func TestSelection_weights(t *testing.T) {
	fields := "a: {role: effect, ask: A?}, b: {role: effect, ask: B?, severity: 99}"
	text := `{"tool":{"name":"act","server":"SERVER"},"candidates":[
		{"arguments":{"a":"1","b":"1"},"weight":90},{"arguments":{"a":"1","b":"2"},"weight":50},{"arguments":{"a":"2","b":"1"},"weight":1}]}`
	p := shop(t, careful, fields, "stopCost: 1000")
	for server, want := range map[string]string{"mcp://shop": "open/b", "mcp://other": "open/a"} {
		ask := asked(t, p, strings.Replace(text, "SERVER", server, 1))
		if ask.Why.Rule != want || ask.Fields[0].Options[0].ID != "1" {
			t.Errorf("%s: asks %s, first option %s", server, ask.Why.Rule, ask.Fields[0].Options[0].ID)
		}
	}
}

// TestBatch checks that only independent fields are asked together, and only where the policy says so.
func TestBatch(t *testing.T) {
	fields := "a: {role: effect, ask: A?}, b: {role: effect, ask: B?}, c: {role: effect, ask: C?}"
	missing := `{"tool":{"name":"act"},"missing":[{"field":"a"},{"field":"b"},{"field":"c"}]}`
	if n := len(asked(t, shop(t, light, fields, ""), missing).Fields); n != 1 {
		t.Errorf("%d fields in a question by default", n)
	}
	if n := len(asked(t, shop(t, light, fields, "batch: 2"), missing).Fields); n != 2 {
		t.Errorf("%d fields in a question, want 2", n)
	}
	linked := `{"tool":{"name":"act"},"candidates":[{"arguments":{"a":"1","b":"1"}},{"arguments":{"a":"2","b":"2"}}]}`
	if n := len(asked(t, shop(t, careful, fields, "batch: 3"), linked).Fields); n != 1 {
		t.Errorf("%d fields that depend on each other in one question", n)
	}
}

// TestField checks how a field may be answered.
func TestField(t *testing.T) {
	schema := `"input_schema":{"$defs":{"size":{"type":"integer","minimum":1}},"type":"object","required":["x"],"properties":{"x":SCHEMA}}`
	for _, c := range []struct {
		name, field, schema string
		options             int
		typed               string // the schema of a typed answer; "-" when nothing may be typed
	}{
		{"text", "role: effect", `{"type":"string","maxLength":5}`, 0, `{"type":"string","maxLength":5}`},
		{"short_list", "role: effect", `{"enum":["a","b"]}`, 2, "-"},
		{"truth", "role: effect", `{"type":"boolean"}`, 2, "-"},
		{"long_list_can_also_be_typed", "role: effect", `{"enum":[1,2,3,4,5,6]}`, 6, `{"enum":[1,2,3,4,5,6]}`},
		{"list_and_typing", "role: effect, freeText: always", `{"enum":["a","b"]}`, 2, `{"enum":["a","b"]}`},
		{"definition_comes_along", "role: effect", `{"$ref":"#/$defs/size"}`, 0, `{"$defs":{"size":{"type":"integer","minimum":1}},"$ref":"#/$defs/size"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shop(t, light, "x: {"+c.field+", ask: X?}", "")
			f := asked(t, p, `{"tool":{"name":"act",`+strings.Replace(schema, "SCHEMA", c.schema, 1)+`}}`).Fields[0]
			if len(f.Options) != c.options {
				t.Errorf("options %+v, want %d", f.Options, c.options)
			}
			if (f.FreeText == nil) != (c.typed == "-") {
				t.Fatalf("free text %+v", f.FreeText)
			}
			if f.FreeText != nil {
				got, want := events.NewSecret(f.FreeText.Schema), events.NewSecret(events.Raw(c.typed))
				if !got.Equal(want) {
					t.Errorf("schema %s, want %s", f.FreeText.Schema, c.typed)
				}
			}
		})
	}
}

// TestField_noWayToAnswer checks that a question nobody could answer is not asked.
func TestField_noWayToAnswer(t *testing.T) {
	p := shop(t, light, "x: {role: effect, ask: X?, freeText: never}", "")
	d := p.Decide(policy.Input{Candidate: candidate(t, `{"tool":{"name":"act"},"missing":[{"field":"x"}]}`)})
	if got := kindRule(d); got != "stop unanswerable/x" {
		t.Errorf("got %s", got)
	}
}

// TestNotWorthAsking checks that a question that costs more than its answer is worth is not asked twice, and never makes
// the action run.
func TestNotWorthAsking(t *testing.T) {
	p := shop(t, light, "x: {role: effect, ask: X?}", "maxPerField: 5")
	c := candidate(t, `{"tool":{"name":"act"},"missing":[{"field":"x"}]}`)
	if got := kindRule(p.Decide(policy.Input{Candidate: c})); got != "ask open/x" {
		t.Errorf("first: %s", got)
	}
	in := policy.Input{Candidate: c, Asks: events.Asks{Total: 1, PerField: map[string]int{"x": 1}}}
	if got := kindRule(p.Decide(in)); got != "stop not-worth-asking/x" {
		t.Errorf("again: %s", got)
	}
}

// TestDefault checks when a documented default stands in for a question: never for what cannot be undone, never for a
// record or a recipient, whatever a file managed to say.
func TestDefault(t *testing.T) {
	const entry = "x: {role: ROLE, ask: X?, default: {value: d, documented: guide}}"
	read := `{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}`
	p := parse(t, `
apiVersion: clarify/v1
kind: Policy
metadata: {name: shop}
defaults: {approvers: [ana]}
trust: ["*"]
classes:
  - {name: destructive, when: tool.destructive, consequence: low, approval: none}
  - {name: undoable, consequence: low, reversible: true, approval: none}
tools:
  - {match: act, fields: {`+strings.Replace(entry, "ROLE", "effect", 1)+`}}
routes: [{to: [{channel: inbox, who: anyone}]}]
unattended: {ask: hold, approve: hold}
`)
	for _, c := range []struct{ name, annotations, provenance, want string }{
		{"undoable", read, `{}`, "proceed class/undoable"},
		{"instead_of_what_the_model_made_up", read, `{"x":{"from":"inferred"}}`, "proceed class/undoable"},
		{"destructive", `{"destructiveHint":true}`, `{}`, "ask open/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := `{}`
			if c.provenance != `{}` {
				args = `{"x":"made up"}`
			}
			d := p.Decide(policy.Input{Candidate: candidate(t, `{"tool":{"name":"act","annotations":`+c.annotations+`},"missing":[{"field":"x"}],
				"arguments":`+args+`,"provenance":`+c.provenance+`}`)})
			if got := kindRule(d); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, err := policy.Parse("p", []byte(strings.Replace(entry, "ROLE", "identity", 1))); err == nil {
		t.Error("a default of a record is taken")
	}
}
