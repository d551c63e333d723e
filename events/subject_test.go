package events_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"pgregory.net/rapid"
)

const space = events.DefaultSpace

var (
	wantToken = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
	hostile   = []string{
		"", ".", "a.b", "*", ">", "a.*", "a.>", " ", "a b", "a\tb", "a\x00", "\x00", "a\u202eb", "é", "ñandú", "a\n", "\na", "a\r\nb", "-a", "--",
		"a/b", "a:b", "a%2eb", "$JS", "a\u200b", "\xff", "\xed\xa0\x80", "ａ", strings.Repeat("a", 129), strings.Repeat("a", 5000), "a..b", "a'", `a"`, `a\b`, "{a}", "a,b",
	}
)

func TestTokens(t *testing.T) {
	parsers := map[string]struct {
		parse func(string) (string, error)
		limit int
	}{
		"agent":      {func(s string) (string, error) { v, err := events.ParseAgent(s); return string(v), err }, 64},
		"task":       {func(s string) (string, error) { v, err := events.ParseTask(s); return string(v), err }, 128},
		"channel":    {func(s string) (string, error) { v, err := events.ParseChannel(s); return string(v), err }, 64},
		"submission": {func(s string) (string, error) { v, err := events.ParseSubmission(s); return string(v), err }, 128},
	}
	for name, p := range parsers {
		t.Run(name, func(t *testing.T) {
			for _, s := range []string{"a", "_", "0", "A-_9", "a-", "__", strings.Repeat("x", p.limit)} {
				if got, err := p.parse(s); err != nil || got != s {
					t.Errorf("%q: got %q, %v", s, got, err)
				}
			}
			for _, s := range append(hostile, strings.Repeat("x", p.limit+1)) {
				_, err := p.parse(s)
				if inv, ok := err.(*events.Invalid); !ok || inv.Field != name || inv.Fix == "" {
					t.Errorf("%.40q: %v", s, err)
					continue
				}
				if len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\x00\n\r\u202e\u200b") {
					t.Errorf("%.40q is quoted raw or at length: %q", s, err)
				}
			}
		})
	}
}

