package channels

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

var answerReasons = []events.Reason{
	events.UnknownTask, events.WrongKind, events.NotAllowed, events.StaleVersion, events.Duplicate,
	events.NotPending, events.Incomplete, events.NotAnOption, events.InvalidValue,
}

var mark = regexp.MustCompile(`\{[a-z]+\}`)

func TestWords(t *testing.T) {
	t.Run("same_keys_and_marks_in_both_languages", func(t *testing.T) {
		en, es := slices.Sorted(maps.Keys(english)), slices.Sorted(maps.Keys(spanish))
		if diff := cmp.Diff(en, es); diff != "" {
			t.Fatal(diff)
		}
		for _, key := range en {
			if english[key] == "" || spanish[key] == "" || english[key] == spanish[key] {
				t.Errorf("%s: is empty or not translated", key)
			}
			if diff := cmp.Diff(sortedMarks(english[key]), sortedMarks(spanish[key])); diff != "" {
				t.Errorf("%s: %s", key, diff)
			}
		}
	})
	t.Run("every_reason_for_answers_has_a_sentence", func(t *testing.T) {
		for _, lang := range []string{"en", "es"} {
			for _, r := range answerReasons {
				if In(lang, nil).Say("refused."+string(r)) == "" {
					t.Errorf("%s: %s has none", lang, r)
				}
			}
		}
	})
	t.Run("every_status_and_after_deadline_has_a_sentence", func(t *testing.T) {
		for _, s := range []events.PauseStatus{events.PauseAnswered, events.PauseCancelled, events.PauseTimedOut, events.PauseUndelivered, events.PauseSuperseded} {
			if In("en", nil).Closed(events.Closed{Status: s}, time.Time{}) == "" {
				t.Errorf("%s has none", s)
			}
		}
		for _, a := range []events.AfterDeadline{events.DeadlineHold, events.DeadlineStop, events.DeadlineDefault, events.DeadlineEscalate} {
			if In("en", nil).Say("silence."+string(a)) == "" {
				t.Errorf("%s has none", a)
			}
		}
	})
}

func sortedMarks(s string) []string {
	found := mark.FindAllString(s, -1)
	slices.Sort(found)
	return found
}

