package events_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"above_2_to_53":       {`9007199254740993`, `9007199254740993`},
		"beyond_uint64":       {`123456789012345678901`, `123456789012345678901`},
		"22_digits":           {`1234567890123456789012`, `1.234567890123456789012e+21`},
		"beyond_a_double":     {`1e400`, `1e+400`},
		"below_a_double":      {`1e-400`, `1e-400`},
		"huge_exponent":       {`1e99999999999999999999`, `1e+99999999999999999999`},
		"tiny_exponent":       {`-1.5E-99999999999999999999`, `-1.5e-99999999999999999999`},
		"exponent_to_plain":   {`1.50e1`, `15`},
		"zeros_behind":        {`1.000`, `1`},
		"zero_exponent":       {`12e0`, `12`},
		"smallest_plain":      {`0.000001`, `0.000001`},
		"largest_scientific":  {`0.0000001`, `1e-7`},
		"negative_zero":       {`-0`, `0`},
		"negative_zero_point": {`-0.00e5`, `0`},
		"members_sorted":      {`{"b":1,"a":{"d":1,"c":2}}`, `{"a":{"c":2,"d":1},"b":1}`},
		"utf16_order":         {`{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3}`, "{\"\u20ac\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
		"shortest_escapes":    {`"\u0041\/\u000a\u001F\u00e9\u2028<"`, `"A/\n\u001fé` + "\u2028" + `<"`},
		"no_normalisation":    {`["\u00e9","e\u0301"]`, "[\"\u00e9\",\"e\u0301\"]"},
		"order_kept_in_lists": {` [ 3 , 1 , 2 ] `, `[3,1,2]`},
		"literals":            {"[true,false,null,\"\"]", `[true,false,null,""]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events.Canonical(events.Raw(test.text))
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// number draws the text of a JSON number in any of its forms.
func number(t *rapid.T) string {
	digits := rapid.StringMatching(`0|[1-9][0-9]{0,40}`).Draw(t, "whole")
	return rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + digits +
		rapid.StringMatching(`(\.[0-9]{1,30})?`).Draw(t, "fraction") +
		rapid.StringMatching(`([eE][+-]?[0-9]{1,3})?`).Draw(t, "exponent")
}

func rational(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%s is not a number", text)
	}
	return r
}

// TestCanonicalNumbersAreExact: the canonical number is the same number, and one number has one text.
func TestCanonicalNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := number(t)
		got, err := events.Canonical(events.Raw(text))
		if err != nil {
			t.Fatal(err)
		}
		exact := rational(t, text)
		if rational(t, string(got)).Cmp(exact) != 0 {
			t.Fatalf("%s became %s", text, got)
		}
		shift := rapid.IntRange(-30, 30).Draw(t, "shift")
		power := new(big.Rat).SetFrac(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, 0))), nil), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(-shift, 0))), nil))
		other := fmt.Sprintf("%se%d", new(big.Rat).Mul(exact, power).FloatString(1100), -shift)
		if again, err := events.Canonical(events.Raw(other)); err != nil || string(again) != string(got) {
			t.Fatalf("%s is %s, and as %.80s… it is %s (%v)", text, got, other, again, err)
		}
	})
}

// TestCanonicalIsJCSForDoubles: for what a double holds exactly and prints shortest, the text is RFC 8785's.
func TestCanonicalIsJCSForDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "f")
		jcs := events.Raw(fmt.Sprintf("%g", f))
		want := events.Raw(strings.Clone(string(jcs)))
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		got, err := events.Canonical(jcs)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s: got %s, %v, want %s", jcs, got, err, want)
		}
	})
}

func TestCanonicalIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once, err := events.Canonical(events.Raw(anyJSON(t, 3)))
		if err != nil {
			t.Fatal(err)
		}
		twice, err := events.Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%s then %s (%v)", once, twice, err)
		}
	})
}

// anyJSON draws a JSON text whose members are unique, with odd spaces.
func anyJSON(t *rapid.T, depth int) string {
	if depth == 0 || rapid.Bool().Draw(t, "leaf") {
		return rapid.OneOf(
			rapid.Custom(number), rapid.SampledFrom([]string{"true", "false", "null", `"\u00e1"`, `"á"`}),
			rapid.Custom(func(t *rapid.T) string { return string(events.SecretOf(rapid.String().Draw(t, "s")).Reveal()) }),
		).Draw(t, "scalar")
	}
	n := rapid.IntRange(0, 3).Draw(t, "n")
	var parts []string
	for i := range n {
		inner := anyJSON(t, depth-1)
		parts = append(parts, fmt.Sprintf(" \"%c%d\" :\t%s ", 'z'-rune(i), i, inner))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestOneActionHasOneDigest: how an agent writes its JSON does not change what is approved.
func TestOneActionHasOneDigest(t *testing.T) {
	decode := func(text string) events.Candidate {
		var c events.Candidate
		if err := events.Decode([]byte(text), events.MaxCandidate, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	one := decode(candidateText(`{"amount":100,"note":"caf\u00e9 / x","to":{"b":1.0,"a":[1e2]}}`))
	for name, text := range map[string]string{
		"order_and_spaces": candidateText(`{ "to" : {"a":[1e2], "b":1.0} , "note":"caf\u00e9 / x", "amount":100 }`),
		"escapes":          candidateText(`{"amount":100,"n\u006fte":"café \/ x","to":{"b":1.0,"a":[1e2]}}`),
		"number_forms":     candidateText(`{"amount":1.00E+2,"note":"café / x","to":{"b":1,"a":[100]}}`),
		"version":          strings.Replace(candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100]}}`), `"version":1`, `"version":2`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			other := decode(text)
			if one.Action() != other.Action() || one.Content() != other.Content() {
				t.Errorf("action %s and %s, content %s and %s", one.Action(), other.Action(), one.Content(), other.Content())
			}
		})
	}
	for name, text := range map[string]string{
		"value":           candidateText(`{"amount":101,"note":"café / x","to":{"b":1,"a":[100]}}`),
		"type":            candidateText(`{"amount":"100","note":"café / x","to":{"b":1,"a":[100]}}`),
		"2_to_53":         candidateText(`{"amount":100.0000000000000000001,"note":"café / x","to":{"b":1,"a":[100]}}`),
		"member":          candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100],"c":null}}`),
		"list_order":      candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100,1]}}`),
		"tool":            strings.Replace(candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100]}}`), `{"name":"n"}`, `{"name":"n","server":"s"}`, 1),
		"task":            strings.Replace(candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100]}}`), `"task":"t"`, `"task":"u"`, 1),
		"step":            strings.Replace(candidateText(`{"amount":100,"note":"café / x","to":{"b":1,"a":[100]}}`), `"step":"s"`, `"step":"r"`, 1),
		"unicode_sibling": candidateText(`{"amount":100,"note":"cafe\u0301 / x","to":{"b":1,"a":[100]}}`),
	} {
		t.Run("differs_by_"+name, func(t *testing.T) {
			if other := decode(text); one.Action() == other.Action() || one.Content() == other.Content() {
				t.Errorf("%s has the digests of another", text)
			}
		})
	}
}

