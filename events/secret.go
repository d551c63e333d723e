package events

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const hidden = "[secret]"

// Secret is a JSON value that no formatter, logger or encoder prints: an argument, an answer, a tool's result. It is boxed,
// since a plain named string leaks from unexported struct fields. The zero Secret holds nothing.
type Secret struct{ box *box }

// box holds the text behind a second pointer: fmt follows one when a verb does not fit a pointer (%s, %q of a Secret in an
// unexported field, where it cannot call Format).
type box struct{ text *Raw }

// NewSecret boxes a JSON value given as text. The caller must not change raw afterwards.
func NewSecret(raw Raw) Secret {
	if len(raw) == 0 {
		return Secret{}
	}
	return Secret{&box{&raw}}
}

// SecretOf boxes a Go value; invalid UTF-8 in its texts becomes U+FFFD. It panics if v has no JSON form, which only a
// programming error can cause.
func SecretOf(v any) Secret {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(fmt.Sprintf("events: no JSON form of a %T", v))
	}
	return NewSecret(raw)
}

// Reveal returns the JSON text. Whoever calls it answers for where it goes.
func (s Secret) Reveal() Raw {
	if s.box == nil {
		return nil
	}
	return *s.box.text
}

// RevealString returns the text of a JSON string, and any other value as JSON.
func (s Secret) RevealString() string {
	var text string
	if json.Unmarshal(s.Reveal(), &text) == nil {
		return text
	}
	return string(s.Reveal())
}

// IsZero reports that the Secret holds nothing; a JSON null is something.
func (s Secret) IsZero() bool { return s.box == nil }

// Equal compares canonical forms.
func (s Secret) Equal(t Secret) bool {
	if s.IsZero() || t.IsZero() {
		return s.IsZero() == t.IsZero()
	}
	a, errA := Canonical(s.Reveal())
	b, errB := Canonical(t.Reveal())
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// String hides the value.
func (s Secret) String() string { return hidden }

// GoString hides the value.
func (s Secret) GoString() string { return hidden }

// Format hides the value from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides the value; only encoders with the package's own option reveal it.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// UnmarshalJSON boxes any JSON value.
func (s *Secret) UnmarshalJSON(data []byte) error {
	*s = NewSecret(bytes.Clone(data))
	return nil
}

// revealed encodes Secrets in the clear. Only [Seal] and replies to claims use it.
func revealed() json.Options {
	return json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, s Secret) error {
		if s.IsZero() {
			return enc.WriteToken(jsontext.Null)
		}
		return enc.WriteValue(s.Reveal())
	}))
}

// Arguments are the arguments of a tool call by name.
type Arguments map[string]Secret

// Raw returns the arguments as one JSON object in the clear, members in order of name.
func (a Arguments) Raw() Raw {
	if a == nil {
		a = Arguments{}
	}
	raw, err := json.Marshal(a, revealed(), json.Deterministic(true))
	if err != nil {
		panic("events: arguments hold text that is not JSON")
	}
	return raw
}