func TestVerdictWords(t *testing.T) {
	at := time.Date(2026, 12, 1, 14, 21, 0, 0, time.UTC)
	ana := &events.Responder{Name: "Ana", Subject: "ana@example.com"}
	refuse := func(r events.Refusal) events.Verdict {
		r.At = at.Add(time.Minute)
		return events.Verdict{Version: 3, Current: 4, Refusal: &r, At: r.At}
	}
	open := func(v events.Verdict) events.Verdict { v.Open = true; return v }
	became := func(v events.Verdict, k events.Kind) events.Verdict { v.Kind = k; return v }
	for name, c := range map[string]struct {
		verdict events.Verdict
		en, es  string
	}{
		"saved": {
			events.Verdict{Accepted: true, Kind: events.Released},
			"Saved. The agent may now run the action, once.", "Guardada. El agente ya puede ejecutar la acción, una sola vez.",
		},
		"duplicate": {
			refuse(events.Refusal{Reason: events.Duplicate, AnsweredBy: ana, AnsweredAt: at}),
			"Already answered by Ana at 14:21 UTC. Nothing was sent.", "Ya la respondió Ana a las 14:21 UTC. No se ha enviado nada.",
		},
		"duplicate_by_nobody_named": {
			refuse(events.Refusal{Reason: events.Duplicate, AnsweredBy: &events.Responder{Subject: "ana@example.com"}}),
			"Already answered by somebody. Nothing was sent.", "Ya la respondió alguien. No se ha enviado nada.",
		},
		"not_an_option": {
			open(refuse(events.Refusal{Reason: events.NotAnOption})),
			"That is not one of the options. The question is still open.", "No es una de las opciones. La pregunta sigue abierta.",
		},
		"not_an_option_of_a_question_that_ended": {
			refuse(events.Refusal{Reason: events.NotAnOption}),
			"That is not one of the options. Nothing was sent.", "No es una de las opciones. No se ha enviado nada.",
		},
		"stale_version": {
			refuse(events.Refusal{Reason: events.StaleVersion}),
			"The question has changed since it was shown to you (version 3, now 4). Nothing was sent.",
			"La pregunta ha cambiado desde que se le mostró (versión 3, ahora 4). No se ha enviado nada.",
		},
		"not_allowed": {
			open(refuse(events.Refusal{Reason: events.NotAllowed})),
			"You are not one of the people who may answer this. The question is still open.",
			"Usted no es una de las personas que pueden responder a esto. La pregunta sigue abierta.",
		},
		"not_pending": {
			became(refuse(events.Refusal{Reason: events.NotPending}), events.TimedOut),
			"This question is no longer open: nobody answered in time. Nothing was sent.",
			"Esta pregunta ya no está abierta: nadie respondió a tiempo. No se ha enviado nada.",
		},
		"a_reason_nobody_knows_is_not_saved": {
			refuse(events.Refusal{Reason: "novel"}),
			"That could not be accepted. Nothing was sent.", "No se pudo aceptar. No se ha enviado nada.",
		},
		"neither_accepted_nor_refused_is_not_saved": {
			events.Verdict{},
			"That could not be accepted. Nothing was sent.", "No se pudo aceptar. No se ha enviado nada.",
		},
		"a_name_is_not_a_mark": {
			refuse(events.Refusal{Reason: events.Duplicate, AnsweredBy: &events.Responder{Name: "{at}\u202e"}, AnsweredAt: at}),
			"Already answered by {at}[U+202E] at 14:21 UTC. Nothing was sent.", "Ya la respondió {at}[U+202E] a las 14:21 UTC. No se ha enviado nada.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.en, In("en-GB", nil).Verdict(c.verdict)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.es, In("es-MX", nil).Verdict(c.verdict)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAt(t *testing.T) {
	madrid, err := time.LoadLocation("Europe/Madrid")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 1, 23, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		zone *time.Location
		now  time.Time
		want string
	}{
		"same_day_in_utc":             {nil, at.Add(time.Minute), "23:30 UTC"},
		"another_day_in_utc":          {nil, at.Add(time.Hour), "2026-12-01 23:30 UTC"},
		"the_reader's_day_is_another": {madrid, at.Add(time.Hour), "00:30"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := In("en", c.zone).At(at, c.now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"text_stays":               {"Juan Pérez, 李, 👩‍👧 <b>&", "Juan Pérez, 李, 👩‍👧 <b>&"},
		"direction_is_shown":       {"user\u202Exe.txt", "user[U+202E]xe.txt"},
		"isolates_are_shown":       {"\u2066a\u2069", "[U+2066]a[U+2069]"},
		"zero_width_is_shown":      {"pay\u200bpal\ufeff", "pay[U+200B]pal[U+FEFF]"},
		"tags_are_shown":           {"a\U000E0041", "a[U+E0041]"},
		"escape_codes_are_shown":   {"\x1b[31mred\x07", "[U+001B][31mred[U+0007]"},
		"lines_become_spaces":      {"a\r\nb\tc", "a b c"},
		"a_lone_return_is_shown":   {"good\rbad", "good[U+000D]bad"},
		"invalid_utf8_is_replaced": {"a\xffb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plain(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := PlainLines("a\r\nb\u202e"); got != "a\nb[U+202E]" {
		t.Errorf("lines: got %q", got)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\u202eb\nc")
	f.Fuzz(func(t *testing.T, s string) {
		once := Plain(s)
		if strings.ContainsFunc(once, lies) || strings.ContainsAny(once, "\n\t\r") {
			t.Fatalf("%q still lies", once)
		}
		if Plain(once) != once {
			t.Fatalf("%q changes again", once)
		}
	})
}
