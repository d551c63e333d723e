package channels

import (
	"strconv"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Words are the fixed sentences people read, in one language and time zone. They are Clarify's own: nothing an agent said is
// in them but names, which pass through [Plain] and must still be escaped for the surface they stand on.
type Words struct {
	lang  string
	table map[string]string
	zone  *time.Location
}

// In returns the sentences in the language nearest to a BCP 47 tag: Spanish for es and its regions, English otherwise. Times
// are shown in the zone; nil is UTC, which is then named.
func In(lang string, zone *time.Location) Words {
	primary, _, _ := strings.Cut(strings.ToLower(lang), "-")
	if primary == "es" {
		return Words{lang: "es", table: spanish, zone: zone}
	}
	return Words{lang: "en", table: english, zone: zone}
}

// Lang is the language of the sentences, for a lang attribute.
func (w Words) Lang() string { return w.lang }

// Say returns the sentence of a key with {name} replaced by its value: pairs are name, value, name, value.
func (w Words) Say(key string, pairs ...string) string {
	marked := make([]string, len(pairs))
	for i, text := range pairs {
		if i%2 == 0 {
			text = "{" + text + "}"
		}
		marked[i] = text
	}
	return strings.NewReplacer(marked...).Replace(w.table[key]) // one pass: a name that looks like a mark stays a name
}

// At writes a time of day, with the date when it is not the same day as now, both in the reader's zone.
func (w Words) At(t, now time.Time) string {
	zone, layout := w.zone, "15:04"
	if zone == nil {
		zone, layout = time.UTC, "15:04 UTC"
	}
	t, now = t.In(zone), now.In(zone)
	if t.Year() != now.Year() || t.YearDay() != now.YearDay() {
		layout = "2006-01-02 " + layout
	}
	return t.Format(layout)
}

// Who names a responder as people know them; a responder without a name is not named by an address.
func (w Words) Who(r *events.Responder) string {
	switch {
	case r == nil:
		return w.Say("somebody")
	case strings.TrimSpace(r.Name) != "":
		return Plain(r.Name)
	case r.Person != "":
		return Plain(r.Person)
	}
	return w.Say("somebody")
}

// Pending is what is said of an answer that is stored and not judged yet ([ErrPending]).
func (w Words) Pending() string { return w.Say("pending") }

// Verdict is what is said of a submission that was judged.
func (w Words) Verdict(v events.Verdict) string {
	if v.Refusal != nil || !v.Accepted {
		return w.refused(v)
	}
	saved := w.Say("saved")
	if then := w.Say("saved." + string(v.Kind)); then != "" {
		return saved + " " + then
	}
	return saved
}

func (w Words) refused(v events.Verdict) string {
	r := events.Refusal{At: v.At}
	if v.Refusal != nil {
		r = *v.Refusal
	}
	lead := w.Say("refused."+string(r.Reason), "who", w.Who(r.AnsweredBy), "at", w.At(r.AnsweredAt, r.At),
		"became", w.Became(v.Kind), "field", Plain(r.Field), "seen", number(v.Version), "current", number(v.Current))
	if r.Reason == events.Duplicate && r.AnsweredAt.IsZero() {
		lead = w.Say("refused.duplicate.untimed", "who", w.Who(r.AnsweredBy))
	}
	if lead == "" {
		lead = w.Say("refused")
	}
	if v.Open {
		return lead + " " + w.Say("still_open")
	}
	return lead + " " + w.Say("nothing_sent")
}

// Became says what a task did: "it was cancelled".
func (w Words) Became(k events.Kind) string {
	if text := w.Say("became." + string(k)); text != "" {
		return text
	}
	return w.Say("became")
}

// Closed says to every surface of a question what became of it.
func (w Words) Closed(c events.Closed, now time.Time) string {
	key := "closed." + string(c.Status)
	if c.Status == events.PauseAnswered && c.Kind == events.Denied {
		key = "closed.denied"
	}
	if c.By == nil && w.table[key+".unnamed"] != "" {
		key += ".unnamed"
	}
	return w.Say(key, "who", w.Who(c.By), "at", w.At(c.At, now))
}

// Next says what happens after an answer.
func (w Words) Next(k events.PauseKind) string { return w.Say("next." + string(k)) }

// Silence says what it means if nobody answers before the deadline. Silence never runs an action, except that a policy may
// have a documented default for an action that can be taken back, and then it says so.
func (w Words) Silence(after events.AfterDeadline) string {
	if text := w.Say("silence." + string(after)); text != "" {
		return text
	}
	return w.Say("silence")
}

func number(v events.Version) string {
	if v == 0 {
		return "?"
	}
	return strconv.FormatUint(uint64(v), 10)
}
