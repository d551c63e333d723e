package events_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
)

const canary = "CANARY-7f3a"

// candidateText is a candidate's data with one part of it replaced.
func candidateText(arguments string) string {
	return `{"agent":"a","task":"t","version":1,"step":"s","tool":{"name":"n"},"arguments":` + arguments + `}`
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestDecodeRefuses(t *testing.T) {
	const bearing = `"` + canary + `"`
	for name, test := range map[string]struct{ text, field string }{
		"duplicate_member":          {`{"agent":` + bearing + `,"agent":"b"}`, "agent"},
		"duplicate_nested":          {candidateText(`{"x":` + bearing + `,"x":1}`), "arguments.x"},
		"duplicate_by_escape":       {candidateText(`{"x":` + bearing + `,"\u0078":1}`), "arguments.x"},
		"duplicate_in_a_secret":     {candidateText(`{"x":{"y":[{"z":` + bearing + `,"z":2}]}}`), "arguments.x.y.0.z"},
		"unknown_member":            {`{"agnet":` + bearing + `}`, "agnet"},
		"unknown_by_case":           {`{"Agent":` + bearing + `}`, "Agent"},
		"unknown_nested":            {`{"tool":{"nmae":` + bearing + `}}`, "tool.nmae"},
		"unknown_in_a_list":         {`{"missing":[{"field":"f"},{"feild":` + bearing + `}]}`, "missing.1.feild"},
		"invalid_utf8":              {candidateText(`{"x":"` + canary + "\xff" + `"}`), "arguments.x"},
		"invalid_utf8_name":         {candidateText(`{"` + "\xff" + `":` + bearing + `}`), "arguments"},
		"lone_surrogate":            {candidateText(`{"x":"` + canary + `\ud800"}`), "arguments.x"},
		"trailing_value":            {candidateText(`{"x":`+bearing+`}`) + ` {}`, "body"},
		"trailing_text":             {candidateText(`{"x":`+bearing+`}`) + canary, "body"},
		"truncated":                 {candidateText(`{"x":` + bearing)[:60] + bearing, ""},
		"nothing":                   {``, "body"},
		"spaces":                    {` `, "body"},
		"byte_order_mark":           {"\ufeff" + candidateText(`{}`), "body"},
		"not_a_number":              {candidateText(`{"x":NaN}`), "arguments.x"},
		"leading_zero":              {candidateText(`{"x":007}`), ""},
		"control_character":         {candidateText("{\"x\":\"" + canary + "\n\"}"), ""},
		"text_for_an_object":        {candidateText(bearing), "arguments"},
		"negative_version":          {`{"version":-1}`, "version"},
		"fractional_version":        {`{"version":1.5}`, "version"},
		"version_too_large":         {`{"version":18446744073709551616}`, "version"},
		"one_level_too_deep":        {candidateText(`{"x":` + nested(31) + `}`), "body"},
		"many_levels_too_deep":      {candidateText(`{"x":` + nested(9000) + `}`), "body"},
		"deeper_than_any_stack":     {candidateText(`{"x":` + nested(60000) + `}`), "body"},
		"larger_than_its_limit":     {candidateText(`{"x":"` + strings.Repeat(canary, events.MaxCandidate/len(canary)) + `"}`), "body"},
		"a_decision_without_a_kind": {`{"decision":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var v any = new(events.Candidate)
			if name == "a_decision_without_a_kind" {
				v = new(events.State)
			}
			err := events.Decode([]byte(test.text), events.MaxCandidate, v)
			inv, ok := errors.AsType[*events.Invalid](err)
			if !ok {
				t.Fatalf("got %v, want an *Invalid", err)
			}
			if test.field != "" && inv.Field != test.field {
				t.Errorf("blames %q, want %q: %v", inv.Field, test.field, err)
			}
			if inv.Problem == "" || inv.Fix == "" {
				t.Errorf("%v does not say what is wrong and how to mend it", err)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("quotes the input: %v", err)
			}
		})
	}
}

func TestDecodeTakes(t *testing.T) {
	for name, text := range map[string]string{
		"the_deepest":  candidateText(`{"x":` + nested(30) + `}`),
		"the_largest":  candidateText(`{"x":"` + strings.Repeat("x", events.MaxCandidate-len(candidateText(`{"x":""}`))) + `"}`),
		"white_space":  " \n\t" + candidateText(`{}`) + "\r\n ",
		"escapes":      candidateText(`{"x":"\ud83d\ude00 \u0000 \u202e"}`),
		"an_empty_key": candidateText(`{"":{"":1}}`),
	} {
		t.Run(name, func(t *testing.T) {
			var c events.Candidate
			if err := events.Decode([]byte(text), events.MaxCandidate, &c); err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDecodeNamesPlacesSafely: a member's name comes from outside as well.
func TestDecodeNamesPlacesSafely(t *testing.T) {
	err := events.Decode([]byte(`{"`+"\\n\u202e"+strings.Repeat("x", 5000)+`":1}`), events.MaxCandidate, new(events.Candidate))
	if err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\u202e") {
		t.Errorf("%d bytes: %q", len(err.Error()), err)
	}
}

// TestDeepestCandidateFitsItsState: what an agent may send can also be kept, shown and handed back.
func TestDeepestCandidateFitsItsState(t *testing.T) {
	var c events.Candidate
	if err := events.Decode([]byte(candidateText(`{"x":`+nested(30)+`}`)), events.MaxCandidate, &c); err != nil {
		t.Fatal(err)
	}
	state := storyAsk()
	state.Candidate = c
	field := storyField()
	field.Options[0].Value = c.Arguments["x"]
	field.FreeText = &events.FreeText{MaxRunes: 5, Schema: events.Raw(nested(29))}
	state.Pause.Fields = []events.Field{field}
	shown := storyShown(events.PhaseAsk)
	shown.Content.Fields = []events.Field{field}
	for _, v := range []any{state, shown} {
		sealed, err := events.Seal(events.Envelope{Source: "/test", Data: v})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := events.Open(structured(), sealed); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
	grant := events.ClaimReply{Granted: &events.Grant{Arguments: c.Arguments}}
	text, err := events.Encode(grant)
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Decode(text, events.MaxState, new(events.ClaimReply)); err != nil {
		t.Error(err)
	}
}
