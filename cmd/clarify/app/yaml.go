package app

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Problem is one thing wrong with a configuration file, and where.
type Problem struct {
	File         string
	Line, Column int
	Path         string // such as channels.webhook[0].url; empty when the text is not YAML at all
	Text         string
}

func (p Problem) Error() string {
	at := ""
	if p.File != "" {
		at = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	if p.Path != "" {
		at += p.Path + ": "
	}
	return at + p.Text
}

// Problems are all that is wrong with a configuration file, in the order of the text.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// reader reads a configuration file strictly: keys that are unknown or come twice and values of the wrong kind are
// problems, each with its place. It goes on after a problem, so that one run shows all of them.
type reader struct {
	file     string
	problems Problems
	places   places
}

// places says where every key and item is, by path.
type places map[string]*token.Position

func (r *reader) problem(at *token.Position, path, format string, args ...any) {
	if at == nil {
		at = &token.Position{Line: 1, Column: 1}
	}
	r.problems = append(r.problems, Problem{r.file, at.Line, at.Column, path, fmt.Sprintf(format, args...)})
}

// at reports a problem of a path that was read, or of the closest one around it.
func (r *reader) at(path, format string, args ...any) {
	known := path
	for r.places[known] == nil && known != "" {
		known = known[:max(strings.LastIndexAny(known, ".["), 0)]
	}
	r.problem(r.places[known], path, format, args...)
}

// sorted are the problems in the order of the text.
func (r *reader) sorted() Problems {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.problems
}

// read checks the text against the type that into points to, and then decodes it.
func (r *reader) read(text []byte, into any) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentGroupType {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		r.problem(nil, "", "the file is empty; start it with policy: <file>")
		return
	case 1:
	default:
		r.problem(place(bodies[1]), "", "a configuration holds one document; remove the second")
		return
	}
	r.check("", bodies[0], reflect.TypeOf(into).Elem())
	if len(r.problems) > 0 {
		return
	}
	if err := yaml.NodeToValue(bodies[0], into); err != nil {
		r.syntax(err)
	}
}

func (r *reader) syntax(err error) {
	if y, ok := errors.AsType[yaml.Error](err); ok && y.GetToken() != nil {
		r.problem(y.GetToken().Position, "", "%s", y.GetMessage())
		return
	}
	r.problem(nil, "", "%s", err.Error())
}

func place(n ast.Node) *token.Position {
	if t := n.GetToken(); t != nil {
		return t.Position
	}
	return nil
}

// check walks a node beside the type it will become.
func (r *reader) check(path string, n ast.Node, t reflect.Type) {
	if r.places[path] == nil {
		r.places[path] = place(n)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.problem(place(n), path, "anchors, aliases and tags are not read; write the value out")
		return
	}
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); ok {
		r.text(path, n, text)
		return
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		r.mapping(path, n, t)
	case reflect.Slice:
		r.sequence(path, n, t)
	default:
		r.scalar(path, n, t.Kind())
	}
}

func (r *reader) text(path string, n ast.Node, into encoding.TextUnmarshaler) {
	s, ok := n.(*ast.StringNode)
	if _, isDuration := into.(*events.Duration); isDuration && !ok {
		r.problem(place(n), path, "is %s, not a duration; write it like 10m or 720h", nameOf(n))
		return
	}
	if !ok {
		r.problem(place(n), path, "is %s, not text", nameOf(n))
		return
	}
	err := into.UnmarshalText([]byte(s.Value))
	if inv, is := errors.AsType[*events.Invalid](err); is {
		r.problem(place(n), path, "%s; %s", inv.Problem, inv.Fix)
	} else if err != nil {
		r.problem(place(n), path, "%s", err)
	}
}

func (r *reader) sequence(path string, n ast.Node, t reflect.Type) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(place(n), path, "is %s, not a list", nameOf(n))
		return
	}
	for i, item := range list.Values {
		r.check(fmt.Sprintf("%s[%d]", path, i), item, t.Elem())
	}
}

func (r *reader) mapping(path string, n ast.Node, t reflect.Type) {
	if n.Type() == ast.NullType && t.Kind() == reflect.Struct && path != "" {
		return // `cli:` alone turns a channel on
	}
	m, ok := n.(ast.MapNode)
	if !ok {
		r.problem(place(n), path, "is %s, not a mapping", nameOf(n))
		return
	}
	members := membersOf(t)
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().GetToken()
		at := join(path, key.Value)
		of, known := members[key.Value]
		switch {
		case seen[key.Value]:
			r.problem(key.Position, at, "is there already")
		case t.Kind() == reflect.Map:
			r.places[at] = key.Position
			r.check(at, it.Value(), t.Elem())
		case known:
			r.places[at] = key.Position
			r.check(at, it.Value(), of)
		default:
			r.problem(key.Position, at, "there is no such key%s", suggest(key.Value, members))
		}
		seen[key.Value] = true
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// membersOf lists the keys of a struct by the tags that the decoder reads: yaml, and json where there is none.
func membersOf(t reflect.Type) map[string]reflect.Type {
	members := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return members
	}
	for field := range t.Fields() {
		if field.Anonymous {
			maps.Copy(members, membersOf(field.Type))
			continue
		}
		tag, ok := field.Tag.Lookup("yaml")
		if !ok {
			tag = field.Tag.Get("json")
		}
		if name, _, _ := strings.Cut(tag, ","); name != "" && name != "-" {
			members[name] = field.Type
		}
	}
	return members
}

func (r *reader) scalar(path string, n ast.Node, k reflect.Kind) {
	right := false
	switch k {
	case reflect.String:
		right = n.Type() == ast.StringType || n.Type() == ast.LiteralType
		if n.Type() == ast.IntegerType || n.Type() == ast.FloatType || n.Type() == ast.BoolType {
			r.problem(place(n), path, "is %s, not text; put it in quotes", nameOf(n))
			return
		}
	case reflect.Bool:
		right = n.Type() == ast.BoolType
	case reflect.Int:
		right = n.Type() == ast.IntegerType
	}
	if !right {
		want := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number"}
		r.problem(place(n), path, "is %s, not %s", nameOf(n), want[k])
	}
}

func nameOf(n ast.Node) string {
	switch n.Type() {
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.NullType:
		return "empty"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	}
	return "something else"
}

// suggest ends a problem with the key that was probably meant, and otherwise with those there are.
func suggest(key string, members map[string]reflect.Type) string {
	names := make([]string, 0, len(members))
	best, least := "", 3
	for name := range members {
		names = append(names, name)
		if d := distance(key, name); d < least || d == least && name < best {
			best, least = name, d
		}
	}
	if best != "" && least*2 <= len(key) {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	slices.Sort(names)
	return "; known are " + strings.Join(names, ", ")
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
