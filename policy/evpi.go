package policy

import (
	"maps"
	"slices"
)

// belief is what the agent could mean, how likely each is, and what mistaking one for another costs: the sum of the
// severities of the fields that bear an effect and differ. Stopping costs stop whatever is meant.
type belief struct {
	alternatives []alternative
	masses       []float64 // sum to 1
	severity     map[string]float64
	fields       []string // the keys of severity, in order
	stop         float64
}

func (c *call) belief(alternatives []alternative) belief {
	b := belief{alternatives: alternatives, severity: map[string]float64{}, stop: orDefault(c.p.file.Questions.StopCost, 20)}
	b.masses = c.masses(alternatives)
	for _, a := range alternatives {
		for name := range a.values {
			if c.bearsEffect(name) {
				b.severity[name] = c.severity(name)
			}
		}
	}
	b.fields = slices.Sorted(maps.Keys(b.severity))
	return b
}

// evpi is the expected value of learning a field exactly: the risk now, less the risk that is left once the field is known.
// It is never negative, and 0 exactly when no answer would change what is best to do.
func (b belief) evpi(field string) float64 {
	all := make([]int, len(b.alternatives))
	groups := map[string][]int{}
	var order []string
	for i, a := range b.alternatives {
		all[i] = i
		key := a.values[field].text
		if _, seen := groups[key]; !seen {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	after := 0.0
	for _, key := range order {
		after += b.risk(groups[key])
	}
	return max(round(b.risk(all)-after), 0)
}

// risk is the least expected loss over a group of alternatives, times the group's mass: of acting on the best of them, or
// of stopping. Loss is a sum over fields, so that a group of n is judged in n steps and not in n².
func (b belief) risk(group []int) float64 {
	mass := 0.0
	byValue := make([]map[string]float64, len(b.fields))
	for f := range byValue {
		byValue[f] = map[string]float64{}
	}
	for _, i := range group {
		mass += b.masses[i]
		for f, name := range b.fields {
			byValue[f][b.alternatives[i].values[name].text] += b.masses[i]
		}
	}
	best := b.stop * mass
	for _, i := range group {
		loss := 0.0
		for f, name := range b.fields {
			loss += b.severity[name] * (mass - byValue[f][b.alternatives[i].values[name].text])
		}
		best = min(best, loss)
	}
	return best
}
