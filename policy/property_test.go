package policy_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// marker is in every value that is generated, so that a value that leaks into a text is seen.
const marker = "zq7"

// encoded is a decision's bytes, values included.
func encoded(t interface{ Fatal(...any) }, d events.Decision) []byte {
	raw, err := json.Marshal(events.Decided{Decision: d}, json.WithMarshalers(json.MarshalToFunc(
		func(enc *jsontext.Encoder, s events.Secret) error { return enc.WriteValue(s.Reveal()) })))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// inputs generates what agents could send about the tools of a policy, and much that they should not.
func inputs() *rapid.Generator[policy.Input] {
	tools := rapid.SampledFrom([]string{"crm.find", "crm.update", "orders.cancel", "docs.render", "billing.refund", "vault.unlock", "notes.append", "shell.run", "rm"})
	fields := rapid.SampledFrom([]string{"customer_id", "phone", "city", "order_id", "reason", "page", "format", "payment_id", "amount", "pin", "name", "to"})
	values := rapid.Custom(func(t *rapid.T) events.Secret {
		return events.NewSecret(events.Raw(rapid.SampledFrom([]string{
			`"` + marker + `1"`, `"` + marker + `2"`, `"` + marker + ` 3"`, `""`, `null`, `1`, `9000`, `1.50`, `"html"`, `"no longer needed"`, `["` + marker + `"]`,
		}).Draw(t, "value")))
	})
	args := rapid.MapOfN(fields, values, 0, 4)
	return rapid.Custom(func(t *rapid.T) policy.Input {
		c := events.Candidate{Agent: "good-bot", Task: "t", Version: 1, Step: "s"}
		c.Tool = events.Tool{Name: tools.Draw(t, "tool"), Server: rapid.SampledFrom([]string{"", "mcp://trusted", "mcp://evil"}).Draw(t, "server")}
		if rapid.Bool().Draw(t, "defines") {
			c.Tool.InputSchema = events.Raw(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
		}
		hint := rapid.SampledFrom([]*bool{nil, new(false), new(true)})
		c.Tool.Annotations = &events.Annotations{ReadOnly: hint.Draw(t, "reads"), Destructive: hint.Draw(t, "destroys"), OpenWorld: hint.Draw(t, "open")}
		c.Arguments = args.Draw(t, "arguments")
		c.Provenance = rapid.MapOfN(fields, rapid.Map(rapid.SampledFrom([]events.Origin{events.FromUser, events.FromLookup, events.FromDefault, events.FromInferred}),
			func(o events.Origin) events.Provenance { return events.Provenance{From: o} }), 0, 3).Draw(t, "provenance")
		for _, f := range rapid.SliceOfN(fields, 0, 2).Draw(t, "missing") {
			c.Missing = append(c.Missing, events.Missing{Field: f, Question: marker})
		}
		for _, a := range rapid.SliceOfN(rapid.MapOfN(fields, values, 1, 3), 0, 4).Draw(t, "candidates") {
			c.Candidates = append(c.Candidates, events.Alternative{Arguments: a, Label: marker, Weight: rapid.Float64Range(0, 9).Draw(t, "weight")})
		}
		if rapid.Bool().Draw(t, "has state") {
			c.State = map[string]events.Secret{"order.status": events.SecretOf(rapid.SampledFrom([]string{"pending", marker}).Draw(t, "status"))}
		}
		c.Attended = hint.Draw(t, "attended")
		in := policy.Input{Candidate: c, Overdue: rapid.SliceOfN(fields, 0, 2).Draw(t, "overdue")}
		in.Asks = events.Asks{Total: rapid.IntRange(0, 5).Draw(t, "total"), Lookups: rapid.SliceOfN(fields, 0, 2).Draw(t, "lookups")}
		if rapid.Bool().Draw(t, "granted") {
			in.Granted = c.Action()
		}
		return in
	})
}

// TestDecide_properties holds for every input there is.
func TestDecide_properties(t *testing.T) {
	p, again := parseFile(t, "testdata/office.yaml"), parseFile(t, "testdata/office.yaml")
	rapid.Check(t, func(t *rapid.T) {
		in := inputs().Draw(t, "input")
		before := in.Candidate.Content()
		d := p.Decide(in)
		if first := encoded(t, d); !bytes.Equal(first, encoded(t, p.Decide(in))) || !bytes.Equal(first, encoded(t, again.Decide(in))) {
			t.Fatalf("the same input is decided differently:\n%s\n%s", first, encoded(t, again.Decide(in)))
		}
		if in.Candidate.Content() != before {
			t.Fatal("deciding changed the candidate")
		}
		checkDecision(t, in, d)
	})
}

// checkDecision holds what must be true of any decision about any input under testdata/office.yaml.
func checkDecision(t interface{ Fatalf(string, ...any) }, in policy.Input, d events.Decision) {
	b := d.Basis()
	whole := policy.Assume(in.Candidate, b)
	if b.Rule == "" || b.Reason == "" || b.Policy.Digest == "" || b.Action != whole.Action() {
		t.Fatalf("a decision without a basis: %+v", b)
	}
	if strings.Contains(b.Rule+b.Reason, marker) {
		t.Fatalf("a value stands in the reason: %s %s", b.Rule, b.Reason)
	}
	switch d := d.(type) {
	case events.Proceed:
		checkProceed(t, in, d, whole)
	case events.Approve:
		if len(d.From) == 0 || len(d.Plan.Route) == 0 || d.Plan.AfterDeadline == events.DeadlineDefault {
			t.Fatalf("an approval nobody gives, or silence gives: %+v", d)
		}
	case events.Ask:
		checkAsk(t, d)
	case events.Escalate:
		if d.To == "" || len(d.Fields) > 3 || len(d.Plan.Route) == 0 {
			t.Fatalf("an escalation to nobody: %+v", d)
		}
	case events.Stop, events.Reconcile:
	}
}

// checkProceed is the promise: nothing runs by default, and no record or recipient of a write is guessed.
func checkProceed(t interface{ Fatalf(string, ...any) }, in policy.Input, d events.Proceed, whole events.Candidate) {
	tr := d.Why.Traits
	approved := in.Granted != "" && in.Granted == whole.Action()
	if !approved && (tr.Consequence != "low" || !tr.Reversible) {
		t.Fatalf("runs unapproved: %+v", d.Why)
	}
	if slices.Contains([]string{"rm", "shell.run"}, in.Candidate.Tool.Name) && in.Candidate.Tool.Server != "mcp://trusted" {
		t.Fatalf("a tool nobody knows runs")
	}
	field, has := map[string]string{"crm.update": "customer_id", "orders.cancel": "order_id", "billing.refund": "payment_id"}[in.Candidate.Tool.Name]
	if !has {
		return
	}
	v := whole.Arguments[field]
	if text := strings.TrimSpace(v.RevealString()); text == "" || text == "null" {
		t.Fatalf("runs without knowing on what: %s", d.Why.Rule)
	}
	from := in.Candidate.Provenance[field].From
	if from == events.FromInferred || from == events.FromDefault {
		if _, given := in.Candidate.Arguments[field]; given {
			t.Fatalf("runs on a record that was %s", from)
		}
	}
	if approved || from == events.FromUser {
		return
	}
	for _, a := range in.Candidate.Candidates {
		if other, has := a.Arguments[field]; has && !other.Equal(v) && possible(a, in.Candidate, field) {
			t.Fatalf("runs on one of several records nobody chose among")
		}
	}
}

// possible reports that the tool would take the alternative and that no person ruled it out.
func possible(a events.Alternative, c events.Candidate, field string) bool {
	for name, v := range a.Arguments {
		if name != field && !slices.Contains([]string{"phone", "city"}, name) {
			return false
		}
		if c.Provenance[name].From == events.FromUser {
			if said, has := c.Arguments[name]; has && !said.Equal(v) {
				return false
			}
		}
		if kind := v.Reveal().Kind(); kind != '"' {
			return false
		}
	}
	return true
}

func checkAsk(t interface{ Fatalf(string, ...any) }, d events.Ask) {
	if len(d.Fields) != 1 || (d.Lookup == "") != (len(d.Plan.Route) > 0) {
		t.Fatalf("a question that reaches nobody, or is a form: %+v", d)
	}
	for _, f := range d.Fields {
		if f.Name == "" || f.Prompt == "" || f.Role == "" || len(f.Sources) == 0 || strings.Contains(f.Prompt, marker) {
			t.Fatalf("field %+v", f)
		}
		ids, labels := map[string]bool{}, map[string]bool{}
		for _, o := range f.Options {
			if events.TokenFor(o.ID) != o.ID || ids[o.ID] || labels[o.Label] || o.Label == "" {
				t.Fatalf("options that cannot be told apart: %+v", f.Options)
			}
			ids[o.ID], labels[o.Label] = true, true
			if v, reason := policy.Accepts(f, events.Given{Field: f.Name, Option: o.ID}); reason != "" || !v.Equal(o.Value) {
				t.Fatalf("option %s is refused: %s", o.ID, reason)
			}
		}
	}
}

// TestDecide_ends checks that a person who always answers is asked a bounded number of times.
func TestDecide_ends(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	rapid.Check(t, func(t *rapid.T) {
		in := inputs().Draw(t, "input")
		in.Asks = events.Asks{PerField: map[string]int{}}
		for range 20 {
			ask, ok := p.Decide(in).(events.Ask)
			if !ok {
				return
			}
			in.Asks = copied(in.Asks)
			f := ask.Fields[0]
			if ask.Lookup != "" {
				in.Asks.Lookups = append(in.Asks.Lookups, f.Name)
				continue
			}
			in.Asks.Total++
			in.Asks.PerField[f.Name]++
			if v, ok := answer(t, f); ok {
				in.Candidate.Arguments = with(in.Candidate.Arguments, f.Name, v)
				in.Candidate.Provenance = with(in.Candidate.Provenance, f.Name, events.Provenance{From: events.FromUser})
			} else {
				in.Asks.Declined = append(in.Asks.Declined, f.Name)
			}
		}
		t.Fatalf("still asks after 20 answers: %s", p.Decide(in).Basis().Rule)
	})
}

func copied(a events.Asks) events.Asks {
	a.PerField = maps.Clone(a.PerField)
	a.Lookups, a.Declined = slices.Clone(a.Lookups), slices.Clone(a.Declined)
	return a
}

func with[M ~map[string]V, V any](m M, name string, v V) M {
	out := M{name: v}
	for k, old := range m {
		if k != name {
			out[k] = old
		}
	}
	return out
}

// answer is one a person could give; false is "none of these".
func answer(t *rapid.T, f events.Field) (events.Secret, bool) {
	if len(f.Options) == 0 {
		v := events.SecretOf("typed")
		if strings.Contains(string(f.FreeText.Schema), "number") {
			v = events.SecretOf(7)
		}
		return v, true
	}
	o := rapid.SampledFrom(f.Options).Draw(t, fmt.Sprintf("answer to %s", f.Name))
	return o.Value, o.ID != events.NoneOfThese
}
