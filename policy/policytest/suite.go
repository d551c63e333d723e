// Package policytest runs a team's own examples of decisions against its policy: what an agent proposes, and what the
// policy must say to it. Like deciding, it is pure: the caller reads the files.
package policytest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/goccy/go-yaml"
)

// maxFile is the size of a file of tests, in bytes.
const maxFile = 4 << 20

// Suite is a file of tests.
type Suite struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Policy     string `json:"policy"` // the policy's file, relative to this one
	Tests      []Test `json:"tests"`
}

// Test is one example: what is proposed, in which situation, and the decision there must be.
type Test struct {
	Name      string           `json:"name"`
	Candidate events.Candidate `json:"candidate"` // agent, task, version, step and arguments may be left out
	Asks      events.Asks      `json:"asks,omitzero"`
	Approved  bool             `json:"approved,omitzero"` // a person has approved exactly what the policy would show
	Overdue   []string         `json:"overdue,omitempty"`
	Want      Want             `json:"want"`

	line int
}

// Want is what a decision must say. What is left out is not looked at.
type Want struct {
	Kind        events.DecisionKind      `json:"kind"`
	Rule        string                   `json:"rule,omitzero"`
	Fields      []string                 `json:"fields,omitempty"`
	Options     []string                 `json:"options,omitempty"` // ids, of the first field
	Lookup      string                   `json:"lookup,omitzero"`
	From        []string                 `json:"from,omitempty"`
	To          string                   `json:"to,omitzero"`
	Assumptions map[string]events.Secret `json:"assumptions,omitempty"`
}

// Parse reads a file of tests, strictly. The error is [policy.Problems].
func Parse(file string, text []byte) (*Suite, error) {
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		p := policy.Problem{File: file, Line: 1, Column: 1, Text: "is not YAML"}
		if syn, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			p.Text, p.Line, p.Column = syn.Message, syn.Token.Position.Line, syn.Token.Position.Column
		}
		return nil, policy.Problems{p}
	}
	var s Suite
	if err := events.Decode(raw, maxFile, &s); err != nil {
		return nil, policy.Problems{problem(file, text, err)}
	}
	return &s, s.check(file, text)
}

// problem finds the place of what could not be decoded.
func problem(file string, text []byte, err error) policy.Problem {
	p := policy.Problem{File: file, Line: 1, Column: 1, Text: err.Error()}
	if inv, ok := errors.AsType[*events.Invalid](err); ok {
		p.Path, p.Text = inv.Field, inv.Problem
		p.Line, p.Column = locate(text, inv.Field)
	}
	return p
}

// locate finds a dotted path in the text, or as much of it as there is.
func locate(text []byte, path string) (line, column int) {
	steps := strings.Split(path, ".")
	for n := len(steps); n > 0; n-- {
		var query strings.Builder
		query.WriteString("$")
		for _, s := range steps[:n] {
			if i, err := strconv.Atoi(s); err == nil {
				fmt.Fprintf(&query, "[%d]", i)
			} else {
				query.WriteString(".'" + strings.ReplaceAll(s, "'", `\'`) + "'")
			}
		}
		found, err := yaml.PathString(query.String())
		if err != nil {
			continue
		}
		node, err := found.ReadNode(bytes.NewReader(text))
		if err == nil && node.GetToken() != nil && node.GetToken().Position != nil {
			at := node.GetToken().Position
			return at.Line, at.Column
		}
	}
	return 1, 1
}

// check completes the tests and reports what no decoder sees.
func (s *Suite) check(file string, text []byte) error {
	var all policy.Problems
	fail := func(path, format string, args ...any) {
		line, column := locate(text, path)
		all = append(all, policy.Problem{File: file, Line: line, Column: column, Path: path, Text: fmt.Sprintf(format, args...)})
	}
	if s.APIVersion != "clarify/v1" || s.Kind != "PolicyTest" {
		fail("kind", "start the file with apiVersion: clarify/v1 and kind: PolicyTest")
	}
	if len(s.Tests) == 0 {
		fail("tests", "there are none")
	}
	seen := map[string]bool{}
	for i := range s.Tests {
		t, path := &s.Tests[i], fmt.Sprintf("tests.%d", i)
		t.line, _ = locate(text, path+".name")
		t.complete()
		if t.Name == "" || seen[t.Name] {
			fail(path+".name", "give each test a name of its own")
		}
		seen[t.Name] = true
		if inv, ok := errors.AsType[*events.Invalid](t.Candidate.Validate()); ok {
			fail(path+".candidate."+inv.Field, "%s; %s", inv.Problem, inv.Fix)
		}
		switch t.Want.Kind {
		case events.KindAsk, events.KindProceed, events.KindApprove, events.KindStop, events.KindEscalate, events.KindReconcile:
		default:
			fail(path+".want.kind", "use ask, proceed, approve, stop, escalate or reconcile")
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// complete fills in what a test need not say.
func (t *Test) complete() {
	c := &t.Candidate
	if c.Agent == "" {
		c.Agent = "agent"
	}
	if c.Task == "" {
		c.Task = "task"
	}
	if c.Step == "" {
		c.Step = "step"
	}
	c.Version = max(c.Version, 1)
	if c.Arguments == nil {
		c.Arguments = events.Arguments{}
	}
}
