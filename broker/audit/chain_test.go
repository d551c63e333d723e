package audit

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

// tampering is what somebody may do to records that are already chained.
func tampering() map[string]func(trail) trail {
	return map[string]func(trail) trail{
		"edited": func(all trail) trail { all[20].Cause = "other"; return all },
		"edited_and_hashed_again": func(all trail) trail {
			all[20].Cause = "other"
			all[20].Hash, _ = hashOf(all[20])
			return all
		},
		"one_removed":      func(all trail) trail { return slices.Delete(all, 20, 21) },
		"first_removed":    func(all trail) trail { all[1].Prev = ""; return all[1:] },
		"two_swapped":      func(all trail) trail { all[20], all[21] = all[21], all[20]; return all },
		"one_repeated":     func(all trail) trail { return slices.Insert(all, 20, all[20]) },
		"fork":             func(all trail) trail { all[20].Prev = all[18].Hash; all[20].Hash, _ = hashOf(all[20]); return all },
		"renumbered":       func(all trail) trail { all[0].Seq = 0; all[0].Hash, _ = hashOf(all[0]); return all[:1] },
		"without_its_hash": func(all trail) trail { all[20].Hash = ""; return all },
	}
}

func TestVerifyFindsTampering(t *testing.T) {
	for name, tamper := range tampering() {
		t.Run(name, func(t *testing.T) {
			all := tamper(recorded(t, history(1, 60)))
			report := Verify(each(all))
			if !slices.ContainsFunc(report.Violations, func(v Violation) bool { return v.Guarantee == 8 && v.Name == "chain" }) {
				t.Errorf("not found: %v", report.Violations)
			}
		})
	}
}

func TestCheckChain(t *testing.T) {
	all := recorded(t, history(1, 30))
	for i, r := range all {
		var prev events.Record
		if i > 0 {
			prev = all[i-1]
		}
		if err := CheckChain(prev, r); err != nil {
			t.Errorf("record %d: %v", r.Seq, err)
		}
	}
	if err := CheckChain(events.Record{}, all[10]); err != nil {
		t.Errorf("what retention has left: %v", err)
	}
	var broken *ChainError
	if err := CheckChain(all[3], all[5]); !errors.As(err, &broken) || broken.Seq != 6 {
		t.Errorf("a gap: %v", err)
	}
}

func TestExport(t *testing.T) {
	all := recorded(t, history(3, 80))
	var file bytes.Buffer
	manifest, err := Export(&file, "/clarify/test", each(all))
	if err != nil {
		t.Fatal(err)
	}
	text := file.String()
	read := func(text string) Report { return Verify(ReadExport(strings.NewReader(text))) }
	lines := strings.SplitAfter(text, "\n")

	t.Run("reads_back_the_same", func(t *testing.T) {
		var back []events.Record
		for r, err := range ReadExport(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, r)
		}
		if diff := cmp.Diff(all, back); diff != "" {
			t.Error(diff)
		}
		report := read(text)
		if !report.OK() || len(report.Against(manifest)) > 0 {
			t.Errorf("%v %v %v", report.Err, report.Violations, report.Against(manifest))
		}
		if want := (Manifest{Records: len(all), First: 1, Last: uint64(len(all)), Head: all[len(all)-1].Hash}); manifest != want {
			t.Errorf("manifest %+v, want %+v", manifest, want)
		}
	})

	t.Run("a_cut_end_shows_against_the_manifest_only", func(t *testing.T) {
		report := read(strings.Join(lines[:50], ""))
		if len(report.Violations) > 0 {
			t.Errorf("without a manifest: %v", report.Violations)
		}
		if len(report.Against(manifest)) != 1 {
			t.Error("the cut does not show")
		}
	})

	t.Run("one_that_was_made_anew_shows_against_the_manifest", func(t *testing.T) {
		forged := recorded(t, history(3, 80))
		forged[20].Cause = "other"
		report := Verify(each(sealed(t, forged)))
		if len(report.Violations) > 0 {
			t.Errorf("without a manifest: %v", report.Violations)
		}
		if len(report.Against(manifest)) != 1 {
			t.Error("the forgery does not show")
		}
	})

	t.Run("more_than_the_manifest_knows", func(t *testing.T) {
		short := manifest
		short.Records, short.Last, short.Head = 40, 40, all[39].Hash
		if len(read(text).Against(short)) != 1 || len(read(strings.Join(lines[10:], "")).Against(manifest)) != 1 {
			t.Error("the difference does not show")
		}
	})

	for name, tc := range map[string]struct{ line, want string }{
		"no_json":         {"{", "line 3: "},
		"another_event":   {`{"specversion":"1.0","id":"1","source":"/x","type":"dev.clarify.timer.due.v1","datacontenttype":"application/json","data":{"agent":"a","task":"t","due":"2026-12-01T14:00:00Z"}}`, "line 3: is another event"},
		"unknown_member":  {strings.Replace(lines[2], `"data":{`, `"data":{"extra":1,`, 1), "line 3: extra"},
		"repeated_member": {strings.Replace(lines[2], `"data":{`, `"data":{"seq":3,`, 1), "line 3: "},
		"too_long":        {strings.Repeat("x", maxLine+1), "line 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			report := read(lines[0] + lines[1] + strings.TrimSuffix(tc.line, "\n") + "\n" + lines[3])
			if report.Err == nil || !strings.HasPrefix(report.Err.Error(), tc.want) {
				t.Errorf("error %v, want %q", report.Err, tc.want)
			}
			if report.OK() || report.Records != 2 {
				t.Errorf("read %d records, OK %v", report.Records, report.OK())
			}
		})
	}
}