// TestNumbersKeepTheirText from an agent's bytes through the log to the executor's.
func TestNumbersKeepTheirText(t *testing.T) {
	for _, text := range []string{"9007199254740993", "-9007199254740993", "1e400", "0.10", "123456789012345678901234567890", "-0"} {
		t.Run(text, func(t *testing.T) {
			body := `{"specversion":"1.0","id":"1","source":"/a","type":"dev.clarify.candidate.proposed.v1","data":` + candidateText(`{"n":`+text+`}`) + `}`
			proposed, err := events.Open(structured(), []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			state := storyAsk()
			state.Candidate = proposed.Data.(events.Candidate)
			sealed, err := events.Seal(events.Envelope{Source: "/b", Data: state})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := events.Open(structured(), sealed)
			if err != nil {
				t.Fatal(err)
			}
			args := stored.Data.(events.State).Candidate.Arguments
			granted, err := events.Encode(events.ClaimReply{Granted: &events.Grant{Arguments: args}})
			if err != nil {
				t.Fatal(err)
			}
			var reply events.ClaimReply
			if err := events.Decode(granted, events.MaxState, &reply); err != nil {
				t.Fatal(err)
			}
			if got := string(reply.Granted.Arguments.Raw()); got != `{"n":`+text+`}` {
				t.Errorf("the executor gets %s", got)
			}
		})
	}
}
