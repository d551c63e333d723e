package policy

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

// maxAlternatives is how many of the calls an agent could mean are looked at, the heaviest first.
const maxAlternatives = 256

// alternative is one of the calls the agent could mean, as far as it is still possible.
type alternative struct {
	values map[string]value
	label  string
	weight float64 // orders options; a trusted agent's also says how likely it is
}

type value struct {
	text   string // canonical JSON
	plain  any    // decoded
	secret events.Secret
}

// alternatives lists the calls the agent could still mean, the likeliest first. Those that contradict what a person said,
// or that the tool would refuse, are out.
func (c *call) alternatives() []alternative {
	var out []alternative
	for _, a := range c.in.Candidate.Candidates {
		if alt, ok := c.alternative(a); ok {
			out = append(out, alt)
		}
	}
	slices.SortStableFunc(out, func(a, b alternative) int { return cmp.Compare(b.weight, a.weight) })
	return out[:min(len(out), maxAlternatives)]
}

func (c *call) alternative(a events.Alternative) (alternative, bool) {
	alt := alternative{values: make(map[string]value, len(a.Arguments)), label: a.Label, weight: a.Weight}
	if alt.weight == 0 {
		alt.weight = 1
	}
	for name, given := range a.Arguments {
		plain, err := decode(given.Reveal())
		if err != nil || !c.schema.takes(name, plain) || slices.Contains(c.in.Asks.Declined, name) {
			return alt, false
		}
		v := value{canonical(given), plain, given}
		if said, has := c.in.Candidate.Arguments[name]; has && c.origin(name) == events.FromUser && canonical(said) != v.text {
			return alt, false
		}
		alt.values[name] = v
	}
	return alt, len(alt.values) > 0
}

// canonical is the one text of a value, to compare by.
func canonical(s events.Secret) string {
	if raw := s.Reveal(); len(raw) > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) // a string without escapes is canonical as it stands
	}
	text, err := events.Canonical(s.Reveal())
	if err != nil {
		return string(s.Reveal())
	}
	return string(text)
}

// bearsEffect reports that a field's value can change what the call does: all fields do unless the file calls them plain.
func (c *call) bearsEffect(name string) bool { return c.entry.Fields[name].Role != events.RolePlain }

// sameEffect reports that it makes no difference which of the alternatives is meant. One alternative is always the same
// as itself.
func (c *call) sameEffect(alternatives []alternative) bool {
	if len(alternatives) == 0 {
		return false
	}
	first := c.effect(alternatives[0])
	return !slices.ContainsFunc(alternatives, func(a alternative) bool { return c.effect(a) != first })
}

// effect is what an alternative would do: its values, but for those of plain fields.
func (c *call) effect(a alternative) string {
	var parts []string
	for name, v := range a.values {
		if c.bearsEffect(name) {
			parts = append(parts, name+"="+v.text)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00")
}

// masses are how likely each alternative is, summing to 1. An untrusted agent's weights only order options.
func (c *call) masses(alternatives []alternative) []float64 {
	out := make([]float64, len(alternatives))
	total := 0.0
	for i, a := range alternatives {
		out[i] = 1
		if c.trusted {
			out[i] = a.weight
		}
		total += out[i]
	}
	for i := range out {
		out[i] /= total
		if math.IsInf(total, 0) || total == 0 {
			out[i] = 1 / float64(len(out))
		}
	}
	return out
}
