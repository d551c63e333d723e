package policy

import (
	"reflect"
	"strconv"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml/ast"
)

// trusted is one line of trust: a glob over servers, or {server, agent} globs.
type trusted struct {
	Server string `yaml:"server,required"`
	Agent  string `yaml:"agent"`
}

func (t *trusted) fromYAML(r *reader, path string, n ast.Node) {
	if text, ok := n.(*ast.StringNode); ok {
		t.Server = text.Value
		return
	}
	r.structure(path, n, reflect.ValueOf(t).Elem())
}

// jsonText is any value, kept as the JSON it stands for.
type jsonText struct{ raw events.Raw }

func (j *jsonText) fromYAML(r *reader, path string, n ast.Node) {
	v, ok := r.plain(path, n)
	if !ok {
		return
	}
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		r.problem(placeOf(n), path, "has no JSON form")
		return
	}
	j.raw = raw
}

// plain turns YAML into what JSON can say.
func (r *reader) plain(path string, n ast.Node) (any, bool) {
	r.places[path] = placeOf(n)
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.BoolNode:
		return v.Value, true
	case *ast.NullNode:
		return nil, true
	case *ast.IntegerNode:
		return v.Value, true
	case *ast.FloatNode:
		if text := events.Raw(v.Token.Value); text.IsValid() {
			return text, true
		}
		return events.Raw(strconv.FormatFloat(v.Value, 'g', -1, 64)), true
	case *ast.SequenceNode:
		return r.plainList(path, v)
	case ast.MapNode:
		return r.plainMap(path, n)
	}
	r.problem(placeOf(n), path, "has no JSON form; anchors, aliases, tags, .inf and .nan are not read")
	return nil, false
}

func (r *reader) plainList(path string, n *ast.SequenceNode) (any, bool) {
	list := make([]any, len(n.Values))
	all := true
	for i, item := range n.Values {
		v, ok := r.plain(path+"["+strconv.Itoa(i)+"]", item)
		list[i], all = v, all && ok
	}
	return list, all
}

func (r *reader) plainMap(path string, n ast.Node) (any, bool) {
	m := map[string]any{}
	all := true
	for _, p := range r.pairs(path, n) {
		v, ok := r.plain(join(path, p.key), p.value)
		m[p.key], all = v, all && ok
	}
	return m, all
}
