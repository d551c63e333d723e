package events_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-file +now; -update writes it):\n%s", file, diff)
	}
}

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := events.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(name, value); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, data []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// wire is the data of a value as it travels.
func wire(t *testing.T, d document, v any) []byte {
	t.Helper()
	if slices.ContainsFunc(replies(), func(r document) bool { return r.name == d.name }) {
		text, err := events.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	sealed, err := events.Seal(events.Envelope{ID: "e1", Source: "/test", Data: v})
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Data jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(sealed, &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Data
}

func TestSchemaFilesAreWhatTheTypesSay(t *testing.T) {
	src := readSource(t)
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			s := shaper{source: src, reveal: d.reveal}
			examples := make([]jsontext.Value, len(d.examples))
			for i, e := range d.examples {
				examples[i] = wire(t, d, e)
			}
			golden(t, filepath.Join("schema", d.name+".json"), s.document(t, d.name, d.of, examples))
		})
	}
}

func TestSchemaOfEveryType(t *testing.T) {
	for _, name := range events.Types() {
		t.Run(name, func(t *testing.T) {
			schema := compile(t, name)
			full, err := events.Schema(events.TypePrefix + name)
			if short, err2 := events.Schema(name); err != nil || err2 != nil || !bytes.Equal(full, short) {
				t.Errorf("with prefix: %v, without: %v, equal: %t", err, err2, bytes.Equal(full, short))
			}
			value, ok := storyEvents()[name]
			if !ok {
				t.Fatalf("the story has no %s", name)
			}
			if err := validate(t, schema, wire(t, document{name: name}, value)); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := events.Schema("task.bogus.v1"); err == nil {
		t.Error("a type that is not has a schema")
	}
	if _, err := events.Schema("../schema/task.v1"); err == nil {
		t.Error("a path is taken for a name")
	}
	var names []string
	for _, d := range documents() {
		names = append(names, d.name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, events.SchemaNames()); diff != "" {
		t.Errorf("documents and files differ (-documents +files):\n%s", diff)
	}
}

func TestSchemaExamples(t *testing.T) {
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			schema := compile(t, d.name)
			text, err := events.Schema(d.name)
			if err != nil {
				t.Fatal(err)
			}
			var file struct {
				Examples []jsontext.Value `json:"examples"`
			}
			if err := json.Unmarshal(text, &file); err != nil || len(file.Examples) == 0 {
				t.Fatalf("%d examples, %v", len(file.Examples), err)
			}
			for i, e := range file.Examples {
				if err := validate(t, schema, e); err != nil {
					t.Errorf("example %d: %v", i, err)
				}
				if err := decodeAs(d, e); err != nil {
					t.Errorf("example %d: %v", i, err)
				}
			}
		})
	}
}
