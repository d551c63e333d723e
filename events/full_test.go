package events_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// filler sets every member of a value, by reflection, so that a member added to a type is in the tests without more ado.
type filler struct {
	source
	decision events.Decision
	secret   string
}

func (f filler) value(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of {
	case reflect.TypeFor[events.Secret]():
		return reflect.ValueOf(events.SecretOf(map[string]any{"deep": []string{f.secret}}))
	case reflect.TypeFor[events.Raw]():
		return reflect.ValueOf(events.Raw(`{"type":"string"}`))
	case reflect.TypeFor[time.Time]():
		return reflect.ValueOf(storyTime(59))
	case reflect.TypeFor[events.Digest]():
		return reflect.ValueOf(events.Digest("sha256:" + strings.Repeat("0", 64)))
	case reflect.TypeFor[events.Decision]():
		decision := reflect.New(reflect.TypeOf(f.decision)).Elem()
		f.fill(decision)
		v.Set(decision)
		return v
	}
	f.fill(v)
	return v
}

func (f filler) fill(v reflect.Value) {
	of := v.Type()
	switch of.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(f.value(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, f.value(of.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(reflect.ValueOf("key").Convert(of.Key()), f.value(of.Elem()))
	case reflect.Struct:
		for i := range of.NumField() {
			v.Field(i).Set(f.value(of.Field(i).Type))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(5)
	case reflect.Uint64:
		v.SetUint(1<<53 + 1)
	case reflect.String:
		v.SetString("text")
		if all := f.enums[of.Name()]; len(all) > 0 {
			v.SetString(all[0])
		}
	default:
		panic(fmt.Sprintf("a %s cannot be filled", of))
	}
}

// fullValues are values of a document with every member set, one for every kind of decision where it holds one.
func fullValues(src source, d document, secret string) []any {
	basis := []events.Decision{events.Ask{}}
	if d.name == "task.v1" {
		basis = append(basis, events.Proceed{}, events.Approve{}, events.Stop{}, events.Escalate{}, events.Reconcile{})
	}
	var all []any
	for _, decision := range basis {
		all = append(all, filler{source: src, decision: decision, secret: secret}.value(d.of).Interface())
	}
	return all
}

// decodeAs decodes strictly into a document's type, and checks what the type itself checks.
func decodeAs(d document, data []byte) error {
	v := reflect.New(d.of)
	if err := events.Decode(data, events.MaxState, v.Interface()); err != nil {
		return err
	}
	if c, ok := reflect.TypeAssert[interface{ Validate() error }](v.Elem()); ok {
		return c.Validate()
	}
	return nil
}

func TestSchemaTakesEveryMember(t *testing.T) {
	src := readSource(t)
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			schema := compile(t, d.name)
			for _, v := range fullValues(src, d, "s") {
				data := wire(t, d, v)
				if err := validate(t, schema, data); err != nil {
					t.Errorf("%v\n%s", err, data)
				}
			}
		})
	}
}

// TestSchemaIsAsStrictAsDecode adds a member to each object of each document: the schema refuses it exactly where Decode does.
func TestSchemaIsAsStrictAsDecode(t *testing.T) {
	src := readSource(t)
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			schema := compile(t, d.name)
			refused := 0
			for _, v := range fullValues(src, d, "s") {
				for pointer, changed := range withExtraMembers(t, wire(t, d, v)) {
					decoded := events.Decode(changed, events.MaxState, reflect.New(d.of).Interface())
					valid := validate(t, schema, changed)
					if (decoded == nil) != (valid == nil) {
						t.Errorf("a member more in %q: Decode says %v, the schema says %v", pointer, decoded, valid)
					}
					if decoded != nil {
						refused++
					}
				}
			}
			if refused == 0 {
				t.Error("no object is closed")
			}
		})
	}
}

// withExtraMembers is the document once for each object in it, with a member more in that object.
func withExtraMembers(t *testing.T, data []byte) map[jsontext.Pointer][]byte {
	t.Helper()
	out := map[jsontext.Pointer][]byte{}
	var root any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(at jsontext.Pointer, v any)
	walk = func(at jsontext.Pointer, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(at.AppendToken(name), inner)
			}
			v["zzz"] = nil
			for _, name := range slices.Sorted(maps.Keys(v)) { // a value that a map of such values would take
				v["zzz"] = v[name]
				break
			}
			text, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			out[at] = text
			delete(v, "zzz")
		case []any:
			for _, inner := range v {
				walk(at.AppendToken("0"), inner)
			}
		}
	}
	walk("", root)
	return out
}