func anyToken(limit int) *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_-]{0,` + map[int]string{64: "63", 128: "127"}[limit] + `}`)
}

// builders calls every builder of a subject there is, found by reflection, with the members of want, and returns what each
// gives. Patterns, which are no subjects, are left out.
func builders(s events.Space, want events.Subject) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(s)
	for i := range v.NumMethod() {
		method, name := v.Method(i), v.Type().Method(i).Name
		if method.Type().NumOut() != 1 || method.Type().Out(0) != reflect.TypeFor[string]() {
			continue
		}
		var args []reflect.Value
		for in := range method.Type().Ins() {
			args = append(args, argument(in, want))
		}
		if subject := method.Call(args)[0].String(); !strings.ContainsAny(subject, "*>") {
			out[name] = subject
		}
	}
	return out
}

func argument(of reflect.Type, want events.Subject) reflect.Value {
	for _, v := range []any{want.Agent, want.Task, want.Channel, want.Version, want.Kind, want.Place()} {
		if reflect.TypeOf(v) == of {
			return reflect.ValueOf(v)
		}
	}
	if of == reflect.TypeFor[string]() {
		return reflect.ValueOf(want.ID) // an id or a verb
	}
	panic("a builder takes a " + of.String())
}

// TestSubjectsRoundTrip: what a builder puts together, Parse takes apart again, whatever the tokens.
func TestSubjectsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := events.Subject{
			Agent: events.Agent(anyToken(64).Draw(t, "agent")), Task: events.Task(anyToken(128).Draw(t, "task")),
			Channel: events.Channel(anyToken(64).Draw(t, "channel")), Version: events.Version(rapid.Uint64Min(1).Draw(t, "version")),
			Kind: rapid.SampledFrom(events.Kinds()).Draw(t, "kind"), ID: anyToken(64).Draw(t, "id"),
		}
		in := events.Space(rapid.SampledFrom([]string{"clarify", "staging", "a_b-c"}).Draw(t, "space"))
		all := builders(in, want)
		if len(all) < 20 {
			t.Fatalf("only %d builders", len(all))
		}
		for name, subject := range all {
			got, err := in.Parse(subject)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, subject, err)
			}
			if msg := differs(got, want); msg != "" {
				t.Fatalf("%s: %s: %s", name, subject, msg)
			}
			if again := builders(in, refill(got, want))[name]; again != subject {
				t.Fatalf("%s: %s became %s", name, subject, again)
			}
		}
	})
}

// differs says which member that a subject has is not the one it was built from.
func differs(got, want events.Subject) string {
	gv, wv := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range gv.NumField() {
		name := gv.Type().Field(i).Name
		if slices.Contains([]string{"Family", "Role", "Verb"}, name) || gv.Field(i).IsZero() {
			continue
		}
		if !gv.Field(i).Equal(wv.Field(i)) {
			return name + " is another"
		}
	}
	return ""
}

// refill takes from got what it has and the rest from want.
func refill(got, want events.Subject) events.Subject {
	gv, wv := reflect.ValueOf(&got).Elem(), reflect.ValueOf(want)
	if got.Verb != "" {
		got.ID = got.Verb
	}
	for i := range gv.NumField() {
		if gv.Field(i).IsZero() {
			gv.Field(i).Set(wv.Field(i))
		}
	}
	return got
}

// TestParseRefusesHostileTokens in every place of every subject.
func TestParseRefusesHostileTokens(t *testing.T) {
	want := events.Subject{Agent: "a", Task: "t", Channel: "c", Version: 7, Kind: "asked", ID: "i"}
	for name, subject := range builders(space, want) {
		t.Run(name, func(t *testing.T) {
			if _, err := space.Parse(subject); err != nil {
				t.Fatal(err)
			}
			tokens := strings.Split(subject, ".")
			for i := range tokens {
				for _, bad := range hostile {
					changed := slices.Clone(tokens)
					changed[i] = bad
					if got, err := space.Parse(strings.Join(changed, ".")); err == nil {
						t.Errorf("token %d as %.40q: taken for %+v", i, bad, got)
					}
				}
			}
			for _, changed := range []string{subject + ".", subject + ".more.and.more.and", "." + subject, strings.ToUpper(subject), subject[:len(subject)-1]} {
				if got, err := space.Parse(changed); err == nil && changed != subject[:len(subject)-1] {
					t.Errorf("%s: taken for %+v", changed, got)
				}
			}
		})
	}
	for _, bad := range []string{"clarify.answer.c.a.t.0", "clarify.answer.c.a.t.07", "clarify.answer.c.a.t.+7", "clarify.answer.c.a.t.18446744073709551616", "clarify.answer.c.a.t.7e0"} {
		if got, err := space.Parse(bad); err == nil {
			t.Errorf("%s: version %d", bad, got.Version)
		}
	}
	if _, err := space.Parse("other.task.a.t.asked"); err == nil {
		t.Error("another space's subject is taken")
	}
}

func TestTokenFor(t *testing.T) {
	for _, s := range hostile {
		if got := events.TokenFor(s); !wantToken.MatchString(got) || len(got) > 64 {
			t.Errorf("%.40q: %q is no token", s, got)
		}
	}
	distinct := map[string]string{}
	for _, s := range append(hostile, "a-b", "a_b", "A", "a", strings.Repeat("a", 64), strings.Repeat("a", 65), "thread:1", "thread.1", "thread/1") {
		if other, ok := distinct[events.TokenFor(s)]; ok {
			t.Errorf("%.40q and %.40q are one token", s, other)
		}
		distinct[events.TokenFor(s)] = s
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		got := events.TokenFor(a)
		if _, err := events.ParseAgent(got); err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		if events.TokenFor(got) != got {
			t.Fatalf("%q: a token is changed to %q", got, events.TokenFor(got))
		}
		if a != b && got == events.TokenFor(b) {
			t.Fatalf("%q and %q are one token", a, b)
		}
		if s := anyToken(64).Draw(t, "token"); events.TokenFor(s) != s {
			t.Fatalf("%q is changed", s)
		}
	})
}
