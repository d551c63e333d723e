package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/clarify-broker/clarify/events"
)

// Manifest says what an export holds. Kept elsewhere, it shows that the end of the export was cut off, or that the whole
// was made anew: a chain alone shows neither.
type Manifest struct {
	Records int           `json:"records"`
	First   uint64        `json:"first"`           // sequence of the first record
	Last    uint64        `json:"last"`            // and of the last
	Start   events.Digest `json:"start,omitempty"` // prev of the first
	Head    events.Digest `json:"head"`            // hash of the last
}

// Export writes records as structured CloudEvents, one per line, and returns the manifest of what it has written.
func Export(w io.Writer, source string, records iter.Seq2[events.Record, error]) (Manifest, error) {
	var m Manifest
	out := bufio.NewWriter(w)
	for r, err := range records {
		if err != nil {
			return m, fmt.Errorf("export: %w", err)
		}
		line, err := events.Seal(events.Envelope{ID: fmt.Sprintf("audit-%d", r.Seq), Source: source, Time: r.At, Data: r})
		if err != nil {
			return m, fmt.Errorf("export record %d: %w", r.Seq, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return m, fmt.Errorf("export record %d: %w", r.Seq, err)
		}
		if m.Records == 0 {
			m.First, m.Start = r.Seq, r.Prev
		}
		m.Records++
		m.Last, m.Head = r.Seq, r.Hash
	}
	if err := out.Flush(); err != nil {
		return m, fmt.Errorf("export: %w", err)
	}
	return m, nil
}

const maxLine = events.MaxState + 64<<10 // a record and its envelope

// ReadExport reads what [Export] has written. The error names the line and ends the records.
func ReadExport(r io.Reader) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		n := 0
		for lines.Scan() {
			n++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			rec, err := readLine(lines.Bytes())
			if err != nil {
				yield(events.Record{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(events.Record{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}

var errNotRecord = errors.New("is another event than " + events.TypePrefix + "audit.recorded.v1; give an export of the audit")

func readLine(line []byte) (events.Record, error) {
	e, err := events.Open(map[string][]string{"Content-Type": {events.ContentType}}, bytes.Clone(line))
	if err != nil {
		return events.Record{}, err
	}
	r, ok := e.Data.(events.Record)
	if !ok {
		return events.Record{}, errNotRecord
	}
	return r, nil
}

// Against compares what was read with a manifest that was kept. What differs is a violation of guarantee 8.
func (r Report) Against(m Manifest) []Violation {
	var all []Violation
	bad := func(problem string) {
		all = append(all, Violation{Guarantee: 8, Name: "manifest", Seq: r.Last, Problem: problem})
	}
	switch {
	case r.First != m.First || r.Start != m.Start:
		bad("it does not start where the manifest says")
	case r.Records < m.Records || r.Last < m.Last:
		bad("its end was cut off: the manifest knows later records")
	case r.Records != m.Records || r.Last != m.Last:
		bad("it has records the manifest does not know")
	case r.Head != m.Head:
		bad("it ends with another record than the manifest says: it was written anew")
	}
	return all
}
