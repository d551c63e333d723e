package audit

import (
	"slices"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// untilKind is a legal log that ends right behind the first transition of a kind that fits.
func untilKind(t *testing.T, k events.Kind, fits func(events.State) bool) []bus.Message {
	t.Helper()
	for seed := range uint64(60) {
		log := history(seed, 150)
		i := slices.IndexFunc(log, func(m bus.Message) bool {
			s, ok := m.Envelope.Data.(events.State)
			return ok && s.Kind == k && fits(s)
		})
		if i >= 0 {
			return log[:i+1]
		}
	}
	t.Fatalf("no history has a %s like that", k)
	return nil
}

func TestVerifyWarns(t *testing.T) {
	anything := func(events.State) bool { return true }
	people := func(s events.State) bool { return len(s.Pause.Deliveries) > 0 }
	for name, tc := range map[string]struct {
		kind events.Kind
		fits func(events.State) bool
		in   time.Duration
		want string
	}{
		"a_question_nobody_delivers":   {events.Asked, people, 10 * time.Minute, "undelivered"},
		"a_pause_past_its_cap":         {events.Asked, people, 2 * time.Hour, "cap"},
		"a_pause_past_its_deadline":    {events.Reached, anything, 10 * time.Minute, "deadline"},
		"a_pause_that_is_held":         {events.Overdue, anything, 0, "overdue"},
		"an_answer_that_leads_nowhere": {events.Answered, anything, 0, "answered"},
		"a_release_nobody_claims":      {events.Released, anything, 0, "unclaimed"},
		"a_claim_whose_lease_is_over":  {events.Claimed, anything, 10 * time.Minute, "lease"},
		"a_doubt":                      {events.InDoubt, anything, 0, "in_doubt"},
		"a_fresh_question":             {events.Asked, people, 0, ""},
		"a_fresh_claim":                {events.Claimed, anything, 0, ""},
		"a_task_that_is_done":          {events.Done, anything, 48 * time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := untilKind(t, tc.kind, tc.fits)
			last := log[len(log)-1]
			v := NewVerifier()
			for _, r := range recorded(t, log) {
				v.Add(r)
			}
			got := ""
			for _, w := range v.Report(last.Stored.Add(tc.in)).Warnings {
				if w.Task == last.Subject.Task {
					got = w.Name
				}
			}
			if got != tc.want {
				t.Errorf("warned of %q, want %q", got, tc.want)
			}
		})
	}
}

// TestVerifyOtherKey has the key change in the middle of tasks: what cannot be compared is not, and that is said.
func TestVerifyOtherKey(t *testing.T) {
	log := history(5, 120)
	all := redacted(log)
	for i := len(all) / 2; i < len(all); i++ {
		high := all[i].High
		all[i] = Redact([]byte("the next key, also 32 bytes long"), log[i])
		all[i].High = high
	}
	report := Verify(each(sealed(t, all)))
	if !report.OK() {
		t.Errorf("false alarm: %v", report.Violations[0])
	}
	if !slices.ContainsFunc(report.Warnings, func(w Warning) bool { return w.Name == "key" && w.Seq == all[len(all)/2].Seq }) {
		t.Errorf("no warning of the change: %v", report.Warnings)
	}
}
