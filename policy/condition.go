package policy

import (
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Limits of one expression. At 10,000 an honest rule never stops and a runaway one ends within a few milliseconds.
const (
	maxCost       = 10_000
	maxExpression = 4_000 // code points
	maxNesting    = 50
)

// condition is a CEL expression that is checked when the file is read. The zero condition always holds.
type condition struct {
	text  string
	start place // of the expression's first character, if it stands on one line
	prg   cel.Program
}

func (c *condition) fromYAML(r *reader, path string, n ast.Node) {
	r.scalar(path, n, reflect.ValueOf(&c.text).Elem())
	c.start = placeOf(n)
	if t := n.GetToken(); t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		c.start.column++
	}
	if c.text == "" {
		r.problem(placeOf(n), path, "is empty; leave the key out for a rule that always holds")
	}
}

// holds evaluates the condition. An error means that nobody knows: the caller must stop.
func (c condition) holds(a cel.Activation) (bool, error) {
	if c.prg == nil {
		return true, nil
	}
	v, _, err := c.prg.Eval(a)
	if err != nil {
		return false, err
	}
	return v == types.True, nil
}

// toolFacts is the variable tool of conditions: its hints after MCP's defaults and the policy's trust were applied.
type toolFacts struct {
	Name        string `cel:"name"`
	Server      string `cel:"server"`
	ReadOnly    bool   `cel:"readOnly"`
	Destructive bool   `cel:"destructive"`
	Idempotent  bool   `cel:"idempotent"`
	OpenWorld   bool   `cel:"openWorld"`
}

// questionFacts is the variable question of the conditions of routes.
type questionFacts struct {
	Field string `cel:"field"`
	Role  string `cel:"role"`
	Kind  string `cel:"kind"` // clarification, approval or escalation
}

// languages are the environments of conditions: what a class, a rule and a route may speak of.
type languages struct{ class, rule, route *cel.Env }

func newLanguages() (languages, error) {
	class, err := cel.NewEnv(
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxNesting),
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[toolFacts](), reflect.TypeFor[questionFacts]()),
		cel.Variable("tool", cel.ObjectType("policy.toolFacts")), cel.Variable("agent", cel.StringType))
	if err != nil {
		return languages{}, err
	}
	dyn := cel.MapType(cel.StringType, cel.DynType)
	rule, err := class.Extend(cel.Variable("args", dyn), cel.Variable("state", dyn),
		cel.Variable("missing", cel.ListType(cel.StringType)), cel.Variable("requester", cel.StringType))
	if err != nil {
		return languages{}, err
	}
	route, err := rule.Extend(cel.Variable("question", cel.ObjectType("policy.questionFacts")))
	return languages{class, rule, route}, err
}

// compile checks and compiles a condition; what is wrong with it goes to r.
func (c *condition) compile(r *reader, path string, env *cel.Env) {
	if c.text == "" {
		return
	}
	checked, issues := env.Compile(c.text)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			r.problem(c.locate(e.Location), path, "%s", explain(env, e.Message))
		}
		return
	}
	switch out := checked.OutputType(); {
	case out.IsExactType(cel.DynType):
		r.problem(c.start, path, "the condition can be any value; compare it with one, such as … == true")
		return
	case !out.IsExactType(cel.BoolType):
		r.problem(c.start, path, "the condition is a %s; it must be true or false", out)
		return
	}
	prg, err := env.Program(checked, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		r.problem(c.start, path, "the condition cannot be run: %s", oneLine(err.Error()))
		return
	}
	c.prg = prg
}

// locate finds a place inside the expression in the file, as well as YAML's folding allows.
func (c *condition) locate(l common.Location) place {
	if l == nil || l.Line() > 1 || l.Column() < 0 || strings.Contains(c.text, "\n") {
		return c.start
	}
	return place{c.start.line, c.start.column + l.Column()}
}

// explain shortens a message of the checker and adds the name that was probably meant.
func explain(env *cel.Env, message string) string {
	message, _, _ = strings.Cut(oneLine(message), " expecting {") // the list of all tokens there are
	if name, ok := quoted(message, "undefined field '"); ok {
		return message + suggest(name, []string{"name", "server", "readOnly", "destructive", "idempotent", "openWorld", "field", "role", "kind"})
	}
	if name, ok := quoted(message, "undeclared reference to '"); ok {
		var known []string
		for _, v := range env.Variables() {
			known = append(known, v.Name())
		}
		return "there is no variable or function " + name + suggest(name, known)
	}
	return message
}

func quoted(message, before string) (string, bool) {
	_, rest, ok := strings.Cut(message, before)
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
