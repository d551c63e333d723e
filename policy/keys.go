package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// pair is one key of a mapping and its value.
type pair struct {
	key   string
	at    place
	value ast.Node
}

// pairs lists the members of a mapping; a key that is not plain text or that comes twice is a problem.
func (r *reader) pairs(path string, n ast.Node) []pair {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.problem(placeOf(n), path, "is %s, not a mapping", nameOf(n))
		return nil
	}
	var out []pair
	seen := map[string]place{}
	for it := m.MapRange(); it.Next(); {
		key, ok := it.Key().(ast.ScalarNode)
		if !ok {
			r.problem(placeOf(it.Key()), path, "has a key that is not plain text")
			continue
		}
		name := fmt.Sprint(key.GetValue())
		at := placeOf(key)
		if first, twice := seen[name]; twice {
			r.problem(at, join(path, name), "is already there in line %d", first.line)
			continue
		}
		seen[name] = at
		out = append(out, pair{name, at, it.Value()})
	}
	return out
}

func (r *reader) mapping(path string, n ast.Node, v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	for _, p := range r.pairs(path, n) {
		item := reflect.New(v.Type().Elem()).Elem()
		r.value(join(path, p.key), p.value, item)
		m.SetMapIndex(reflect.ValueOf(p.key), item)
	}
	v.Set(m)
}

// member is one key a struct knows.
type member struct {
	name     string
	required bool
	hint     string
	oneOf    []string
	value    reflect.Value
}

// members lists the keys of a struct, those of embedded structs among them.
func members(v reflect.Value) []member {
	var out []member
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			out = append(out, members(v.Field(i))...)
			continue
		}
		tag, ok := f.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		out = append(out, member{name, option == "required", f.Tag.Get("hint"), strings.Fields(f.Tag.Get("oneof")), v.Field(i)})
	}
	return out
}

func (r *reader) structure(path string, n ast.Node, v reflect.Value) {
	known := members(v)
	names := make([]string, len(known))
	for i, m := range known {
		names[i] = m.name
	}
	given := r.pairs(path, n)
	for _, p := range given {
		i := slices.Index(names, p.key)
		if i < 0 {
			r.problem(p.at, join(path, p.key), "there is no such key%s; known are %s", suggest(p.key, names), strings.Join(names, ", "))
			continue
		}
		r.value(join(path, p.key), p.value, known[i].value)
		r.legal(join(path, p.key), known[i])
	}
	for _, m := range known {
		if m.required && !slices.ContainsFunc(given, func(p pair) bool { return p.key == m.name }) {
			text := "is missing"
			if m.hint != "" {
				text += "; " + m.hint
			}
			r.problem(placeOf(n), join(path, m.name), "%s", text)
		}
	}
}

// legal checks a string, or each of a list of strings, against the texts its tag allows.
func (r *reader) legal(path string, m member) {
	if len(m.oneOf) == 0 {
		return
	}
	check := func(path string, v reflect.Value) {
		if text := v.String(); text != "" && !slices.Contains(m.oneOf, text) {
			r.problem(r.at(path), path, "%.40q is not one of %s%s", text, strings.Join(m.oneOf, ", "), suggest(text, m.oneOf))
		}
	}
	if m.value.Kind() != reflect.Slice {
		check(path, m.value)
		return
	}
	for i := range m.value.Len() {
		check(fmt.Sprintf("%s[%d]", path, i), m.value.Index(i))
	}
}
