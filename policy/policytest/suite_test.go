package policytest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/policy"
	"github.com/clarify-broker/clarify/policy/policytest"
	"github.com/google/go-cmp/cmp"
)

func demo(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("demo.yaml", policy.DemoText())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func suite(t *testing.T, text string) *policytest.Suite {
	t.Helper()
	s, err := policytest.Parse("demo_test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRun checks that the examples of the demo's policy hold, and which of its rules they leave out.
func TestRun(t *testing.T) {
	text, err := os.ReadFile("testdata/demo_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, s := demo(t), suite(t, string(text))
	results := s.Run(p)
	for _, r := range results {
		if len(r.Differences) > 0 || !strings.Contains(strings.Split(string(text), "\n")[r.Line-1], r.Name) {
			t.Errorf("line %d, %s: %v", r.Line, r.Name, r.Differences)
		}
	}
	want := []string{"class/destructive", "class/external", "class/write", "tool/crm.update_record"}
	if diff := cmp.Diff(want, policytest.Unused(p, results)); diff != "" {
		t.Error(diff)
	}
}

// TestRun_differences checks that a decision that is not the wanted one is told apart in each of its parts, without values.
func TestRun_differences(t *testing.T) {
	const head = "apiVersion: clarify/v1\nkind: PolicyTest\ntests:\n- name: x\n  candidate: "
	for _, c := range []struct{ name, test, want string }{
		{"kind", "{tool: {name: mail.send}, arguments: {to: a, body: b}}\n  want: {kind: proceed}", `kind: got "approve", want "proceed"`},
		{"rule", "{tool: {name: mail.send}, arguments: {to: a, body: b}}\n  want: {kind: approve, rule: x}", `rule: got "tool/mail.send", want "x"`},
		{"from", "{tool: {name: mail.send}, arguments: {to: a, body: b}}\n  want: {kind: approve, from: [ana]}", `from: got ["anyone"], want ["ana"]`},
		{
			"options", "{tool: {name: crm.update_record}, candidates: [{arguments: {customer_id: a}}, {arguments: {customer_id: b}}]}\n  want: {kind: ask, options: [a]}",
			`options: got ["a" "b" "none-of-these"], want ["a"]`,
		},
		{"value", "{tool: {name: docs.render}, missing: [{field: format}]}\n  want: {kind: proceed, assumptions: {format: html}}", "assumptions: another value of format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := suite(t, head+c.test+"\n").Run(demo(t))[0].Differences
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestParse checks that a mistake in a file of tests is found and placed.
func TestParse(t *testing.T) {
	const sound = "apiVersion: clarify/v1\nkind: PolicyTest\ntests:\n- name: x\n  candidate: {tool: {name: a}}\n  want: {kind: ask}\n"
	for _, c := range []struct{ name, before, after, want string }{
		{"unknown_key", "want: {kind: ask}", "want: {knd: ask}", "f.yaml:6:15: tests.0.want.knd: is not a member this event has"},
		{"unknown_kind", "want: {kind: ask}", "want: {kind: allow}", "f.yaml:6:16: tests.0.want.kind: use ask, proceed, approve, stop, escalate or reconcile"},
		{"no_tool", "{tool: {name: a}}", "{tool: {name: ''}}", "f.yaml:5:28: tests.0.candidate.tool.name: is missing; name the tool that would run"},
		{"no_name", "name: x", "name: ''", "f.yaml:4:9: tests.0.name: give each test a name of its own"},
		{"no_yaml", "kind: PolicyTest", "kind: [", "f.yaml:2:7: sequence end token ']' not found"},
		{"another_kind", "kind: PolicyTest", "kind: Policy", "f.yaml:2:7: kind: start the file with apiVersion: clarify/v1 and kind: PolicyTest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := policytest.Parse("f.yaml", []byte(strings.Replace(sound, c.before, c.after, 1)))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := policytest.Parse("f.yaml", []byte(sound)); err != nil {
		t.Error(err)
	}
}
