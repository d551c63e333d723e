package bus_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

// TestLastSeesWhatIsThere reads states that differ in one byte: what is remembered of one is not taken for another.
func TestLastSeesWhatIsThere(t *testing.T) {
	b := bustest.Start(t)
	for i, note := range []string{"a", "b", "a", "c"} {
		s := events.State{Agent: "bot", Task: "t1", Version: 1, Kind: events.Stopped, Candidate: events.Candidate{
			Agent: "bot", Task: "t1", Version: 1,
			Step: "s", Tool: events.Tool{Name: "x"}, Arguments: events.Arguments{},
		}, Decision: events.Decided{Decision: events.Stop{}}}
		s.Note = note
		if _, err := b.Append(t.Context(), bus.Entry{
			Subject: b.Space().Task("bot", "t1", events.Stopped), Guard: b.Space().TaskAll("bot", "t1"),
			Last: uint64(i), Envelope: events.Envelope{ID: "same", Source: "/test", Data: s},
		}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			m, err := b.Last(t.Context(), bus.Tasks, b.Space().TaskAll("bot", "t1"))
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Envelope.Data.(events.State).Note; got != note {
				t.Errorf("read %q, %q is there", got, note)
			}
		}
	}
}
