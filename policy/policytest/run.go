package policytest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Result is what became of a test. It passed when it has no differences.
type Result struct {
	Name        string
	Line        int // of the test in its file
	Decision    events.Decision
	Differences []string // "rule: got …, want …"; never the value of an argument
}

// Run decides every test, in order.
func (s *Suite) Run(p *policy.Policy) []Result {
	out := make([]Result, len(s.Tests))
	for i, t := range s.Tests {
		in := policy.Input{Candidate: t.Candidate, Asks: t.Asks, Overdue: t.Overdue}
		d := p.Decide(in)
		if t.Approved {
			in.Granted = d.Basis().Action
			d = p.Decide(in)
		}
		out[i] = Result{t.Name, t.line, d, t.Want.compare(d)}
	}
	return out
}

// Unused lists the rules of a policy that decided none of the tests.
func Unused(p *policy.Policy, results []Result) []string {
	used := map[string]bool{}
	for _, r := range results {
		used[r.Decision.Basis().Rule] = true
	}
	return slices.DeleteFunc(p.Rules(), func(rule string) bool { return used[rule] })
}

// said is a decision in the words of a Want.
func said(d events.Decision) Want {
	w := Want{Kind: events.KindOf(d), Rule: d.Basis().Rule, Assumptions: map[string]events.Secret{}}
	for _, a := range d.Basis().Assumptions {
		w.Assumptions[a.Field] = a.Value
	}
	var fields []events.Field
	switch d := d.(type) {
	case events.Ask:
		fields, w.Lookup = d.Fields, d.Lookup
	case events.Approve:
		w.From = d.From
	case events.Escalate:
		fields, w.To = d.Fields, d.To
	case events.Proceed, events.Stop, events.Reconcile:
	}
	for i, f := range fields {
		w.Fields = append(w.Fields, f.Name)
		for _, o := range f.Options {
			if i == 0 {
				w.Options = append(w.Options, o.ID)
			}
		}
	}
	return w
}

func (w Want) compare(d events.Decision) []string {
	got := said(d)
	var out []string
	text := func(what, got, want string) {
		if want != "" && got != want {
			out = append(out, fmt.Sprintf("%s: got %q, want %q", what, got, want))
		}
	}
	list := func(what string, got, want []string) {
		if want != nil && !slices.Equal(got, want) {
			out = append(out, fmt.Sprintf("%s: got %q, want %q", what, got, want))
		}
	}
	text("kind", string(got.Kind), string(w.Kind))
	text("rule", got.Rule, w.Rule)
	list("fields", got.Fields, w.Fields)
	list("options", got.Options, w.Options)
	text("lookup", got.Lookup, w.Lookup)
	list("from", got.From, w.From)
	text("to", got.To, w.To)
	if w.Assumptions != nil {
		list("assumptions", slices.Sorted(maps.Keys(got.Assumptions)), slices.Sorted(maps.Keys(w.Assumptions)))
		for _, name := range slices.Sorted(maps.Keys(w.Assumptions)) {
			if v, has := got.Assumptions[name]; has && !v.Equal(w.Assumptions[name]) {
				out = append(out, "assumptions: another value of "+name)
			}
		}
	}
	return out
}
