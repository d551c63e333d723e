package events_test

import (
	"bytes"
	jsonv1 "encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
)

type holder struct {
	Open   events.Secret
	closed events.Secret
	Ptr    *events.Secret
	ptr    *events.Secret
	Map    map[string]events.Secret
	hidden map[string]events.Secret
	List   []events.Secret
	list   []events.Secret
	Any    any
	any    any
	Inner  struct{ deep events.Secret }
	Args   events.Arguments
	events.Execution
}

// holding puts a secret in every place a program could put one.
func holding(s events.Secret) map[string]any {
	all := holder{
		Open: s, closed: s, Ptr: &s, ptr: &s, Map: map[string]events.Secret{"k": s}, hidden: map[string]events.Secret{"k": s},
		List: []events.Secret{s}, list: []events.Secret{s}, Any: s, any: s, Inner: struct{ deep events.Secret }{s},
		Args: events.Arguments{"k": s}, Execution: events.Execution{Effect: &events.Effect{Result: s}},
	}
	candidate := storyCandidate()
	candidate.Arguments = events.Arguments{"k": s}
	return map[string]any{
		"direct": s, "pointer": &s, "slice": []events.Secret{s}, "array": [1]events.Secret{s}, "map": map[string]events.Secret{"k": s},
		"arguments": all.Args, "struct": all, "struct_pointer": &all, "interface": []any{s, &s, all},
		"unexported_only": struct{ s events.Secret }{s}, "candidate": candidate,
		"envelope": events.Envelope{Data: candidate}, "decided": events.Decided{Decision: events.Proceed{Why: events.Basis{Assumptions: []events.Assumption{{Value: s}}}}},
	}
}

// TestSecretsDoNotPrint whatever holds them and whoever prints them.
func TestSecretsDoNotPrint(t *testing.T) {
	numbers := strings.Trim(strings.ReplaceAll(fmt.Sprintf("% d", []byte(canary)), "  ", " "), "[]")
	secrets := map[string]events.Secret{"text": events.SecretOf(canary), "object": events.SecretOf(map[string]any{"a": []string{canary}})}
	for kind, s := range secrets {
		for where, v := range holding(s) {
			t.Run(kind+"_"+where, func(t *testing.T) {
				for printer, text := range prints(t, v) {
					if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || strings.Contains(text, fmt.Sprintf("%X", canary)) ||
						strings.Contains(text, numbers) {
						t.Errorf("%s shows it: %s", printer, text)
					}
				}
			})
		}
	}
}

func prints(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for verb := range strings.FieldsSeq("%v %+v %#v %s %q %x %X %d %t %U %c %b %o %10s %-5v %T") {
		out[verb] = fmt.Sprintf(verb, v)
	}
	out["Sprint"], out["Sprintln"] = fmt.Sprint(v), fmt.Sprintln(v)
	out["error"] = fmt.Errorf("with %v", v).Error()
	out["panic"] = func() (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		panic(v)
	}()
	var logged bytes.Buffer
	level := slog.HandlerOptions{Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, &level), slog.NewJSONHandler(&logged, &level)} {
		slog.New(h).With("with", v).WithGroup("g").Info("m", "v", v, slog.Group("in", "v", v), "any", slog.AnyValue(v))
	}
	out["slog"] = logged.String()
	if text, err := jsonv1.Marshal(v); err == nil {
		out["encoding/json"] = string(text)
	}
	if text, err := json.Marshal(v); err == nil {
		out["json v2"] = string(text)
	}
	if text, err := xml.Marshal(v); err == nil {
		out["encoding/xml"] = string(text)
	}
	var page bytes.Buffer
	if err := template.Must(template.New("").Parse("{{.}} {{printf `%#v` .}}")).Execute(&page, v); err == nil {
		out["text/template"] = page.String()
	}
	return out
}

