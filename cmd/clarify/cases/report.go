package cases

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
)

// Report is what became of all cases.
type Report struct {
	Mode       Mode              `json:"mode"`
	Total      Count             `json:"total"`
	Sources    []Count           `json:"sources"`
	Wrong      []Result          `json:"wrong"`      // decisions that are not acceptable
	Broken     []string          `json:"broken"`     // what must never be: effects without a release, problems
	Violations []audit.Violation `json:"violations"` // of the guarantees, on the audit
	Records    int               `json:"records"`    // of the audit
}

// Count sums cases up.
type Count struct {
	Source     string                      `json:"source"`
	Cases      int                         `json:"cases"`
	Acceptable int                         `json:"acceptable"`
	Decisions  map[events.DecisionKind]int `json:"decisions"` // the first of each case
	Questions  int                         `json:"questions"` // clarifications that were asked
	MostAsked  int                         `json:"most_asked"`
	Answered   int                         `json:"answered"`
	Effects    int                         `json:"effects"`
}

// Share is the part of the decisions that are acceptable, from 0 to 1.
func (c Count) Share() float64 {
	if c.Cases == 0 {
		return 0
	}
	return float64(c.Acceptable) / float64(c.Cases)
}

// Result is what became of one case.
type Result struct {
	ID       string                `json:"id"`
	Source   string                `json:"source"`
	Accept   []events.DecisionKind `json:"accept"`
	Decision events.DecisionKind   `json:"decision"` // the first
	Rule     string                `json:"rule"`
	End      events.Kind           `json:"end"`
	Counts
}

// Counts are what happened to one case.
type Counts struct {
	Questions int `json:"questions"`
	Answered  int `json:"answered"`
	Effects   int `json:"effects"`  // times the tool ran in this process
	Recorded  int `json:"recorded"` // effects in the audit
	Releases  int `json:"releases"`
}

// OK reports that nothing happened that must never happen. Decisions that are not acceptable do not count here.
func (r Report) OK() bool { return len(r.Broken) == 0 && len(r.Violations) == 0 }

func report(all []Case, k *book, records []events.Record, m Mode) Report {
	rep := Report{Mode: m, Sources: []Count{}, Wrong: []Result{}, Broken: []string{}, Violations: []audit.Violation{}, Records: len(records)}
	byTask := map[events.Task][]events.Record{}
	for _, r := range records {
		byTask[r.Task] = append(byTask[r.Task], r)
	}
	sums := map[string]*Count{}
	rep.Total = newCount("all")
	for _, c := range all {
		t := k.turn(c.Task())
		res := judge(c, t, byTask[c.Task()])
		if sums[c.Source] == nil {
			one := newCount(c.Source)
			sums[c.Source] = &one
		}
		sums[c.Source].add(res)
		rep.Total.add(res)
		rep.Broken = append(rep.Broken, broken(res, t)...)
		if !res.acceptable() {
			rep.Wrong = append(rep.Wrong, res)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		rep.Sources = append(rep.Sources, *sums[name])
	}
	verified := audit.Verify(func(yield func(events.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	rep.Violations = append(rep.Violations, verified.Violations...)
	return rep
}

func newCount(source string) Count {
	return Count{Source: source, Decisions: map[events.DecisionKind]int{}}
}

func (c *Count) add(r Result) {
	c.Cases++
	c.Decisions[r.Decision]++
	c.Questions += r.Questions
	c.MostAsked = max(c.MostAsked, r.Questions)
	c.Answered += r.Answered
	c.Effects += r.Effects
	if r.acceptable() {
		c.Acceptable++
	}
}

func (r Result) acceptable() bool { return slices.Contains(r.Accept, r.Decision) }

// judge reads what became of a case from its records.
func judge(c Case, t *turn, records []events.Record) Result {
	res := Result{ID: c.ID, Source: c.Source, Accept: c.Accept, Counts: Counts{Answered: t.answered, Effects: t.ran}}
	asked := map[events.QuestionID]bool{}
	for _, r := range records {
		x := r.Transition
		if x == nil {
			continue
		}
		res.Decision = cmp.Or(res.Decision, x.Decision)
		res.Rule = cmp.Or(res.Rule, x.Why.Rule)
		res.End = x.Kind
		if x.Pause != nil && x.Pause.Kind == events.Clarification {
			asked[x.Pause.Question] = true
		}
		switch x.Kind {
		case events.Released:
			res.Releases++
		case events.Done:
			res.Recorded++
		default: // neither allows the tool to run nor says that it did
		}
	}
	res.Questions = len(asked)
	return res
}

// broken says what must never be.
func broken(r Result, t *turn) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, r.ID+": "+fmt.Sprintf(format, args...)) }
	if r.Effects > 1 || r.Effects > r.Releases {
		bad("the tool ran %d times for %d releases", r.Effects, r.Releases)
	}
	if r.Effects != r.Recorded {
		bad("the tool ran %d times and %d effects are recorded", r.Effects, r.Recorded)
	}
	if r.End == "" {
		bad("nothing was decided")
	}
	for _, reason := range t.refused {
		bad("the answer was refused as %s", reason)
	}
	if t.problem != nil {
		bad("%s", t.problem)
	}
	return out
}
