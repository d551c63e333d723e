package policy_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/policy"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

const sound = `apiVersion: clarify/v1
kind: Policy
metadata: {name: p}
defaults:
  approvers: [ana]
  unknownTool: stop
catalog:
  - name: mail.send
    inputSchema: {type: object, properties: {to: {type: string}, format: {enum: [text, html]}}}
classes:
  - {name: read, when: tool.readOnly && !tool.destructive, consequence: low, reversible: true, approval: none}
tools:
  - match: mail.send
    class: {consequence: high, reversible: true}
    fields:
      to: {role: recipient, ask: "To whom?"}
      format: {role: effect, ask: "Which format?", default: {value: text, documented: guide}}
    reconcile:
      - {id: closed, when: '"a" in state && state.a == 1', say: it is closed}
    authority:
      - {id: large, when: has(args.n) && args.n > 5.0}
questions: {maxPerTask: 3}
routes:
  - to: [{channel: inbox, who: anyone}]
    deadline: 10m
unattended: {ask: hold, approve: stop}
`

// TestParse_problems breaks a sound policy in one place each. What is said about it stands in the golden file: where it is,
// what is wrong and what was probably meant.
func TestParse_problems(t *testing.T) {
	if p, err := policy.Parse("p.yaml", []byte(sound)); err != nil || len(p.Warnings()) > 0 {
		t.Fatalf("the sound policy is not: %v %v", err, p.Warnings())
	}
	text, err := os.ReadFile("testdata/problems.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	unescape := strings.NewReplacer(`\n`, "\n")
	for change := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(change), "\n")
		before, after, ok := strings.Cut(strings.TrimPrefix(lines[0], "# "), " =>")
		after = strings.TrimPrefix(after, " ")
		before, after = unescape.Replace(before), unescape.Replace(after)
		if !ok || strings.Count(sound, before) != 1 {
			t.Fatalf("%s: names no one place of the sound policy", lines[0])
		}
		p, err := policy.Parse("p.yaml", []byte(strings.Replace(sound, before, after, 1)))
		if got.Len() > 0 {
			got.WriteString("\n")
		}
		fmt.Fprintln(&got, lines[0])
		switch {
		case err != nil:
			fmt.Fprintln(&got, err)
		case len(p.Warnings()) == 0:
			t.Errorf("%s: nothing is wrong with it", lines[0])
		default:
			for _, w := range p.Warnings() {
				fmt.Fprintln(&got, "warning:", w)
			}
		}
	}
	if *update {
		if err := os.WriteFile("testdata/problems.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.TrimSpace(string(text)), strings.TrimSpace(got.String())); diff != "" {
		t.Error(diff)
	}
}

// TestParse_all checks that one run shows all problems, each as a value a program can use.
func TestParse_all(t *testing.T) {
	_, err := policy.Parse("p.yaml", []byte("apiVersion: clarify/v2\nkind: Polcy\nmetadata: {name: 3}\n"))
	problems, ok := errors.AsType[policy.Problems](err)
	if !ok || len(problems) != 5 {
		t.Fatalf("%d problems: %v", len(problems), err)
	}
	want := policy.Problem{File: "p.yaml", Line: 2, Column: 7, Path: "kind", Text: `"Polcy" is not one of Policy (did you mean "Policy"?)`}
	if slices.Contains(problems, want) {
		return
	}
	t.Errorf("%v\nlacks %v", err, want)
}

// TestRef checks that the digest is the one of the text, so that any change of it is another policy.
func TestRef(t *testing.T) {
	a, b := parse(t, sound), parse(t, sound+"# a comment\n")
	if a.Ref().Name != "p" || a.Ref().Digest == b.Ref().Digest || !strings.HasPrefix(string(a.Ref().Digest), "sha256:") {
		t.Errorf("%+v %+v", a.Ref(), b.Ref())
	}
}

// TestMentions: every place that names a channel or somebody, in the order of the file.
func TestMentions(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(`apiVersion: clarify/v1
kind: Policy
metadata: {name: p, version: "1"}
defaults: {escalateTo: ana, approvers: ["role:boss"]}
routes:
  - to: [{channel: cli, who: requester}]
    deadline: 10m
    cap: 1h
unattended: {ask: stop, approve: stop}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.Mentions() {
		got = append(got, fmt.Sprintf("%s %d %s%s", m.At.Path, m.At.Line, m.Channel, m.Who))
	}
	want := []string{
		"defaults.escalateTo 4 ana", "defaults.approvers[0] 4 role:boss", "routes[0].to[0].channel 6 cli", "routes[0].to[0].who 6 requester",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
