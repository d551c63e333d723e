package policy

import (
	"github.com/clarify-broker/clarify/events"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSpread is how many subschemas one value may be held against. A schema of a few lines can ask for 2^40 of them, by
// references that double at each level; an honest one of 500 properties asks for about a thousand.
const maxSpread = 50_000

// spread is, per depth of nesting of a value, an upper bound of the subschemas it is held against, up to maxSpread.
// Deeper values have the last bound.
type spread []int

func (s spread) at(depth int) int { return s[min(depth, len(s)-1)] }

type spreader []map[*jsonschema.Schema]int // bounds by depth

// newSpread counts depth by depth until another level adds nothing or the limit is reached.
func newSpread(root *jsonschema.Schema) spread {
	var s spread
	var w spreader
	for d := range events.MaxDepth + 1 {
		w = append(w, map[*jsonschema.Schema]int{})
		n := w.count(root, d)
		if d > 0 && n == s[d-1] {
			break
		}
		s = append(s, n)
		if n >= maxSpread {
			break
		}
	}
	return s
}

func (w spreader) count(s *jsonschema.Schema, depth int) int {
	if n, ok := w[depth][s]; ok {
		return n
	}
	w[depth][s] = maxSpread // what refers back to itself at one level never ends
	n := 1
	for _, sub := range sameLevel(s) {
		n = min(n+w.count(sub, depth), maxSpread)
	}
	if depth > 0 {
		for _, sub := range nextLevel(s) {
			n = min(n+w.count(sub, depth-1), maxSpread)
		}
	}
	w[depth][s] = n
	return n
}

// sameLevel lists what a value is held against besides the schema itself.
func sameLevel(s *jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	subs = add(subs, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		subs = add(subs, s.DynamicRef.Ref)
	}
	subs = add(subs, s.AllOf...)
	subs = add(subs, s.AnyOf...)
	subs = add(subs, s.OneOf...)
	for _, d := range s.DependentSchemas {
		subs = add(subs, d)
	}
	for _, d := range s.Dependencies {
		subs = addAny(subs, d)
	}
	return subs
}

// nextLevel lists what a value's members and items are held against.
func nextLevel(s *jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	subs = add(subs, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems)
	subs = add(subs, s.PrefixItems...)
	for _, p := range s.Properties {
		subs = add(subs, p)
	}
	for _, p := range s.PatternProperties {
		subs = add(subs, p)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		subs = addAny(subs, v)
	}
	return subs
}

func add(subs []*jsonschema.Schema, more ...*jsonschema.Schema) []*jsonschema.Schema {
	for _, s := range more {
		if s != nil {
			subs = append(subs, s)
		}
	}
	return subs
}

func addAny(subs []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return add(subs, v)
	case []*jsonschema.Schema:
		return add(subs, v...)
	}
	return subs
}

// depth is how deep a decoded value nests; a scalar is 0.
func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			deepest = max(deepest, 1+depth(item))
		}
	case []any:
		for _, item := range v {
			deepest = max(deepest, 1+depth(item))
		}
	}
	return deepest
}
