package events_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// structured is the header of an event in structured mode.
func structured() map[string][]string {
	return map[string][]string{"Content-Type": {events.ContentType}}
}

// TestGoldenEvents holds every event type to the bytes that were once published: what old releases wrote stays readable.
func TestGoldenEvents(t *testing.T) {
	for _, name := range events.Types() {
		t.Run(name, func(t *testing.T) {
			envelope := events.Envelope{
				ID: "01JDZ4V7Q1R2S3T4V5W6X7Y8Z9", Source: "/clarify/b1", Time: storyTime(21),
				TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Data: storyEvents()[name],
			}
			sealed, err := events.Seal(envelope)
			if err != nil {
				t.Fatal(err)
			}
			text := jsontext.Value(sealed)
			if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "event", name+".json")
			golden(t, file, append(bytes.Clone(text), '\n'))
			if err := text.Compact(); err != nil {
				t.Fatal(err)
			}
			opened, err := events.Open(structured(), text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(envelope, opened); diff != "" {
				t.Errorf("-sealed +opened:\n%s", diff)
			}
		})
	}
}

// TestGoldenDigests pins the digests of one action: a change of them would orphan every approval that waits.
func TestGoldenDigests(t *testing.T) {
	c := storyCandidate()
	golden(t, filepath.Join("testdata", "digests.txt"), []byte("action "+c.Action()+"\ncontent "+c.Content()+"\n"))
}
