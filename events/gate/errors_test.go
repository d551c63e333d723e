package gate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everyError is one of each way not to be told "done", as an agent would read it.
func everyError() []error {
	c := gate.Case{Task: "t-42", Version: 7, Question: "01K9ZQ", Rule: "update-needs-id", Reason: "The customer is ambiguous.", Note: "hidden words"}
	by := c
	by.By = "ana"
	plain := gate.Case{Task: "t-42", Version: 7}
	return []error{
		&gate.Waiting{Case: c, Kind: events.Clarification}, &gate.Waiting{Case: c, Kind: events.Approval}, &gate.Waiting{Case: plain},
		&gate.Waiting{Case: plain, State: events.Released}, &gate.Waiting{Case: plain, State: events.Claimed}, &gate.Waiting{Case: c, State: events.Answered},
		&gate.Escalated{Case: c}, &gate.LookUp{Case: c, Tool: "crm.search", Fields: []string{"customer_id"}}, &gate.LookUp{Case: c, Tool: "crm.search"},
		&gate.Stopped{Case: c}, &gate.Stopped{Case: by}, &gate.Stopped{Case: plain}, &gate.Denied{Case: by}, &gate.Denied{Case: c}, &gate.Cancelled{Case: by},
		&gate.TimedOut{Case: c, Deadline: time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)}, &gate.TimedOut{Case: c},
		&gate.Undelivered{Case: c}, &gate.Conflict{Case: c}, &gate.Superseded{Case: plain},
		&gate.Refused{Case: plain, Of: "candidate", Why: events.StaleVersion, Current: 9}, &gate.Refused{Case: plain, Of: "claim", Why: events.Taken},
		&gate.Mismatch{Case: plain},
		&gate.Failed{Case: c, Detail: "hidden words"}, &gate.InDoubt{Case: plain}, &gate.InDoubt{Case: gate.Case{Task: "t-42", Reason: "the lease was lost"}},
	}
}

func TestErrors(t *testing.T) {
	var text strings.Builder
	for _, err := range everyError() {
		fmt.Fprintf(&text, "%s: %s\n", strings.TrimPrefix(reflect.TypeOf(err).String(), "*gate."), err)
	}
	golden := filepath.Join("testdata", "errors.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestErrors_withheld_is_never_mistaken_for_done(t *testing.T) {
	for _, err := range everyError() {
		ran := false
		switch err.(type) {
		case *gate.Failed, *gate.InDoubt:
			ran = true
		}
		if got := strings.HasPrefix(err.Error(), "NOT EXECUTED: "); got == ran {
			t.Errorf("%T says %q", err, err)
		}
		if strings.Contains(err.Error(), "hidden words") {
			t.Errorf("%T repeats what a person or tool said", err)
		}
	}
}
