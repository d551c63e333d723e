package policy_test

import (
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
	"github.com/google/go-cmp/cmp"
)

// TestAccepts judges what people give for a field.
func TestAccepts(t *testing.T) {
	pick := events.Field{Name: "id", Options: []events.Option{{ID: "c-1", Label: "Juan", Value: events.SecretOf("c-1")}, {ID: events.NoneOfThese}}}
	text := events.Field{Name: "x", FreeText: &events.FreeText{MaxRunes: 5}}
	schema := func(s string) events.Field {
		return events.Field{Name: "x", FreeText: &events.FreeText{MaxRunes: 20, Schema: events.Raw(s)}}
	}
	raw := func(s string) events.Secret { return events.NewSecret(events.Raw(s)) }
	for _, c := range []struct {
		name   string
		field  events.Field
		given  events.Given
		want   events.Secret
		reason events.Reason
	}{
		{"an_option", pick, events.Given{Option: "c-1"}, raw(`"c-1"`), ""},
		{"none_of_these", pick, events.Given{Option: events.NoneOfThese}, events.Secret{}, ""},
		{"another_option", pick, events.Given{Option: "c-2"}, events.Secret{}, events.NotAnOption},
		{"a_label", pick, events.Given{Option: "Juan"}, events.Secret{}, events.NotAnOption},
		{"typed_where_only_options_count", pick, events.Given{Value: raw(`"c-1"`)}, events.Secret{}, events.NotAnOption},
		{"typed", text, events.Given{Value: raw(`" abc\n"`)}, raw(`"abc"`), ""},
		{"nothing", text, events.Given{Value: raw(`"  "`)}, events.Secret{}, events.InvalidValue},
		{"too_long", text, events.Given{Value: raw(`"abcdéf"`)}, events.Secret{}, events.InvalidValue},
		{"as_long_as_it_may_be", text, events.Given{Value: raw(`"abcdé"`)}, raw(`"abcdé"`), ""},
		{"not_text", text, events.Given{Value: raw(`7`)}, events.Secret{}, events.InvalidValue},
		{"no_option_and_no_value", text, events.Given{}, events.Secret{}, events.InvalidValue},
		{"a_number_in_words", schema(`{"type":"integer"}`), events.Given{Value: raw(`"20"`)}, raw(`20`), ""},
		{"a_number", schema(`{"type":"integer"}`), events.Given{Value: raw(`20`)}, raw(`20`), ""},
		{"digits_where_text_fits", schema(`{"type":"string"}`), events.Given{Value: raw(`"007"`)}, raw(`"007"`), ""},
		{"not_a_number", schema(`{"type":"integer"}`), events.Given{Value: raw(`"twenty"`)}, events.Secret{}, events.InvalidValue},
		{"a_list_in_words", schema(`{"type":"array","items":{"type":"string"}}`), events.Given{Value: raw(`"[\"a\"]"`)}, raw(`["a"]`), ""},
		{"outside_the_list", schema(`{"enum":["a","b"]}`), events.Given{Value: raw(`"c"`)}, events.Secret{}, events.InvalidValue},
		{"a_schema_that_cannot_be_used", schema(`{"type":"dict"}`), events.Given{Value: raw(`"c"`)}, events.Secret{}, events.InvalidValue},
		{"a_number_that_would_fill_the_memory", schema(`{"type":"number"}`), events.Given{Value: raw(`"1e999999999"`)}, events.Secret{}, events.InvalidValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := policy.Accepts(c.field, c.given)
			if reason != c.reason || !got.Equal(c.want) {
				t.Errorf("got %s %q, want %s %q", got.Reveal(), reason, c.want.Reveal(), c.reason)
			}
		})
	}
}

// TestShown checks what people see of arguments.
func TestShown(t *testing.T) {
	p := parseFile(t, "testdata/office.yaml")
	c := candidate(t, `{"tool":{"name":"crm.update"},"arguments":{"customer_id":"c-1","card_token":"tok_4242424242424242","password":"short",
		"pin":"1234","profile":{"name":"Ana","api_token":"sk-1234567890abcdef","list":[{"password":"x"}]}}}`)
	for _, r := range []struct {
		name  string
		basis events.Basis
		want  []events.Shown
	}{
		{"all_by_name", events.Basis{}, []events.Shown{
			{Name: "card_token", Value: "••••4242"},
			{Name: "customer_id", Value: "c-1"},
			{Name: "password", Value: "••••"},
			{Name: "pin", Value: "••••"},
			{Name: "profile", Value: `{"api_token":"••••cdef","list":[{"password":"••••"}],"name":"Ana"}`},
		}},
		{"those_the_policy_shows", events.Basis{Traits: events.Traits{Show: []string{"pin", "customer_id", "absent"}}}, []events.Shown{
			{Name: "pin", Value: "••••"}, {Name: "customer_id", Value: "c-1"},
		}},
		{"redacted_when_it_was_decided", events.Basis{Traits: events.Traits{Show: []string{"customer_id"}, Redact: []string{"customer_id"}}}, []events.Shown{
			{Name: "customer_id", Value: "••••"},
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if diff := cmp.Diff(r.want, p.Shown(c, r.basis)); diff != "" {
				t.Error(diff)
			}
		})
	}
	long := make([]byte, 3000)
	for i := range long {
		long[i] = 'x'
	}
	big := events.Candidate{Arguments: events.Arguments{"text": events.SecretOf(string(long))}}
	if got := len([]rune(p.Shown(big, events.Basis{})[0].Value)); got != 500 {
		t.Errorf("%d runes of a long value are shown", got)
	}
	if !p.Redacted("Access_Token") || !p.Redacted("pin") || p.Redacted("customer_id") {
		t.Error("names are redacted by the wrong globs")
	}
}
