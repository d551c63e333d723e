package audit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

// trail is a history to plant a fault in.
type trail []events.Record

// fault is one way to break a guarantee, and the check that must find it. plant returns nil when the history has no place
// for it; what it returns is sealed again, as if the writer had been wrong and not somebody had tampered.
type fault struct {
	guarantee int
	check     string
	story     string
	plant     func(trail) trail
}

// at plants in the first transition that fits.
func at(fits func(*events.Transition) bool, spoil func(*events.Record)) func(trail) trail {
	return func(all trail) trail {
		i := all.find(fits)
		if i < 0 {
			return nil
		}
		spoil(&all[i])
		return all
	}
}

func (all trail) find(fits func(*events.Transition) bool) int {
	return slices.IndexFunc(all, func(r events.Record) bool { return r.Transition != nil && fits(r.Transition) })
}

// before finds the transition of the same task that a record was appended over.
func (all trail) before(i int) int {
	return slices.IndexFunc(all[:i], func(r events.Record) bool {
		return r.Transition != nil && r.Log == all[i].After && r.Task == all[i].Task
	})
}

// after finds the next transition of the same task.
func (all trail) after(i int) int {
	for j := i + 1; j < len(all); j++ {
		if all[j].Transition != nil && all[j].After == all[i].Log && all[j].Task == all[i].Task {
			return j
		}
	}
	return -1
}

// insert puts a record behind another one and over it, and what follows of the task over the inserted one.
func (all trail) insert(i int, r events.Record) trail {
	r.Log, r.After = all[i].Log+1, all[i].Log
	r.High = r.Log
	if r.Transition != nil {
		for j := range all[i+1:] {
			if next := &all[i+1+j]; next.Task == r.Task && next.After == r.After {
				next.After = r.Log
			}
		}
	}
	return slices.Insert(slices.Clone(all), i+1, r)
}

// remove takes a transition out without a trace.
func (all trail) remove(i int) trail {
	for j := range all[i+1:] {
		if next := &all[i+1+j]; next.Task == all[i].Task && next.After == all[i].Log {
			next.After = all[i].After
		}
	}
	return slices.Delete(slices.Clone(all), i, i+1)
}

func clone(r events.Record) events.Record {
	raw, err := events.Encode(r)
	if err != nil {
		panic(err)
	}
	var out events.Record
	if err := events.Decode(raw, events.MaxState, &out); err != nil {
		panic(err)
	}
	return out
}

func kind(kinds ...events.Kind) func(*events.Transition) bool {
	return func(t *events.Transition) bool { return slices.Contains(kinds, t.Kind) }
}

func releasedFrom(from events.ReleaseBasis) func(*events.Transition) bool {
	return func(t *events.Transition) bool { return t.Kind == events.Released && t.Release.From == from }
}

// answered finds the transition that accepted the only answer of its candidate so far, to a pause of a kind.
func answered(pause events.PauseKind, kinds ...events.Kind) func(*events.Transition) bool {
	return func(t *events.Transition) bool {
		return slices.Contains(kinds, t.Kind) && t.Pause != nil && len(t.Accepted) == 1 && t.Accepted[0].Kind == pause &&
			t.Accepted[0].Version == t.Pause.Version
	}
}

// leaving finds a transition that opened a further pause after one that ended in a way.
func leaving(status events.PauseStatus) func(*events.Transition) bool {
	return func(t *events.Transition) bool {
		return t.Left != nil && t.Left.Status == status && t.Pause != nil && t.Superseded == 0
	}
}

func other(d events.Digest) events.Digest {
	return redactor{key: testKey}.mac("other", string(d))
}

func refusal(reason events.Reason) func(events.Record) bool {
	return func(r events.Record) bool { return r.Refusal != nil && r.Refusal.Reason == reason && r.After != 0 }
}

// instead plants in the first refusal that fits.
func instead(fits func(events.Record) bool, spoil func(*events.Record)) func(trail) trail {
	return func(all trail) trail {
		i := slices.IndexFunc(all, fits)
		if i < 0 {
			return nil
		}
		spoil(&all[i])
		return all
	}
}

func faults() []fault {
	return slices.Concat(basisFaults(), onceFaults(), versionFaults(), silenceFaults(), authorityFaults(), digestFaults(),
		reachFaults(), chainFaults(), savedFaults())
}

func TestVerifyFindsFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(strconv.Itoa(f.guarantee)+"_"+f.check+"/"+regexp.MustCompile(`\W+`).ReplaceAllString(f.story, "_"), func(t *testing.T) {
			for seed := range uint64(80) {
				all := f.plant(redacted(history(seed, 150)))
				if all == nil {
					continue
				}
				report := Verify(each(sealed(t, all)))
				if !slices.ContainsFunc(report.Violations, func(v Violation) bool { return v.Guarantee == f.guarantee && v.Name == f.check }) {
					t.Fatalf("seed %d: not found; found %v", seed, report.Violations)
				}
				return
			}
			t.Fatal("no history has a place for the fault")
		})
	}
}

// TestEveryCheckHasAFault reads the checks out of the source, so that none can be added without a log that fails it.
func TestEveryCheckHasAFault(t *testing.T) {
	planted := map[string]bool{}
	guarantees := map[int]bool{}
	for _, f := range faults() {
		planted[strconv.Itoa(f.guarantee)+" "+f.check] = true
		guarantees[f.guarantee] = true
	}
	if len(tampering()) > 0 {
		planted["8 chain"] = true
	}
	files, err := filepath.Glob("verify*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`fail\((?:r, )?(\w+), "(\w[\w-]*)"`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
			found++
			numbers := []string{call[1]}
			if call[1] == "guarantee" {
				numbers = []string{"1", "2", "3"}
			}
			for _, n := range numbers {
				if !planted[n+" "+call[2]] {
					t.Errorf("%s: no fault is planted for guarantee %s, check %s", file, n, call[2])
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d checks found in the source", found)
	}
	for n := range Guarantees() {
		if !guarantees[n] {
			t.Errorf("no fault is planted for guarantee %d", n)
		}
	}
	if len(Guarantees()) != 9 {
		t.Errorf("there are %d guarantees, the contract has 9", len(Guarantees()))
	}
}
