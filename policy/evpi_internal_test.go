package policy

import (
	"math"
	"testing"
)

// beliefOf makes a belief from rows of values, the last of each its mass.
func beliefOf(severity map[string]float64, stop float64, fields []string, rows [][]float64) belief {
	b := belief{severity: severity, stop: stop}
	for _, f := range fields {
		if _, bears := severity[f]; bears {
			b.fields = append(b.fields, f)
		}
	}
	total := 0.0
	for _, r := range rows {
		a := alternative{values: map[string]value{}}
		for i, f := range fields {
			a.values[f] = value{text: string(rune('a' + int(r[i])))}
		}
		b.alternatives = append(b.alternatives, a)
		b.masses = append(b.masses, r[len(fields)])
		total += r[len(fields)]
	}
	for i := range b.masses {
		b.masses[i] /= total
	}
	return b
}

// TestEVPI holds the worked examples of what a question is worth.
func TestEVPI(t *testing.T) {
	never := math.Inf(1) // stopping is not to be had
	id := []string{"id"}
	thirds := [][]float64{{0, 1}, {1, 1}, {2, 1}}
	order := [][]float64{{0, 0, .45}, {0, 1, .05}, {1, 0, .27}, {1, 1, .03}, {2, 0, .18}, {2, 1, .02}}
	towns := [][]float64{{0, 0, .3}, {1, 1, .25}, {2, 2, .2}, {3, 0, .15}, {4, 1, .1}}
	orderLoss := map[string]float64{"order": 100, "reason": 2}
	for _, c := range []struct {
		name  string
		b     belief
		field string
		want  float64
		risk  float64
	}{
		{"three_records", beliefOf(map[string]float64{"id": 1}, never, id, thirds), "id", 0.666666667, 0.666666667},
		{"three_records_and_stopping_is_cheaper", beliefOf(map[string]float64{"id": 100}, 20, id, thirds), "id", 20, 20},
		{"one_of_three_is_likely", beliefOf(map[string]float64{"id": 100}, 20, id, [][]float64{{0, .9}, {1, .05}, {2, .05}}), "id", 10, 10},
		{"one_of_three_is_all_but_certain", beliefOf(map[string]float64{"id": 100}, 20, id, [][]float64{{0, .99}, {1, .005}, {2, .005}}), "id", 1, 1},
		{"no_field_bears_an_effect", beliefOf(nil, 20, id, thirds), "id", 0, 0},
		{"which_order", beliefOf(orderLoss, never, []string{"order", "reason"}, order), "order", 50, 50.2},
		{"for_which_reason", beliefOf(orderLoss, never, []string{"order", "reason"}, order), "reason", 0.2, 50.2},
		{"by_town", beliefOf(map[string]float64{"id": 1}, never, []string{"id", "town"}, towns), "town", 0.45, 0.7},
		{"by_id", beliefOf(map[string]float64{"id": 1}, never, []string{"id", "town"}, towns), "id", 0.7, 0.7},
		{"masses_that_do_not_sum_to_one", beliefOf(map[string]float64{"id": 1}, never, id, [][]float64{{0, .5}, {1, .4}}), "id", 0.444444444, 0.444444444},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := make([]int, len(c.b.alternatives))
			for i := range all {
				all[i] = i
			}
			if got := c.b.evpi(c.field); math.Abs(got-c.want) > 1e-8 {
				t.Errorf("worth %v, want %v", got, c.want)
			}
			if got := c.b.risk(all); math.Abs(got-c.risk) > 1e-8 {
				t.Errorf("risk %v, want %v", got, c.risk)
			}
		})
	}
}
