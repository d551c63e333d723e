package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/clarify-broker/clarify/events"
)

// Accepts judges what a person gave for a field. The reason is empty when it will do, and then the value is the option's or
// the typed one, read as the field's schema wants it: "20" is a number where only a number fits. "None of these" is
// accepted with the zero Secret. Otherwise the reason is not_an_option or invalid_value.
func Accepts(f events.Field, g events.Given) (events.Secret, events.Reason) {
	if g.Option != "" {
		for _, o := range f.Options {
			if o.ID == g.Option {
				return o.Value, ""
			}
		}
		return events.Secret{}, events.NotAnOption
	}
	if f.FreeText == nil {
		return events.Secret{}, events.NotAnOption
	}
	v, err := decode(g.Value.Reveal())
	if err != nil || g.Value.IsZero() {
		return events.Secret{}, events.InvalidValue
	}
	if text, ok := v.(string); ok {
		return typed(f.FreeText, strings.TrimSpace(text))
	}
	if utf8.RuneCount(g.Value.Reveal()) > f.FreeText.MaxRunes || len(f.FreeText.Schema) == 0 || !fits(f.FreeText.Schema, v) {
		return events.Secret{}, events.InvalidValue
	}
	return g.Value, ""
}

func typed(ft *events.FreeText, text string) (events.Secret, events.Reason) {
	if n := utf8.RuneCountInString(text); n == 0 || n > ft.MaxRunes {
		return events.Secret{}, events.InvalidValue
	}
	if len(ft.Schema) == 0 || fits(ft.Schema, text) {
		return events.SecretOf(text), ""
	}
	raw := events.Raw(text)
	if v, err := decode(raw); err == nil && raw.IsValid() && fits(ft.Schema, v) {
		return events.NewSecret(raw), ""
	}
	return events.Secret{}, events.InvalidValue
}

// fits reports that a value suits a schema. Nothing suits a schema that cannot be used.
func fits(raw events.Raw, v any) bool {
	s, err := compileSchema(raw)
	return err == nil && s.spread.at(depth(v)) < maxSpread && s.compiled.Validate(v) == nil
}
