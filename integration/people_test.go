package integration_test

import (
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

// TestPeople is what the people see who answer at the same time, wrongly, late or twice: each is told the truth, and none of
// it needs code by whoever uses the broker.
func TestPeople(t *testing.T) {
	for name, story := range map[string]func(*world){
		"eight_click_at_once_on_two_surfaces": eightClick,
		"stale_wrong_and_repeated_are_told":   toldTheTruth,
	} {
		t.Run(name, func(t *testing.T) {
			bustest.Bubble(t, func(t *testing.T) { story(newWorld(t)) })
		})
	}
}

// eightClick has eight people answer one approval at once, four on each of two channels.
func eightClick(w *world) {
	second := channels.NewDesk(w.bus, "pager", 0)
	w.run("second desk", second.Run)
	done := w.do(w.t.Context(), candidate("t1", "docs.review", events.Arguments{}))
	q := w.question()
	w.question() // the same on the other channel
	var all sync.WaitGroup
	verdicts := make([]events.Verdict, 8)
	for i := range verdicts {
		all.Go(func() {
			desk, who := w.desk, []string{"ana", "ben"}[i%2]
			if i >= 4 {
				desk, who = second, "ana"
			}
			a := answerTo(q, who, q.Content.Fields[0].Options[i%2].ID)
			var err error
			if verdicts[i], err = desk.Submit(w.t.Context(), a); err != nil {
				w.t.Errorf("%d by %s: %v", i, who, err)
			}
		})
	}
	all.Wait()
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	accepted := 0
	for _, v := range verdicts {
		if v.Accepted {
			accepted++
			continue
		}
		w.wantRefused(v, events.Duplicate, false)
		if v.Refusal.AnsweredBy == nil || v.Refusal.AnsweredBy.Person == "" || v.Refusal.AnsweredAt.IsZero() {
			w.t.Errorf("not told who answered and when: %+v", v.Refusal)
		}
	}
	if accepted != 1 {
		w.t.Errorf("%d of 8 answers were accepted", accepted)
	}
	w.wantEffects(1)
}

func toldTheTruth(w *world) {
	first := w.do(w.t.Context(), juans("t1"))
	old := w.question()
	done := w.do(w.t.Context(), juans("t1"))
	<-first
	q := w.question()
	w.wantRefused(w.answer(old, "ana", "c-101"), events.StaleVersion, false)
	w.wantRefused(w.answer(q, "ana", "c-999"), events.NotAnOption, true)
	again := answerTo(q, "ben", "c-999")
	for range 2 { // a provider that delivers the same click twice
		v, err := w.desk.Submit(w.t.Context(), again)
		if err != nil {
			w.t.Fatal(err)
		}
		w.wantRefused(v, events.NotAnOption, true)
	}
	w.wantStill(done, events.Reached, "t1")
	if v := w.answer(q, "ana", "c-207"); !v.Accepted {
		w.t.Fatalf("refused %+v", v.Refusal)
	}
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
	w.wantRefused(w.answer(q, "ben", "c-101"), events.Duplicate, false)
	w.wantEffects(1)
}
