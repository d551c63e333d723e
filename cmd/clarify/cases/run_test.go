package cases_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/cmd/clarify/cases"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const small = `
apiVersion: clarify/v1
kind: Policy
metadata: {name: small}
trust: ["*"]
classes:
  - {name: read, when: tool.readOnly && !tool.destructive, consequence: low, reversible: true, approval: none}
  - {name: write, consequence: high, reversible: false, approval: required}
defaults: {approvers: [anyone]}
routes:
  - {to: [{channel: inbox, who: anyone}], deadline: 10m, cap: 1h}
unattended: {ask: stop, approve: stop}
`

const reads = `"tool":{"name":"weather","annotations":{"readOnlyHint":true,"destructiveHint":false},` +
	`"input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}`

const writes = `"tool":{"name":"pay","annotations":{"readOnlyHint":false,"destructiveHint":true},` +
	`"input_schema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}}`

func given() string {
	return strings.Join([]string{
		`{"id":"known","source":"a","accept":["proceed"],"arguments":{"city":"Lima"},` + reads + `}`,
		`{"id":"asked and answered","source":"a","accept":["ask"],"arguments":{},"missing":["city"],"answer":{"city":"Quito"},` + reads + `}`,
		`{"id":"nobody knows","source":"a","accept":["ask"],"arguments":{},"missing":["city"],` + reads + `}`,
		`{"id":"not an option","source":"a","accept":["ask"],"arguments":{},"missing":["city"],"answer":{"city":"Lima"},` +
			`"candidates":[{"value":"Quito","label":"Quito"},{"value":"Cali","label":"Cali"}],` + reads + `}`,
		`{"id":"approval","source":"b","accept":["approve"],"arguments":{"sum":5},` + writes + `}`,
		`{"id":"unknown","source":"b","accept":["ask"],"catalog_has_tool":false,"arguments":{},` + reads + `}`,
	}, "\n")
}

// TestRun counts what became of six cases: two effects, and a refused answer and a wrong decision that are not hidden.
func TestRun(t *testing.T) {
	t.Parallel()
	all, err := cases.Read(strings.NewReader(given()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("small", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	port := 0
	s, err := app.Start(t.Context(), app.Config{NATS: app.NATS{Embedded: &app.Embedded{Port: &port}}}, p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	r, err := cases.Run(t.Context(), s.Bus, all, cases.Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := cases.Report{
		Mode: cases.Absent,
		Total: cases.Count{
			Source: "all", Cases: 6, Acceptable: 5, Questions: 3, MostAsked: 1, Answered: 1, Effects: 2,
			Decisions: map[events.DecisionKind]int{"ask": 3, "proceed": 1, "approve": 1, "stop": 1},
		},
		Sources: []cases.Count{
			{
				Source: "a", Cases: 4, Acceptable: 4, Questions: 3, MostAsked: 1, Answered: 1, Effects: 2,
				Decisions: map[events.DecisionKind]int{"ask": 3, "proceed": 1},
			},
			{Source: "b", Cases: 2, Acceptable: 1, Decisions: map[events.DecisionKind]int{"approve": 1, "stop": 1}},
		},
		Wrong:  []cases.Result{{ID: "unknown", Source: "b", Accept: []events.DecisionKind{"ask"}, Decision: "stop", Rule: "unknown-tool", End: "stopped"}},
		Broken: []string{"not an option: the answer was refused as not_an_option"},
	}
	if diff := cmp.Diff(want, r, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cases.Report{}, "Records")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if r.OK() {
		t.Error("a refused answer is passed over")
	}
}

func TestRead_names_the_line(t *testing.T) {
	t.Parallel()
	_, err := cases.Read(strings.NewReader(given() + "\n{\"id\":\"no tool\"}\n"))
	if err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("Read: %v", err)
	}
}
