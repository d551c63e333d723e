package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clarify-broker/clarify/events"
)

const (
	maxLabel     = 120 // runes of an option's label
	maxTyped     = 500 // runes of a typed answer, unless the file says otherwise
	maxOptionID  = 32
	maxSubschema = 8 << 10 // bytes of a field's schema that travel with its question
)

// choice is one possible value of a field, before it becomes an option.
type choice struct {
	value
	labels []string // of the alternatives that hold it
	weight float64  // of the alternatives that hold it, together
}

// choices lists what a field can be: from the alternatives, likeliest first, or else from its schema.
func (c *call) choices(o open, b belief) (list []choice, covered bool) {
	at := map[string]int{}
	for _, a := range b.alternatives {
		v, has := a.values[o.name]
		if !has {
			continue
		}
		i, seen := at[v.text]
		if !seen {
			i = len(list)
			at[v.text] = i
			list = append(list, choice{value: v})
		}
		list[i].weight += a.weight
		if a.label != "" && !slices.Contains(list[i].labels, a.label) {
			list[i].labels = append(list[i].labels, a.label)
		}
	}
	if len(list) > 0 {
		slices.SortStableFunc(list, func(a, b choice) int { return cmp.Compare(b.weight, a.weight) })
		return list, true
	}
	for _, v := range c.schema.values(o.name) {
		s := events.NewSecret(encode(v))
		list = append(list, choice{value: value{canonical(s), v, s}})
	}
	return list, false
}

// fieldOf makes the question about a field. A list that may be incomplete ends with "none of these"; a list from the
// schema that is too long to show can be answered by typing.
func (c *call) fieldOf(o open, choices []choice, covered bool) events.Field {
	f := events.Field{
		Name: o.name, Role: o.role, Prompt: o.rule.Ask, Changes: o.rule.Changes,
		Sources: slices.Clone(o.sources), Secret: o.rule.Secret || c.p.Redacted(o.name),
	}
	orElse(&f.Changes, "effect")
	orElse(&f.Prompt, fmt.Sprintf("Which value should %s have?", strings.NewReplacer("_", " ", "-", " ").Replace(o.name)))
	limit := orDefault(c.p.file.Questions.MaxOptions, 5)
	cut := len(choices) > limit
	f.Options = c.options(f, choices[:min(len(choices), limit)])
	if len(choices) > 0 && (covered || cut) {
		f.Options = append(f.Options, events.Option{ID: events.NoneOfThese, Label: "None of these"})
	}
	typed := len(choices) == 0 || (cut && !covered)
	if o.rule.FreeText == "always" || (typed && o.rule.FreeText != "never") {
		f.FreeText = &events.FreeText{MaxRunes: maxTyped}
		if o.rule.MaxRunes > 0 {
			f.FreeText.MaxRunes = o.rule.MaxRunes
		}
		if text := c.schema.text(o.name); len(text) <= maxSubschema {
			f.FreeText.Schema = slices.Clone(text)
		}
	}
	return f
}

// options turns choices into what people pick from. Two records with one label stay two options that can be told apart.
func (c *call) options(f events.Field, choices []choice) []events.Option {
	out := make([]events.Option, len(choices))
	used := map[string]int{}
	for i, ch := range choices {
		text := shorten(plainText(ch.plain), maxLabel)
		if f.Secret {
			text = c.p.mask(plainText(ch.plain))
		}
		out[i] = events.Option{ID: optionID(ch.value), Label: text, Value: ch.secret}
		if label := ch.label(); label != "" && !(f.Secret && strings.Contains(label, plainText(ch.plain))) {
			out[i].Label, out[i].Hint = shorten(label, maxLabel), text
		}
		if f.Secret { // an id made from the value would tell it
			out[i].ID = "option-" + strconv.Itoa(i+1)
		}
		used[out[i].Label]++
	}
	seen := map[string]bool{}
	for i := range out {
		o := &out[i]
		if used[o.Label] > 1 && o.Hint != "" {
			o.Label, o.Hint = o.Label+" ("+o.Hint+")", ""
		}
		if seen[o.Label] {
			o.Label += " #" + strconv.Itoa(i+1)
		}
		if seen[o.ID] {
			o.ID = derivedID(choices[i].text)
		}
		seen[o.Label], seen[o.ID] = true, true
	}
	return out
}

// label is the one label of all alternatives that hold the value. Several labels describe more than this value.
func (ch choice) label() string {
	if len(ch.labels) != 1 {
		return ""
	}
	return strings.Join(strings.Fields(ch.labels[0]), " ")
}

// optionID is the value itself where it can travel as it is, else a token derived from it.
func optionID(v value) string {
	text := plainText(v.plain)
	if len(text) <= maxOptionID && text != events.NoneOfThese && events.TokenFor(text) == text {
		return text
	}
	return derivedID(v.text)
}

func derivedID(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return "value-" + hex.EncodeToString(sum[:10])
}

// plainText shows a value: a string as it is, anything else as JSON.
func plainText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return string(encode(v))
}

func shorten(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	cut := []rune(s)[:runes-1]
	return string(cut) + "…"
}
