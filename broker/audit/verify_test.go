package audit

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func TestVerifyLegalHistories(t *testing.T) {
	seen := map[events.Kind]int{}
	records := 0
	for seed := range uint64(50) {
		log := history(seed, 120)
		for _, m := range log {
			seen[m.Subject.Kind]++
		}
		report := Verify(each(recorded(t, log)))
		if !report.OK() {
			t.Fatalf("seed %d: false alarm: %v", seed, report.Violations[0])
		}
		records += report.Records
	}
	for _, k := range events.Kinds() {
		if seen[k] == 0 {
			t.Errorf("no history has a transition of kind %s", k)
		}
	}
	if seen[""] == 0 {
		t.Error("no history has a refusal")
	}
	t.Logf("%d records", records)
}
