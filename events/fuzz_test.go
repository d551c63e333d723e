package events_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

// FuzzOpen: whatever arrives, Open returns; what it takes can be sealed again and is the same then.
func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "event", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(events.ContentType, "", body)
	}
	for _, body := range []string{
		`{"specversion":"1.0","data_base64":5}`, `{"data_base64":"=","specversion":"1.0"}`, `{"":1,"specversion":"1.0"}`, `{"specversion":"0.3"}`, `[]`, `null`, ``, `{"data":null}`,
	} {
		f.Add(events.ContentType, "", []byte(body))
	}
	f.Add("", "dev.clarify.timer.due.v1", []byte(timerData))
	f.Add("application/json", "dev.clarify.candidate.proposed.v1", []byte(candidateText(`{"n":1e999999}`)))
	f.Fuzz(func(t *testing.T, contentType, binaryType string, body []byte) {
		header := map[string][]string{"Content-Type": {contentType}}
		if binaryType != "" {
			header["ce-specversion"], header["ce-id"], header["ce-source"], header["ce-type"] = []string{"1.0"}, []string{"e1"}, []string{"/a"}, []string{binaryType}
		}
		first, err := events.Open(header, body)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		sealed, err := events.Seal(first)
		if err != nil {
			if strings.Contains(err.Error(), "not the data of an event") { // a kind or phase that is none, in data that says so
				return
			}
			t.Fatalf("opened but not sealed: %v", err)
		}
		second, err := events.Open(structured(), sealed)
		if err != nil {
			t.Fatalf("sealed but not opened: %v\n%s", err, sealed)
		}
		again, err := events.Seal(second)
		if err != nil || !bytes.Equal(sealed, again) {
			t.Fatalf("%v\n%s\n%s", err, sealed, again)
		}
	})
}

// FuzzDecode: what Decode takes has one canonical text, which decodes to the same candidate with the same digests.
func FuzzDecode(f *testing.F) {
	for _, arguments := range []string{
		`{}`, `{"n":9007199254740993}`, `{"a":[1.0,-0,1e-400,{"b":null}]}`, `{"s":"\ud83d\ude00\u0000"}`, `{"":""}`, nested(31), `{"x":1,"x":2}`, "\xff",
	} {
		f.Add([]byte(candidateText(arguments)))
	}
	f.Add([]byte(`{"agent":null,"provenance":{"x":{"from":"user"}},"candidates":[{"arguments":{"a":1},"weight":1e-5}],"attended":false}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second events.Candidate
		if events.Decode(data, events.MaxCandidate, &first) != nil {
			return
		}
		text, err := events.Canonical(data)
		if err != nil {
			t.Fatalf("decoded but not canonical: %v", err)
		}
		if err := events.Decode(text, 2*len(data)+events.MaxCandidate, &second); err != nil {
			t.Fatalf("canonical but not decoded: %v\n%s", err, text)
		}
		if first.Action() != second.Action() || first.Content() != second.Content() {
			t.Fatalf("digests differ: %s\n%s", data, text)
		}
		if again, err := events.Canonical(text); err != nil || !bytes.Equal(text, again) {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
		if a, b := first.Validate(), second.Validate(); (a == nil) != (b == nil) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

// FuzzParseSubject: what Parse takes is made of tokens, and the builders give it again.
func FuzzParseSubject(f *testing.F) {
	for _, subject := range builders(space, events.Subject{Agent: "a", Task: "t", Channel: "c", Version: 7, Kind: "asked", ID: "i"}) {
		f.Add(subject)
	}
	for _, bad := range hostile {
		f.Add("clarify.task.a." + bad + ".asked")
		f.Add("clarify.operator." + bad)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		got, err := space.Parse(subject)
		if err != nil {
			if len(err.Error()) > 700 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		for tok := range strings.SplitSeq(subject, ".") {
			if !wantToken.MatchString(tok) {
				t.Fatalf("%q has the token %q", subject, tok)
			}
		}
		want := refill(got, events.Subject{Agent: "a", Task: "t", Channel: "c", Version: 7, Kind: "asked", ID: "i"})
		for _, built := range builders(space, want) {
			if built == subject {
				return
			}
		}
		if got.Family == "refused" || got.Family == "operator" && got.Task == "" { // Refused makes a token of its id; Operator takes its verb there
			return
		}
		t.Fatalf("no builder gives %q: %s", subject, cmp.Diff(got, want))
	})
}
