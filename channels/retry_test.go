package channels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for failed := 1; failed <= 7; failed++ {
		got = append(got, backoff(failed, 0))
	}
	want := []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if early, late := backoff(3, -1), backoff(3, 1); early != 48*time.Second || late != 72*time.Second {
		t.Errorf("jitter moves a minute to %s and %s", early, late)
	}
}

func TestRetry(t *testing.T) {
	now := time.Date(2026, 12, 1, 14, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		retry retry
		want  time.Duration
	}{
		"transient_waits":                      {retry{fault: Fault(Transient, "x", nil), failed: 1, notAfter: in(time.Hour)}, 5 * time.Second},
		"ambiguous_waits":                      {retry{fault: Fault(Ambiguous, "x", nil), failed: 2, notAfter: in(time.Hour)}, 20 * time.Second},
		"the_provider's_wish_is_longer":        {retry{fault: &Error{Class: Transient, RetryAfter: time.Minute}, failed: 1, notAfter: in(time.Hour)}, time.Minute},
		"the_provider's_wish_is_shorter":       {retry{fault: &Error{Class: Transient, RetryAfter: time.Second}, failed: 2, notAfter: in(time.Hour)}, 20 * time.Second},
		"content_ends":                         {retry{fault: Fault(Content, "x", nil), failed: 1, notAfter: in(time.Hour)}, 0},
		"permanent_ends":                       {retry{fault: Fault(Permanent, "x", nil), failed: 1, notAfter: in(time.Hour)}, 0},
		"config_ends":                          {retry{fault: Fault(Misconfigured, "x", nil), failed: 1, notAfter: in(time.Hour)}, 0},
		"tries_left":                           {retry{fault: &Error{Class: Transient, Tries: 3}, failed: 2, notAfter: in(time.Hour)}, 20 * time.Second},
		"tries_used_up":                        {retry{fault: &Error{Class: Transient, Tries: 3}, failed: 3, notAfter: in(time.Hour)}, 0},
		"no_limit":                             {retry{fault: Fault(Transient, "x", nil), failed: 9}, 5 * time.Minute},
		"one_more_just_in_time":                {retry{fault: Fault(Transient, "x", nil), failed: 5, notAfter: in(time.Minute)}, 50 * time.Second},
		"no_time_left":                         {retry{fault: Fault(Transient, "x", nil), failed: 5, notAfter: in(8 * time.Second)}, 0},
		"the_provider_wants_more_than_is_left": {retry{fault: &Error{Class: Transient, RetryAfter: time.Hour}, failed: 1, notAfter: in(time.Minute)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.retry.wait(now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestClassOf(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"its_own":                 {Fault(Permanent, "x", nil), Permanent},
		"wrapped":                 {fmt.Errorf("deliver: %w", Fault(Content, "x", nil)), Content},
		"unknown_is_ambiguous":    {errors.New("boom"), Ambiguous},
		"cancelled_is_ambiguous":  {context.Canceled, Ambiguous},
		"class_zero_is_ambiguous": {&Error{Code: "x"}, Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ClassOf(c.err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if text := Fault(Permanent, "gone", errors.New("https://hooks.example.com/secret")).Error(); strings.Contains(text, "secret") {
		t.Errorf("the error says %q", text)
	}
}

func TestKey(t *testing.T) {
	q := events.Question{Phase: events.PhaseAsk, Delivery: events.Delivery{ID: "01K9.7.ana@x"}}
	seen := map[string]bool{}
	for _, phase := range []events.Phase{events.PhaseAsk, events.PhaseRemind, events.PhaseClose} {
		q.Phase = phase
		key := Key(q)
		if _, err := events.ParseTask(key); err != nil {
			t.Error(err)
		}
		if seen[key] || key != Key(q) {
			t.Errorf("%s: %s is no key of its own", phase, key)
		}
		seen[key] = true
	}
}

func TestTyped(t *testing.T) {
	schema := func(s string) events.Field { return events.Field{FreeText: &events.FreeText{Schema: events.Raw(s)}} }
	for name, c := range map[string]struct {
		field      events.Field
		text, want string
	}{
		"no_schema_is_a_string":          {events.Field{}, "12", `"12"`},
		"integer":                        {schema(`{"type":"integer"}`), " 9007199254740993 ", `9007199254740993`},
		"boolean":                        {schema(`{"type":"boolean"}`), "true", `true`},
		"object":                         {schema(`{"type":"object"}`), `{"a":[1]}`, `{"a":[1]}`},
		"string_that_looks_like_json":    {schema(`{"type":"string"}`), "12", `"12"`},
		"not_a_number_stays_what_it_was": {schema(`{"type":"number"}`), "twelve", `"twelve"`},
		"several_types_are_a_string":     {schema(`{"type":["number","string"]}`), "12", `"12"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Typed(c.field, c.text).Reveal()); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	want := map[events.Reason]int{
		events.UnknownTask: 404, events.WrongKind: 422, events.NotAllowed: 403, events.StaleVersion: 409,
		events.Duplicate: 409, events.NotPending: 409, events.Incomplete: 422, events.NotAnOption: 422, events.InvalidValue: 422,
	}
	for _, r := range events.Reasons() {
		got := Status(events.Verdict{Refusal: &events.Refusal{Reason: r}})
		if got < 400 || want[r] != 0 && got != want[r] {
			t.Errorf("%s: got %d, want %d", r, got, want[r])
		}
	}
	if got := Status(events.Verdict{}); got != 422 {
		t.Errorf("neither accepted nor refused: got %d", got)
	}
	if got := Status(events.Verdict{Accepted: true}); got != 200 {
		t.Errorf("accepted: got %d", got)
	}
}
