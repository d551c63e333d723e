package events_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members keep the order they are given in, so that a schema reads like its type.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value, json.Deterministic(true)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// shaper derives JSON Schemas from the Go types, so that the two cannot differ: the schemas under schema/ are its golden files.
type shaper struct {
	source
	reveal bool // Secrets travel in the clear
	defs   map[string]object
}

// limits are what Validate checks and a Go type does not say. Lengths are bytes in Validate and characters in JSON Schema:
// the schema is the laxer one.
func limits(of string) object {
	switch of {
	case "Agent", "Channel":
		return object{{"pattern", "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"}}
	case "Task", "SubmissionID":
		return object{{"pattern", "^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$"}}
	case "Digest":
		return object{{"pattern", "^([a-z0-9-]+:[0-9a-f]{64})?$"}}
	case "Duration":
		return object{{"pattern", `^([0-9]+(\.[0-9]+)?(h|m|s|ms|µs|ns))+$`}}
	case "Candidate.Version", "CancelRequest.Version", "Answer.Version", "ApprovalAnswer.Version":
		return object{{"minimum", 1}}
	case "Candidate.Step":
		return object{{"minLength", 1}, {"maxLength", 256}}
	case "Tool.Name":
		return object{{"minLength", 1}, {"maxLength", 256}}
	case "Candidate.ID", "Tool.Server":
		return object{{"maxLength", 256}}
	case "Setting.Lang":
		return object{{"maxLength", 35}}
	case "Setting.Context", "CancelRequest.Reason", "Answer.Note", "ApprovalAnswer.Note", "Missing.Question", "Alternative.Label":
		return object{{"maxLength", 4096}}
	case "Missing.Field", "Given.Field", "DeliveryReport.Delivery":
		return object{{"minLength", 1}, {"maxLength", 256}}
	case "Alternative.Arguments":
		return object{{"minProperties", 1}}
	case "ApprovalAnswer.Action":
		return object{{"minLength", 1}}
	case "Answer.Values":
		return object{{"maxItems", 3}}
	}
	return nil
}

// document is the whole schema of one type.
func (s *shaper) document(t *testing.T, name string, of reflect.Type, examples []jsontext.Value) []byte {
	t.Helper()
	s.defs = map[string]object{}
	root := s.members(of)
	out := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://clarify.dev/schema/" + name + ".json"},
		{"title", name},
		{"description", s.comments[of.Name()]},
	}
	out = append(out, root...)
	delete(s.defs, of.Name())
	if len(s.defs) > 0 {
		out = append(out, member{"$defs", s.defs})
	}
	out = append(out, member{"examples", examples})
	text, err := json.Marshal(out, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// value is the schema of one member's type.
func (s *shaper) value(of reflect.Type) object {
	switch of {
	case reflect.TypeFor[events.Secret]():
		if s.reveal {
			return object{}
		}
		return object{{"const", "[secret]"}}
	case reflect.TypeFor[events.Raw]():
		return object{}
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[events.Decided]():
		return s.value(reflect.TypeFor[events.DecidedWire]())
	case reflect.TypeFor[events.Duration]():
		return s.named(of, object{{"type", "string"}})
	}
	switch of.Kind() {
	case reflect.Pointer:
		return s.value(of.Elem())
	case reflect.Slice:
		return object{{"type", "array"}, {"items", s.value(of.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", s.value(of.Elem())}}
	case reflect.Struct:
		return s.named(of, nil)
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float64:
		return object{{"type", "number"}, {"minimum", 0}}
	case reflect.Int, reflect.Uint64:
		return s.named(of, object{{"type", "integer"}, {"minimum", 0}})
	case reflect.String:
		return s.named(of, object{{"type", "string"}})
	}
	panic("no JSON form of " + of.String())
}

// named refers to the definition of a type of package events, and makes it the first time.
func (s *shaper) named(of reflect.Type, base object) object {
	if of.PkgPath() == "" {
		return base
	}
	name := strings.TrimSuffix(strings.ToUpper(of.Name()[:1])+of.Name()[1:], "Wire")
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = nil // ends a recursion
		if base == nil {
			base = s.members(of)
		}
		if all := s.enums[of.Name()]; len(all) > 0 {
			base = append(base, member{"enum", all})
		}
		base = append(base, limits(of.Name())...)
		if doc := s.comments[of.Name()]; doc != "" {
			base = append(object{{"description", doc}}, base...)
		}
		s.defs[name] = base
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// members is the closed object schema of a struct.
func (s *shaper) members(of reflect.Type) object {
	properties, required := s.fields(of)
	out := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	return append(out, member{"additionalProperties", false})
}

func (s *shaper) fields(of reflect.Type) (properties object, required []string) {
	for f := range of.Fields() {
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			inner, more := s.fields(f.Type)
			properties, required = append(properties, inner...), append(required, more...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" || name == "-" {
			panic(of.Name() + "." + f.Name + " has no JSON name")
		}
		value := append(slices.Clone(s.value(f.Type)), limits(of.Name()+"."+f.Name)...)
		if doc := s.comments[of.Name()+"."+f.Name]; doc != "" {
			value = append(value, member{"description", doc})
		}
		properties = append(properties, member{name, value})
		if options == "" {
			required = append(required, name)
		}
	}
	return properties, required
}
