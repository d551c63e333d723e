package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

// TestRefuse is what a broker of clarifications must refuse to do, one row each, with the effects of a real tool counted.
func TestRefuse(t *testing.T) {
	for name, row := range map[string]func(*world){
		"missing_field_with_high_consequence_waits":       missingWaits,
		"missing_field_with_reversible_default_proceeds":  defaultProceeds,
		"valid_answer_resumes_the_same_step":              answerResumes,
		"answer_outside_the_options_stays_pending":        outsideOptions,
		"repeated_answer_is_refused":                      repeatedAnswer,
		"answer_to_an_old_version_is_refused":             oldVersion,
		"cancel_has_no_effect_and_a_reason":               cancelled,
		"time_out_is_by_policy_and_never_an_answer":       timedOut,
		"time_out_with_a_documented_default_is_no_answer": timedOutDefault,
		"what_is_not_delivered_is_not_released":           undelivered,
		"with_nobody_there_the_unattended_rule_holds":     unattended,
		"a_determined_request_asks_nobody":                determined,
		"an_identical_call_runs_once_for_good":            identical,
	} {
		t.Run(name, func(t *testing.T) {
			bustest.Bubble(t, func(t *testing.T) { row(newWorld(t)) })
		})
	}
}

func missingWaits(w *world) {
	done := w.do(w.t.Context(), juans("t1"))
	q := w.question()
	if len(q.Content.Fields) != 1 || q.Content.Fields[0].Name != "customer_id" {
		w.t.Fatalf("asked for %+v", q.Content.Fields)
	}
	w.wantStill(done, events.Reached, "t1")
}

