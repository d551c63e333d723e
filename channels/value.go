package channels

import (
	"strings"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
)

// Typed makes the value of a field out of what a person typed: JSON where the field's schema asks for a number, a boolean,
// an array or an object and the text is one, and a string otherwise. It judges nothing; the broker does.
func Typed(f events.Field, text string) events.Secret {
	raw := events.Raw(strings.TrimSpace(text))
	if kind := jsonKind(f); kind != "" && kind != "string" && len(raw) > 0 && raw.IsValid() {
		return events.NewSecret(raw)
	}
	return events.SecretOf(text)
}

// jsonKind is the type a field's schema names, empty when it names none or several.
func jsonKind(f events.Field) string {
	if f.FreeText == nil || len(f.FreeText.Schema) == 0 {
		return ""
	}
	var schema struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(f.FreeText.Schema, &schema) != nil {
		return ""
	}
	return schema.Type
}
