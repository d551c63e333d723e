package policy

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clarify-broker/clarify/events"
)

// maxShown is how much of a value people see, in runes.
const maxShown = 500

const masked = "••••"

// Shown lists the arguments of a candidate as people see them: those the policy shows, in its order, or all by name;
// redacted where it says so, also inside values, and bounded in length.
func (p *Policy) Shown(c events.Candidate, b events.Basis) []events.Shown {
	names := slices.Sorted(maps.Keys(c.Arguments))
	if len(b.Traits.Show) > 0 {
		names = slices.Clone(b.Traits.Show)
	}
	out := make([]events.Shown, 0, len(names))
	for _, name := range names {
		if v, has := c.Arguments[name]; has {
			out = append(out, p.shown(name, v, b.Traits.Redact))
		}
	}
	return out
}

// Assumed lists what a decision assumed as people see it.
func (p *Policy) Assumed(b events.Basis) []events.Shown {
	out := make([]events.Shown, 0, len(b.Assumptions))
	for _, a := range b.Assumptions {
		out = append(out, p.shown(a.Field, a.Value, b.Traits.Redact))
	}
	return out
}

func (p *Policy) shown(name string, s events.Secret, redact []string) events.Shown {
	v, err := decode(s.Reveal())
	if err != nil {
		return events.Shown{Name: name, Value: masked}
	}
	if p.Redacted(name) || slices.Contains(redact, name) {
		return events.Shown{Name: name, Value: p.mask(plainText(v))}
	}
	return events.Shown{Name: name, Value: shorten(plainText(p.redactInside(v)), maxShown)}
}

// Redacted reports that an argument of this name is never shown in full: by a glob of redact, or since a field of this
// name is secret in any tool.
func (p *Policy) Redacted(field string) bool {
	lower := strings.ToLower(field)
	return p.secret[field] || slices.ContainsFunc(p.file.Redact.Fields, func(g string) bool { return globs(strings.ToLower(g), lower) })
}

// redactInside masks the members of a value that would be redacted as arguments.
func (p *Policy) redactInside(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			if out[name] = p.redactInside(item); p.Redacted(name) {
				out[name] = p.mask(plainText(item))
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = p.redactInside(item)
		}
		return out
	}
	return v
}

// mask hides a value. Its last four characters stay where the policy keeps them and they are a small part of it.
func (p *Policy) mask(text string) string {
	if n := utf8.RuneCountInString(text); p.file.Redact.Keep == "last4" && n >= 12 {
		return masked + string([]rune(text)[n-4:])
	}
	return masked
}

// redactedNames lists the arguments of the call that are never shown in full.
func (c *call) redactedNames() []string {
	names := map[string]bool{}
	note := func(name string) {
		if c.entry.Fields[name].Secret || c.p.Redacted(name) {
			names[name] = true
		}
	}
	for name := range c.in.Candidate.Arguments {
		note(name)
	}
	for _, a := range c.assumed {
		note(a.Field)
	}
	for _, m := range c.in.Candidate.Missing {
		note(m.Field)
	}
	for name := range c.entry.Fields {
		note(name)
	}
	return slices.Sorted(maps.Keys(names))
}