// TestSecretsPrintAsSuch: what is hidden says so, so that nobody takes it for the value.
func TestSecretsPrintAsSuch(t *testing.T) {
	s := events.SecretOf(canary)
	for printer, text := range prints(t, s) {
		if printer != "%T" && !strings.Contains(text, "[secret]") {
			t.Errorf("%s prints %q", printer, text)
		}
	}
}

// TestSealReveals the values of the three events that must carry them, and no other event's.
func TestSealReveals(t *testing.T) {
	src := readSource(t)
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			for _, v := range fullValues(src, d, canary) {
				text := string(wire(t, d, v))
				if got := strings.Contains(text, canary); got != (d.reveal && holdsSecret(d.of, nil)) {
					t.Errorf("reveals: %t\n%s", got, text)
				}
			}
		})
	}
	carry := []string{"candidate.proposed.v1", "task.v1", "answer.submitted.v1", "claim.request.v1", "claim.reply.v1", "effect.report.v1", "state.reply.v1"}
	for _, d := range documents() {
		if d.reveal != slices.Contains(carry, d.name) {
			t.Errorf("%s: reveals %t", d.name, d.reveal)
		}
	}
}

// holdsSecret reports that a Secret is somewhere in a type.
func holdsSecret(of reflect.Type, seen []reflect.Type) bool {
	if slices.Contains(seen, of) {
		return false
	}
	seen = append(seen, of)
	switch {
	case of == reflect.TypeFor[events.Secret](), of == reflect.TypeFor[events.Decided]():
		return true
	case of.Kind() == reflect.Pointer, of.Kind() == reflect.Slice, of.Kind() == reflect.Map:
		return holdsSecret(of.Elem(), seen)
	case of.Kind() == reflect.Struct:
		for f := range of.Fields() {
			if f.IsExported() && holdsSecret(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// TestQuestionHidesOptionValues even if a broker forgets to take them out.
func TestQuestionHidesOptionValues(t *testing.T) {
	q := storyShown(events.PhaseAsk)
	q.Content.Fields = []events.Field{{Name: "f", Options: []events.Option{{ID: "o1", Label: "l", Value: events.SecretOf(canary)}}}}
	text := string(wire(t, document{name: "question.v1"}, q))
	if strings.Contains(text, canary) || !strings.Contains(text, `"value":"[secret]"`) {
		t.Error(text)
	}
	q.Content.Fields[0].Options[0].Value = events.Secret{}
	if text := string(wire(t, document{name: "question.v1"}, q)); strings.Contains(text, "value") && strings.Contains(text, "[secret]") {
		t.Errorf("a value that was taken out is still there: %s", text)
	}
}

func TestSecretValues(t *testing.T) {
	if s := (events.Secret{}); !s.IsZero() || s.Reveal() != nil || s.RevealString() != "" {
		t.Errorf("the zero Secret holds %q", s.Reveal())
	}
	if s := events.NewSecret(events.Raw("null")); s.IsZero() {
		t.Error("null is nothing")
	}
	if got := events.SecretOf("caf\u00e9").RevealString(); got != "café" {
		t.Errorf("got %q", got)
	}
	if got := events.SecretOf(1.5).RevealString(); got != "1.5" {
		t.Errorf("got %q", got)
	}
	if !events.NewSecret(events.Raw(`{"b":1.0,"a":2}`)).Equal(events.NewSecret(events.Raw(`{"a":2,"b":1}`))) {
		t.Error("one value in two forms is two")
	}
	for _, other := range []events.Secret{{}, events.SecretOf("2"), events.SecretOf(nil)} {
		if events.SecretOf(2).Equal(other) || other.Equal(events.SecretOf(2)) {
			t.Errorf("2 equals %s", other.Reveal())
		}
	}
	data := []byte(`{"x":"` + canary + `"}`)
	var args events.Arguments
	if err := json.Unmarshal(data, &args); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if got := args["x"].RevealString(); got != canary {
		t.Errorf("the caller's buffer shows through: %q", got)
	}
}
