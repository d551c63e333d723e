package integration_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/cmd/clarify/cases"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCases takes tool calls of public benchmarks through a broker, each as an agent would propose it, and answers what is
// asked where the benchmark has an answer. The policy was not written for them one by one: what it gets wrong is listed in
// testdata/cases_misses.txt, with what it decided and by which rule.
func TestCases(t *testing.T) {
	all := benchmark(t)
	b := caseBroker(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // so that a case that never moves on is told from a slow one
	defer cancel()
	r, err := cases.Run(ctx, b, all, cases.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases, %d acceptable, %v; %d asked, %d answered, %d effects; %d records", r.Total.Cases, r.Total.Acceptable,
		r.Total.Decisions, r.Total.Questions, r.Total.Answered, r.Total.Effects, r.Records)
	if r.Total.Cases != len(all) || r.Total.Share() < 0.95 {
		t.Errorf("%d of %d decisions are acceptable, out of %d cases", r.Total.Acceptable, r.Total.Cases, len(all))
	}
	for _, broken := range r.Broken {
		t.Error("broken:", broken)
	}
	for _, v := range r.Violations {
		t.Error("violation:", v)
	}
	// A tool runs for every decision to proceed, and otherwise only after an answer.
	least := r.Total.Decisions[events.KindProceed]
	if n := r.Total.Effects; least == 0 || r.Total.Answered == 0 || n < least || n > least+r.Total.Answered {
		t.Errorf("%d effects of %d decisions to proceed and %d answers", n, least, r.Total.Answered)
	}
	var misses strings.Builder
	for _, x := range r.Wrong {
		fmt.Fprintln(&misses, x.ID, x.Decision, x.Rule)
	}
	golden(t, "cases_misses.txt", misses.String())
}

// benchmark reads the cases. They are kept beside the repository, not in it.
func benchmark(t *testing.T) []cases.Case {
	t.Helper()
	f, err := os.Open("../../shared/cases/policy-cases.jsonl")
	if os.IsNotExist(err) {
		t.Skipf("the benchmark cases are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all, err := cases.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("only %d cases were read", len(all))
	}
	slices.SortFunc(all, func(a, b cases.Case) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// caseBroker is a connection to a broker that decides by the policy of a support desk.
func caseBroker(t *testing.T) *bus.Bus {
	t.Helper()
	p, _, err := app.ReadPolicy("../policy/testdata/support-desk.yaml")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	anyPort := 0
	s, err := app.Start(t.Context(), app.Config{NATS: app.NATS{Embedded: &app.Embedded{Port: &anyPort}}}, p, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, err := bus.Open(t.Context(), nc, bus.Options{Instance: "cases", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", file, diff)
	}
}
