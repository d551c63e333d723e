package policy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	schemaURL = "mem:///schema"
	maxKept   = 512 // compiled schemas a policy keeps
)

// schema is the compiled JSON Schema of a tool's arguments.
type schema struct {
	compiled *jsonschema.Schema
	fields   []string              // names under properties, as the text orders them
	texts    map[string]events.Raw // their subschemas, each able to stand alone
	closed   bool                  // no other arguments are allowed
	spread   spread
}

// compileSchema reads a schema. Nothing it refers to is loaded: neither files nor addresses.
func compileSchema(raw events.Raw) (*schema, error) {
	doc, err := decode(raw)
	if err != nil {
		return nil, errors.New("the schema is not JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.UseRegexpEngine((&patterns{}).compile)
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	s := &schema{compiled: compiled, closed: compiled.AdditionalProperties == false, spread: newSpread(compiled)}
	s.texts, s.fields = properties(raw)
	return s, nil
}

// properties lists the arguments a schema speaks of. Whatever a subschema may refer to comes along with it.
func properties(raw events.Raw) (map[string]events.Raw, []string) {
	var root struct {
		Schema      events.Raw `json:"$schema"`
		Defs        events.Raw `json:"$defs"`
		Definitions events.Raw `json:"definitions"`
		Properties  events.Raw `json:"properties"`
	}
	if json.Unmarshal(raw, &root) != nil || root.Properties.Kind() != '{' {
		return nil, nil
	}
	texts := map[string]events.Raw{}
	var names []string
	dec := jsontext.NewDecoder(bytes.NewReader(root.Properties))
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		key := name.String()
		text, err := dec.ReadValue()
		if err != nil {
			break
		}
		names = append(names, key)
		texts[key] = standalone(bytes.Clone(text), map[string]events.Raw{
			"$schema": root.Schema, "$defs": root.Defs, "definitions": root.Definitions,
		})
	}
	return texts, names
}

// standalone gives a subschema the definitions of the whole. One that refers to other parts of the whole has no text.
func standalone(text events.Raw, around map[string]events.Raw) events.Raw {
	refers := strings.Contains(string(text), `"$ref"`)
	var members map[string]events.Raw
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	for name, def := range around {
		if len(def) == 0 || (name != "$schema" && !refers) {
			continue
		}
		if _, own := members[name]; !own {
			members[name] = def
		}
	}
	out, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return nil
	}
	if refers {
		if _, err := compileSchema(out); err != nil {
			return nil
		}
	}
	return out
}

// findings are what is wrong with arguments, by what can be done about it.
type findings struct {
	absent []string // required and not there: can be asked
	bad    []string // arguments whose value the schema refuses: can be asked
	broken bool     // wrong in a way no value of one argument would mend
}

// check validates arguments. A nil schema finds nothing.
func (s *schema) check(args map[string]any) findings {
	var f findings
	if s == nil {
		return f
	}
	if s.spread.at(depth(args)) >= maxSpread {
		f.broken = true
		return f
	}
	err := s.compiled.Validate(args)
	if err == nil {
		return f
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		f.broken = true
		return f
	}
	f.collect(invalid)
	slices.Sort(f.absent)
	f.absent = slices.Compact(f.absent)
	slices.Sort(f.bad)
	f.bad = slices.Compact(f.bad)
	return f
}

func (f *findings) collect(e *jsonschema.ValidationError) {
	if len(e.InstanceLocation) > 0 {
		f.bad = append(f.bad, e.InstanceLocation[0])
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		f.absent = append(f.absent, k.Missing...)
		return
	case *kind.DependentRequired:
		f.absent = append(f.absent, k.Missing...)
		return
	}
	if len(e.Causes) == 0 {
		f.broken = true
	}
	for _, c := range e.Causes {
		f.collect(c)
	}
}

// takes reports whether one value suits one argument.
func (s *schema) takes(field string, v any) bool {
	if s == nil {
		return true
	}
	p, ok := s.compiled.Properties[field]
	if !ok {
		return !s.closed
	}
	return s.spread.at(1+depth(v)) < maxSpread && p.Validate(v) == nil
}

// has reports whether the arguments may hold a field of this name.
func (s *schema) has(field string) bool {
	if s == nil {
		return true
	}
	_, ok := s.compiled.Properties[field]
	return ok || !s.closed
}

func (s *schema) requires(field string) bool {
	return s != nil && slices.Contains(s.compiled.Required, field)
}

// order is where a field stands in the schema's text; fields it does not speak of come last.
func (s *schema) order(field string) int {
	if s != nil {
		if i := slices.Index(s.fields, field); i >= 0 {
			return i
		}
	}
	return 1 << 20
}

func (s *schema) text(field string) events.Raw {
	if s == nil {
		return nil
	}
	return s.texts[field]
}

// values returns what a field can be when the schema lists it: an enum, or true and false.
func (s *schema) values(field string) []any {
	if s == nil {
		return nil
	}
	p, ok := s.compiled.Properties[field]
	if !ok {
		return nil
	}
	for range 8 { // a field that only refers to its definition
		if p.Enum != nil || p.Ref == nil {
			break
		}
		p = p.Ref
	}
	if p.Enum != nil {
		return p.Enum.Values
	}
	if p.Types != nil && slices.Equal(p.Types.ToStrings(), []string{"boolean"}) {
		return []any{true, false}
	}
	return nil
}

// schemas keeps compiled schemas by the digest of their text, the least recently used going first. What it returns
// depends on the text alone.
type schemas struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*kept
	tick uint64
}

type kept struct {
	schema *schema
	err    error
	used   uint64
}

func newSchemas() *schemas { return &schemas{kept: map[[sha256.Size]byte]*kept{}} }

func (k *schemas) compiled(raw events.Raw) (*schema, error) {
	key := sha256.Sum256(raw)
	k.mu.Lock()
	k.tick++
	if e, ok := k.kept[key]; ok {
		e.used = k.tick
		k.mu.Unlock()
		return e.schema, e.err
	}
	k.mu.Unlock()
	s, err := compileSchema(raw)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) >= maxKept {
		k.evict()
	}
	k.kept[key] = &kept{s, err, k.tick}
	return s, err
}

func (k *schemas) evict() {
	oldest, least := [sha256.Size]byte{}, k.tick+1
	for key, e := range k.kept {
		if e.used < least {
			oldest, least = key, e.used
		}
	}
	delete(k.kept, oldest)
}
