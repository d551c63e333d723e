package policy

import (
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

func compiled(t *testing.T, text string) condition {
	t.Helper()
	lang, err := newLanguages()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{file: "p", places: map[string]place{}}
	c := condition{text: text, start: place{1, 1}}
	c.compile(r, "when", lang.rule)
	if len(r.problems) > 0 {
		t.Fatal(r.problems)
	}
	return c
}

// TestCondition is what rules may rely on: JSON's values, MCP's names, and an error where nothing is sure.
func TestCondition(t *testing.T) {
	args := `{"n":5,"f":1500.5,"big":9007199254740993,"list":[1,2],"deep":{"e":1,"b":1,"d":2,"a":"x","c":3,"f":1},"none":null,"text":"1500"}`
	v, err := decode(events.Raw(args))
	if err != nil {
		t.Fatal(err)
	}
	scope := &call{args: v.(map[string]any), facts: toolFacts{Name: "mail.send", ReadOnly: true}}
	scope.in.Candidate.Agent, scope.in.Candidate.Requester = "bot", &events.Requester{ID: "ana"}
	scope.in.Candidate.Missing = []events.Missing{{Field: "to"}}
	scope.in.Candidate.State = map[string]events.Secret{"order.status": events.SecretOf("pending")}
	for _, c := range []struct{ text, want string }{
		{`args.n > 4.5`, "true"},
		{`args.f > 1000.0`, "true"},
		{`args.big == 9007199254740993`, "true"},
		{`args.big == 9007199254740992`, "false"},
		{`args.text > 1000.0`, "error"},
		{`args.absent == 1`, "error"},
		{`has(args.absent) && args.absent == 1`, "false"},
		{`args.none == null`, "true"},
		{`args.list.exists(x, x == 2)`, "true"},
		{`args.deep.map(k, k) == ["a", "b", "c", "d", "e", "f"]`, "true"},
		{`tool.readOnly && tool.name == "mail.send" && !tool.openWorld`, "true"},
		{`"to" in missing`, "true"},
		{`agent == "bot" && requester == "ana"`, "true"},
		{`state["order.status"] == "pending"`, "true"},
	} {
		t.Run(c.text, func(t *testing.T) {
			got := "error"
			if holds, err := compiled(t, c.text).holds(scope); err == nil && holds {
				got = "true"
			} else if err == nil {
				got = "false"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestCondition_cost checks that a condition that would run for long ends with an error, the same one each time.
func TestCondition_cost(t *testing.T) {
	list := make([]any, 300)
	for i := range list {
		list[i] = strings.Repeat("x", i)
	}
	scope := &call{args: map[string]any{"l": list}}
	c := compiled(t, `args.l.all(a, args.l.all(b, args.l.all(c, a + b + c != "y")))`)
	for range 3 {
		if _, err := c.holds(scope); err == nil || !strings.Contains(err.Error(), "cost limit") {
			t.Fatalf("got %v", err)
		}
	}
}

// TestGlobs is what the stars of a file stand for.
func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"mail.send", "mail.send", true},
		{"mail.send", "mail.sendx", false},
		{"mail.*", "mail.", true},
		{"*", "", true},
		{"*.send", "a.b.send", true},
		{"*.send", "send", false},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"*token*", "my_token_2", true},
		{"mcp://*", "mcp://crm", true},
		{"", "x", false},
	} {
		if got := globs(c.pattern, c.text); got != c.want {
			t.Errorf("%q %q: %t", c.pattern, c.text, got)
		}
	}
}

// TestIndex checks that the index finds the entry that reading from the top would.
func TestIndex(t *testing.T) {
	var entries []*entry
	for _, m := range []string{"a.b", "a.*", "*.c", "b.?", "*", "a.x", "b.*d"} {
		entries = append(entries, &entry{Match: m})
	}
	entries[1].Server = "mcp://one"
	x := newIndex(entries)
	for _, name := range []string{"a.b", "a.x", "z.c", "b.d", "b.dd", "", "q"} {
		for _, server := range []string{"", "mcp://one"} {
			var want *entry
			for _, e := range entries {
				if globs(e.Match, name) && e.serves(server) {
					want = e
					break
				}
			}
			if got := x.find(name, server); got != want {
				t.Errorf("%q of %q: got %v, want %v", name, server, got, want)
			}
		}
	}
	if newIndex(entries[:4]).find("zz", "") != nil {
		t.Error("an entry is found for a tool that none matches")
	}
}