func defaultProceeds(w *world) {
	out, err := w.gate.Do(w.t.Context(), candidate("t1", "docs.render", events.Arguments{}), func(_ context.Context, g events.Grant) (any, error) {
		w.effects.Add(1)
		return g.Arguments["format"].RevealString(), nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.wantEffects(1)
	if len(out.Assumptions) != 1 || out.Assumptions[0].Field != "format" || out.Result.RevealString() != "markdown" {
		w.t.Fatalf("assumed %+v, the tool got %s", out.Assumptions, out.Result.Reveal())
	}
	if len(w.asked) != 0 {
		w.t.Fatal("somebody was asked")
	}
}

func answerResumes(w *world) {
	c := juans("t1")
	var ran events.Grant
	done := make(chan error, 1)
	go func() {
		_, err := w.gate.Do(w.t.Context(), c, func(_ context.Context, g events.Grant) (any, error) {
			w.effects.Add(1)
			ran = g
			return nil, nil
		})
		done <- err
	}()
	if v := w.answer(w.question(), "ana", "c-207"); !v.Accepted {
		w.t.Fatalf("refused: %+v", v.Refusal)
	}
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	w.wantEffects(1)
	if ran.Step != c.Step || ran.Arguments["customer_id"].RevealString() != "c-207" || ran.Arguments["phone"].RevealString() != "+34 600 000 000" {
		w.t.Fatalf("ran %q with %s", ran.Step, ran.Arguments.Raw())
	}
}

func outsideOptions(w *world) {
	done := w.do(w.t.Context(), juans("t1"))
	q := w.question()
	w.wantRefused(w.answer(q, "ana", "c-999"), events.NotAnOption, true)
	w.wantStill(done, events.Reached, "t1")
	if v := w.answer(q, "ana", "c-101"); !v.Accepted {
		w.t.Fatalf("the question was open and its answer refused: %+v", v.Refusal)
	}
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	w.wantEffects(1)
}

func repeatedAnswer(w *world) {
	done := w.do(w.t.Context(), juans("t1"))
	q := w.question()
	w.answer(q, "ana", "c-207")
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	v := w.answer(q, "ben", "c-101")
	w.wantRefused(v, events.Duplicate, false)
	if v.Refusal.AnsweredBy == nil || v.Refusal.AnsweredBy.Person != "ana" || v.Refusal.AnsweredAt.IsZero() {
		w.t.Fatalf("not told who answered and when: %+v", v.Refusal)
	}
	w.wantEffects(1)
}

func oldVersion(w *world) {
	first := w.do(w.t.Context(), juans("t1"))
	old := w.question()
	second := w.do(w.t.Context(), juans("t1"))
	if newer := w.question(); newer.Version <= old.Version {
		w.t.Fatalf("versions %d, %d", old.Version, newer.Version)
	}
	if _, is := errors.AsType[*gate.Superseded](<-first); !is {
		w.t.Fatal("the first was not told that it is superseded")
	}
	w.wantRefused(w.answer(old, "ana", "c-207"), events.StaleVersion, false)
	w.wantStill(second, events.Reached, "t1")
}

func cancelled(w *world) {
	done := w.do(w.t.Context(), juans("t1"))
	a := answerTo(w.question(), "ana", "")
	a.Values, a.Cancel, a.Note = nil, true, "not this customer"
	if v, err := w.desk.Submit(w.t.Context(), a); err != nil || !v.Accepted {
		w.t.Fatalf("%v, %+v", err, v.Refusal)
	}
	c, is := errors.AsType[*gate.Cancelled](<-done)
	if !is || c.By != "ana" || c.Note != "not this customer" {
		w.t.Fatalf("told %+v", c)
	}
	w.wantEffects(0)
}

func timedOut(w *world) {
	done := w.do(w.t.Context(), juans("t1"))
	q := w.question()
	asked := time.Now()
	to, is := errors.AsType[*gate.TimedOut](<-done)
	if !is {
		w.t.Fatal("not timed out")
	}
	if waited := time.Since(asked); waited < 10*time.Minute || waited > 10*time.Minute+5*time.Second {
		w.t.Errorf("timed out after %s", waited)
	}
	if to.By != "" || w.view("t1").Pause.AnsweredBy != nil {
		w.t.Fatal("silence has a name")
	}
	w.wantRefused(w.answer(q, "ana", "c-207"), events.NotPending, false)
	w.wantEffects(0)
}

func timedOutDefault(w *world) {
	done := w.do(w.t.Context(), candidate("t1", "docs.publish", events.Arguments{}))
	w.question()
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	v := w.view("t1")
	if v.Release.From != events.FromAfterDeadline || v.Pause.AnsweredBy != nil || v.Pause.Status != events.PauseTimedOut {
		w.t.Fatalf("released from %s, answered by %v, pause %s", v.Release.From, v.Pause.AnsweredBy, v.Pause.Status)
	}
	w.wantEffects(1)
}

func undelivered(w *world) {
	w.refuses.Store(true)
	done := w.do(w.t.Context(), juans("t1"))
	if _, is := errors.AsType[*gate.Undelivered](<-done); !is {
		w.t.Fatal("not undelivered")
	}
	w.wantEffects(0)
}

func unattended(w *world) {
	c := juans("t1")
	away := false
	c.Attended = &away
	s, is := errors.AsType[*gate.Stopped](<-w.do(w.t.Context(), c))
	if !is || s.Rule == "" || s.By != "" {
		w.t.Fatalf("told %+v", s)
	}
	if len(w.asked) != 0 {
		w.t.Fatal("somebody was asked")
	}
	w.wantEffects(0)
}

func determined(w *world) {
	c := candidate("t1", "crm.update_record", events.Arguments{"customer_id": events.SecretOf("c-101"), "phone": events.SecretOf("1")})
	if err := <-w.do(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	if len(w.asked) != 0 {
		w.t.Fatal("somebody was asked")
	}
	w.wantEffects(1)
}

// identical repeats a call after another step of the task came between, as an agent does that starts again.
func identical(w *world) {
	first := candidate("t1", "crm.update_record", events.Arguments{"customer_id": events.SecretOf("c-101")})
	second := candidate("t1", "docs.render", events.Arguments{})
	for range 2 {
		for _, c := range []events.Candidate{first, second} {
			out, err := w.gate.Do(w.t.Context(), c, func(context.Context, events.Grant) (any, error) {
				w.effects.Add(1)
				return "done " + c.Tool.Name, nil
			})
			if err != nil || out.Result.RevealString() != "done "+c.Tool.Name {
				w.t.Fatalf("%v, %s", err, out.Result.Reveal())
			}
		}
	}
	w.wantEffects(2)
}
