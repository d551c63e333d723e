package policy

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A reader turns YAML into the structs of file.go, strictly: unknown and duplicate keys, wrong types, anchors, aliases and
// tags are problems, each with its place. It goes on after a problem, so that one run shows all of them.
//
// Struct tags: `yaml:"name"` or `yaml:"name,required"`, `oneof:"a b c"` for the legal texts of a string, and `hint:"…"` for
// what to write where a required key is missing.
type reader struct {
	file     string
	problems Problems
	places   map[string]place // of every value that was read, by path
}

type place struct{ line, column int }

// fromYAML is implemented by types whose YAML has more than one form.
type fromYAML interface {
	fromYAML(r *reader, path string, n ast.Node)
}

func (r *reader) problem(at place, path, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, at.line, at.column, path, fmt.Sprintf(format, args...)})
}

// at is where the value of a path stands, or else the closest value around it.
func (r *reader) at(path string) place {
	for {
		if p, ok := r.places[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return place{1, 1}
		}
		path = path[:cut]
	}
}

// placeOf is where a value starts: a block mapping's own token is its first colon.
func placeOf(n ast.Node) place {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return placeOf(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(m.Key)
	}
	return tokenPlace(n.GetToken())
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, t.Position.Column}
}

// document parses the text and reads its one document into v, a pointer to a struct.
func (r *reader) document(text []byte, v any) {
	if line := tooDeep(text); line > 0 {
		r.problem(place{line, 1}, "", "nests deeper than %d levels", maxNest)
		return
	}
	doc, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, text := place{1, 1}, "is not YAML"
		if syn, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			at, text = tokenPlace(syn.Token), syn.Message
		}
		r.problem(at, "", "%s", text)
		return
	}
	var bodies []ast.Node
	for _, d := range doc.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		r.problem(place{1, 1}, "", "the file is empty; start it with apiVersion: clarify/v1 and kind: Policy")
	case 1:
		r.value("", bodies[0], reflect.ValueOf(v).Elem())
	default:
		r.problem(placeOf(bodies[1]), "", "a policy file holds one document; remove the second")
	}
}

// maxNest is far beyond any policy. The parser takes time that grows with the square of the depth.
const maxNest = 64

// tooDeep returns the line at which brackets or list marks pile up, or 0. Brackets inside text count too, until the next
// line that starts a key of the whole file.
func tooDeep(text []byte) int {
	depth := 0
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(line) > 0 && !bytes.ContainsRune([]byte(" \t[]{}#"), rune(line[0])) {
			depth = 0
		}
		marks := 0
		for _, b := range line {
			switch b {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?':
				marks++
			case ' ', '\t':
			default:
				marks = 0
			}
			if depth > maxNest || marks > maxNest {
				return i + 1
			}
		}
	}
	return 0
}

func (r *reader) value(path string, n ast.Node, v reflect.Value) {
	r.places[path] = placeOf(n)
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.problem(placeOf(n), path, "anchors, aliases and tags are not read; write the value out")
		return
	}
	if custom, ok := reflect.TypeAssert[fromYAML](v.Addr()); ok {
		custom.fromYAML(r, path, n)
		return
	}
	if d, ok := reflect.TypeAssert[*events.Duration](v.Addr()); ok {
		r.duration(path, n, d)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(path, n, v.Elem())
	case reflect.Struct:
		r.structure(path, n, v)
	case reflect.Map:
		r.mapping(path, n, v)
	case reflect.Slice:
		r.sequence(path, n, v)
	default:
		r.scalar(path, n, v)
	}
}

func (r *reader) duration(path string, n ast.Node, d *events.Duration) {
	text, ok := n.(*ast.StringNode)
	if !ok {
		r.problem(placeOf(n), path, "is %s, not a duration; write it like 10m or 1h30m", nameOf(n))
		return
	}
	v, err := time.ParseDuration(text.Value)
	if err != nil || v <= 0 {
		r.problem(placeOf(n), path, "%.20q is not a duration; write it like 10m or 1h30m", text.Value)
		return
	}
	*d = events.Duration(v)
}

func (r *reader) scalar(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		switch s := n.(type) {
		case *ast.StringNode:
			v.SetString(s.Value)
			return
		case *ast.LiteralNode:
			v.SetString(s.Value.Value)
			return
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			r.problem(placeOf(n), path, "is %s, not text; put it in quotes", nameOf(n))
			return
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
	case reflect.Int:
		if i, ok := n.(*ast.IntegerNode); ok {
			if u, ok := i.Value.(uint64); ok && u < 1<<31 {
				v.SetInt(int64(u))
				return
			}
			r.problem(placeOf(n), path, "is out of range; use 0 or a whole number below 2147483648")
			return
		}
	case reflect.Float64:
		if f, ok := numberOf(n); ok {
			v.SetFloat(f)
			return
		}
	}
	r.problem(placeOf(n), path, "is %s, not %s", nameOf(n), wanted(v.Kind()))
}

func numberOf(n ast.Node) (float64, bool) {
	switch f := n.(type) {
	case *ast.FloatNode:
		return f.Value, true
	case *ast.IntegerNode:
		switch i := f.Value.(type) {
		case uint64:
			return float64(i), true
		case int64:
			return float64(i), true
		}
	}
	return 0, false
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "a mapping"
}

func nameOf(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.InfinityNode, *ast.NanNode:
		return "infinity or NaN"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "a mapping"
	}
	return "something else"
}

func (r *reader) sequence(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(placeOf(n), path, "is %s, not a list", nameOf(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		r.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	v.Set(list)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
