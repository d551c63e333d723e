package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

const (
	maxBatch  = 3  // fields of one question
	maxScored = 16 // open fields that are compared; the rest wait for the next question
)

// scored is an open field with the question that would be asked, and what it would be worth.
type scored struct {
	open
	field    events.Field
	severity float64
	covered  bool // the alternatives say what it can be
	choices  int  // before the list was cut
	evpi     float64
	cost     float64
}

func (s scored) net() float64 { return s.evpi - s.cost }

func (s scored) answerable() bool { return len(s.field.Options) > 0 || s.field.FreeText != nil }

// rank orders what could be asked, the most useful question first.
func (c *call) rank(fields []open, alternatives []alternative) []scored {
	slices.SortFunc(fields, c.before)
	fields = fields[:min(len(fields), maxScored)]
	belief := c.belief(alternatives)
	out := make([]scored, len(fields))
	for i, o := range fields {
		out[i] = c.score(o, belief)
	}
	slices.SortStableFunc(out, func(a, b scored) int {
		return cmp.Or(cmp.Compare(round(b.net()), round(a.net())), cmp.Compare(b.severity, a.severity),
			c.before(a.open, b.open), cmp.Compare(a.choices, b.choices))
	})
	return c.preferShort(out)
}

// round takes away what only the order of additions decides.
func round(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// preferShort puts a coarser field first when the best one has more choices than people are shown and nobody looked it up.
func (c *call) preferShort(list []scored) []scored {
	limit := orDefault(c.p.file.Questions.MaxOptions, 5)
	if list[0].choices <= limit || !list[0].covered {
		return list
	}
	for i, s := range list[1:] {
		if s.covered && s.choices <= limit && s.net() > 0 {
			return append([]scored{s}, slices.Delete(slices.Clone(list), i+1, i+2)...)
		}
	}
	return list
}

// score works out a field's question, what knowing the answer is worth and what asking costs, on the scale of severity.
func (c *call) score(o open, b belief) scored {
	s := scored{open: o, severity: c.severity(o.name)}
	choices, covered := c.choices(o, b)
	s.covered, s.choices = covered, len(choices)
	s.field = c.fieldOf(o, choices, covered)
	q := c.p.file.Questions
	stop := orDefault(q.StopCost, 20)
	if covered && len(b.alternatives) > 1 {
		s.evpi = b.evpi(o.name)
	} else {
		n := 100.0 // any text: as good as a hundred values
		if len(choices) > 0 {
			n = float64(max(len(choices), 2))
		}
		s.evpi = min(s.severity*(1-1/n), stop)
	}
	s.cost = orDefault(q.Cost.Base, 1) + orDefault(q.Cost.PerOption, 0.2)*float64(len(choices)) +
		orDefault(q.Cost.Repeat, 10)*float64(c.in.Asks.PerField[o.name])
	if c.p.Redacted(o.name) || o.rule.Secret {
		s.cost += orDefault(q.Cost.Sensitive, 5)
	}
	return s
}

// severity is what a wrong value of a field costs.
func (c *call) severity(name string) float64 {
	f := c.entry.Fields[name]
	q := c.p.file.Questions.Severity
	switch {
	case f.Severity != nil:
		return *f.Severity
	case f.Role == events.RolePlain, c.worth.Consequence == "low":
		return orDefault(q.Low, 1)
	}
	return orDefault(q.High, 100)
}
