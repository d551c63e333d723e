package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

func schemaOf(t *testing.T, text string) *schema {
	t.Helper()
	s, err := compileSchema(events.Raw(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := decode(events.Raw(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// TestSchema_check sorts what is wrong with arguments by what can be done about it.
func TestSchema_check(t *testing.T) {
	const order = `{"type":"object","required":["id","lines"],"properties":{"id":{"type":"string","format":"uuid"},"n":{"type":"integer","maximum":5},
		"lines":{"type":"array","items":{"type":"object","required":["sku"]}}},"dependentRequired":{"n":["unit"]},"additionalProperties":{"type":"string"}}`
	for _, c := range []struct {
		name, schema, args string
		want               findings
	}{
		{"fits", order, `{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","lines":[]}`, findings{}},
		{"absent", order, `{}`, findings{absent: []string{"id", "lines"}}},
		{"not_the_format", order, `{"id":"x","lines":[]}`, findings{bad: []string{"id"}}},
		{"absent_inside_a_value", order, `{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","lines":[{}]}`, findings{bad: []string{"lines"}}},
		{"necessary_with_another", order, `{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","lines":[],"n":1}`, findings{absent: []string{"unit"}}},
		{"big_number_keeps_its_digits", order, `{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","lines":[],"n":5.00000000000000000001,"unit":"kg"}`, findings{bad: []string{"n"}}},
		{"unknown_argument", `{"type":"object","additionalProperties":false}`, `{"a":1}`, findings{broken: true}},
		{"one_of_two", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, findings{absent: []string{"a", "b"}}},
		{"two_of_one", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":1}`, findings{broken: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := schemaOf(t, c.schema).check(decoded(t, c.args))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(findings{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSchema_spread checks that a schema of a few lines cannot keep the validator busy for ever, and that honest ones pass.
func TestSchema_spread(t *testing.T) {
	doubling := func(levels int, link string) string {
		var b strings.Builder
		for i := range levels {
			next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
			fmt.Fprintf(&b, `"d%d":`+link+`,`, i, next, next)
		}
		return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s"d%d":{"not":{"const":1}}}}`, b.String(), levels)
	}
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
		}
		return `{"properties":{` + strings.Join(list, ",") + `}}`
	}
	nested := strings.Repeat(`{"a":`, 30) + "1" + strings.Repeat("}", 30)
	for _, c := range []struct {
		name, schema, value string
		refused             bool
	}{
		{"doubling_at_one_level", doubling(40, `{"allOf":[%s,%s]}`), `{"a":1}`, true},
		{"doubling_a_few_times", doubling(8, `{"allOf":[%s,%s]}`), `{"a":1}`, false},
		{"doubling_with_the_depth_of_the_value", `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, nested, true},
		{"the_same_with_a_flat_value", `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, `{"a":1}`, false},
		{"a_tree", `{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`, `{"left":{"left":{"right":{}}},"right":{}}`, false},
		{"a_list_of_itself", `{"properties":{"a":{"$ref":"#"},"items":{"type":"array","items":{"$ref":"#"}}}}`, `{"items":[{"items":[]}]}`, false},
		{"many_properties", many(500), `{"p7":"x"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := schemaOf(t, c.schema).check(decoded(t, c.value)).broken; got != c.refused {
				t.Errorf("refused: %t, want %t", got, c.refused)
			}
		})
	}
}

// TestSchemas checks that compiled schemas are kept, the most recently used ones at least, and that errors are too.
func TestSchemas(t *testing.T) {
	k := newSchemas()
	text := func(i int) events.Raw { return events.Raw(fmt.Sprintf(`{"maximum":%d}`, i)) }
	first, err := k.compiled(text(0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxKept {
		if _, err := k.compiled(text(i)); err != nil {
			t.Fatal(err)
		}
		if again, _ := k.compiled(text(0)); again != first {
			t.Fatalf("the schema in use was let go after %d others", i)
		}
	}
	if len(k.kept) > maxKept {
		t.Errorf("%d schemas are kept, the limit is %d", len(k.kept), maxKept)
	}
	for range 2 {
		if _, err := k.compiled(events.Raw(`{"type":"dict"}`)); err == nil {
			t.Error("a schema that is none is taken")
		}
	}
}
