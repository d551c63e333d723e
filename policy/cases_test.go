package policy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/go-json-experiment/json"
)

const casesFile = "../../shared/cases/policy-cases.jsonl"

// oneCase is a candidate tool call from a public benchmark with the decisions that are acceptable for it.
type oneCase struct {
	ID         string                   `json:"id"`
	Source     string                   `json:"source"`
	Tool       events.Tool              `json:"tool"`
	Known      *bool                    `json:"catalog_has_tool"`
	Arguments  events.Arguments         `json:"arguments"`
	Invented   events.Arguments         `json:"invented"`
	Missing    []string                 `json:"missing"`
	Candidates []caseOption             `json:"candidates"`
	State      map[string]events.Secret `json:"state"`
	Context    string                   `json:"context"`
	Accept     []events.DecisionKind    `json:"accept"`
}

type caseOption struct {
	Value events.Secret `json:"value"`
	Label string        `json:"label"`
}

func readCases(t *testing.T) []oneCase {
	t.Helper()
	text, err := os.ReadFile(casesFile)
	if os.IsNotExist(err) {
		t.Skipf("the benchmark cases are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []oneCase
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c oneCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// candidate is a case as an agent would propose it. What the agent says is missing is not passed on: a policy has to find
// out, as it does with agents that do not know what they do not know.
func (c oneCase) candidate() events.Candidate {
	out := events.Candidate{
		Agent: "cases", Task: events.Task(events.TokenFor(c.ID)), Version: 1, Step: "call",
		Tool: events.Tool{Name: c.Tool.Name, Server: "mcp://cases"}, Arguments: maps.Clone(c.Arguments),
	}
	if c.Known == nil || *c.Known {
		out.Tool.Annotations, out.Tool.InputSchema = c.Tool.Annotations, c.Tool.InputSchema
	}
	out.State = c.State
	for _, o := range c.Candidates {
		field := "order_id"
		if len(c.Missing) > 0 {
			field = c.Missing[0]
		}
		out.Candidates = append(out.Candidates, events.Alternative{Arguments: events.Arguments{field: o.Value}, Label: o.Label})
	}
	return out
}

func supportDesk(t testing.TB) *policy.Policy {
	t.Helper()
	return parseFile(t, "testdata/support-desk.yaml")
}

func parseFile(t testing.TB, name string) *policy.Policy {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCases holds decisions against public benchmarks, in the ways an agent can present one case.
func TestCases(t *testing.T) {
	cases := readCases(t)
	p := supportDesk(t)
	for _, v := range []struct {
		name    string
		present func(oneCase, *events.Candidate)
		want    float64 // share of the decisions that must be acceptable
	}{
		{"value_absent", func(oneCase, *events.Candidate) {}, 0.99},
		{"value_absent_and_declared", func(c oneCase, out *events.Candidate) { declare(c, out) }, 0.99},
		{"invented_and_marked_inferred", func(c oneCase, out *events.Candidate) {
			invent(c, out)
			out.Provenance = map[string]events.Provenance{}
			for name := range c.Invented {
				out.Provenance[name] = events.Provenance{From: events.FromInferred}
			}
		}, 0.99},
		{"invented_and_declared", func(c oneCase, out *events.Candidate) { invent(c, out); declare(c, out) }, 0.99},
		{"invented_in_silence", invent, 0.90},
	} {
		t.Run(v.name, func(t *testing.T) {
			tally := newTally()
			for _, c := range cases {
				candidate := c.candidate()
				v.present(c, &candidate)
				tally.add(c, p.Decide(policy.Input{Candidate: candidate}))
			}
			t.Log(tally)
			if got := tally.share(); got < v.want {
				t.Errorf("%.1f %% of the decisions are acceptable, want %.0f %%", 100*got, 100*v.want)
			}
			if tally.overAsked > len(cases)/50 {
				t.Errorf("asks in %d cases in which no question is acceptable", tally.overAsked)
			}
		})
	}
}

func declare(c oneCase, out *events.Candidate) {
	for _, name := range c.Missing {
		out.Missing = append(out.Missing, events.Missing{Field: name})
	}
}

func invent(c oneCase, out *events.Candidate) {
	maps.Copy(out.Arguments, c.Invented)
}

// tally counts decisions by what was acceptable.
type tally struct {
	decided              map[string]map[events.DecisionKind]int
	total, right         int
	overAsked, missedAsk int
	wrong                []string
}

func newTally() *tally { return &tally{decided: map[string]map[events.DecisionKind]int{}} }

func (y *tally) add(c oneCase, d events.Decision) {
	kind := events.KindOf(d)
	accept := fmt.Sprint(c.Accept)
	if y.decided[accept] == nil {
		y.decided[accept] = map[events.DecisionKind]int{}
	}
	y.decided[accept][kind]++
	y.total++
	if slices.Contains(c.Accept, kind) {
		y.right++
		return
	}
	y.wrong = append(y.wrong, fmt.Sprintf("%s: %s by %s, acceptable %s", c.ID, kind, d.Basis().Rule, accept))
	if kind == events.KindAsk {
		y.overAsked++
	}
	if slices.Contains(c.Accept, events.KindAsk) {
		y.missedAsk++
	}
}

func (y *tally) share() float64 { return float64(y.right) / float64(y.total) }

func (y *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases, %d acceptable (%.1f %%), asked too much %d, asked too little %d\n", y.total, y.right, 100*y.share(), y.overAsked, y.missedAsk)
	fmt.Fprintf(&b, "  %-20s %8s %8s %8s %8s %8s %9s\n", "acceptable", "ask", "proceed", "approve", "stop", "escalate", "reconcile")
	for _, accept := range slices.Sorted(maps.Keys(y.decided)) {
		n := y.decided[accept]
		fmt.Fprintf(&b, "  %-20s %8d %8d %8d %8d %8d %9d\n", accept, n[events.KindAsk], n[events.KindProceed], n[events.KindApprove],
			n[events.KindStop], n[events.KindEscalate], n[events.KindReconcile])
	}
	for i, w := range y.wrong {
		if i == 12 {
			fmt.Fprintf(&b, "  … and %d more\n", len(y.wrong)-i)
			break
		}
		fmt.Fprintln(&b, " ", w)
	}
	return b.String()
}
