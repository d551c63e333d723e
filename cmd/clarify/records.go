package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// errEnough ends a tail that has seen what it was made for.
var errEnough = errors.New("seen enough")

// everyTask matches the audit records of all tasks, and those about the log itself.
func everyTask() key { return key{"*", "*"} }

// records reads the audit of a task, or of everyTask, from its beginning up to what is there now.
func (l *link) records(ctx context.Context, k key) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		pattern := l.Space().Audit(k.agent, k.task)
		bounded, cancel := l.bounded(ctx)
		last, err := l.Last(bounded, bus.Audit, pattern)
		cancel()
		if errors.Is(err, bus.ErrNotFound) {
			return
		}
		if err != nil {
			yield(events.Record{}, err)
			return
		}
		err = l.Tail(ctx, bus.Audit, 1, []string{pattern}, func(_ context.Context, m bus.Message) error {
			r, err := recordOf(m)
			if !yield(r, err) || m.Seq >= last.Seq {
				return errEnough
			}
			return nil
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(events.Record{}, err)
		}
	}
}

func recordOf(m bus.Message) (events.Record, error) {
	r, isRecord := m.Envelope.Data.(events.Record)
	switch {
	case m.Problem != nil:
		return r, fmt.Errorf("audit message %d: %w", m.Seq, m.Problem)
	case !isRecord:
		return r, fmt.Errorf("audit message %d is no record", m.Seq)
	}
	return r, nil
}

// recordLine is a record on one line, columns apart by tabs: when, what, and the particulars.
func recordLine(r events.Record) string {
	what, detail := describe(r)
	return r.At.Local().Format("2006-01-02 15:04:05.000") + "\t" + what + "\t" + versionOf(r) + "\t" + strings.Join(detail, "  ")
}

func versionOf(r events.Record) string {
	if r.Version == 0 {
		return "-"
	}
	return fmt.Sprintf("v%d", r.Version)
}

func describe(r events.Record) (what string, detail []string) {
	switch {
	case r.Transition != nil:
		return plainKind(r.Transition.Kind), transition(*r.Transition)
	case r.Refusal != nil:
		detail = []string{r.Refusal.Of + " refused: " + strings.ReplaceAll(string(r.Refusal.Reason), "_", " ")}
		if r.Refusal.Responder != nil {
			detail = append(detail, "by "+person(*r.Refusal.Responder))
		}
		return "refused", append(detail, "nothing changed")
	case r.Loss != nil:
		detail = []string{fmt.Sprintf("the log came back at %d after %d", r.Loss.Now, r.Loss.Was)}
		if r.Loss.By != "" {
			detail = append(detail, "acknowledged by "+channels.Plain(r.Loss.By))
		}
		return "data loss", detail
	}
	return "unreadable", []string{"a message of the log that is no " + string(r.Unreadable)}
}

// transition says what is new in a task's state at this kind of transition.
func transition(t events.Transition) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, channels.Plain(fmt.Sprintf(format, args...))) }
	switch t.Kind {
	case events.Asked, events.ApprovalAsked, events.Escalated:
		add("%s", t.Tool)
		add("decision %s by rule %s", t.Decision, t.Why.Rule)
		if t.Pause != nil {
			add("question %s%s", t.Pause.Question, fieldNames(*t.Pause))
		}
	case events.Stopped, events.Conflicted:
		add("%s", t.Tool)
		add("decision %s by rule %s", t.Decision, t.Why.Rule)
	case events.Reached, events.Rerouted, events.Reminded, events.Undelivered:
		if t.Pause != nil {
			add("%s", deliveries(*t.Pause))
		}
	case events.Released:
		if t.Release != nil {
			add("from %s", strings.ReplaceAll(string(t.Release.From), "_", " "))
		}
		add("decision %s by rule %s", t.Decision, t.Why.Rule)
	case events.Claimed:
		if t.Claim != nil {
			add("by worker %s, fence %d, lease until %s", t.Claim.Worker, t.Claim.Fence, clock(t.Claim.Until))
		}
	default: // the kind says it all, with what ending adds
	}
	out = append(out, ending(t)...)
	return out
}

func ending(t events.Transition) []string {
	var out []string
	if n := len(t.Accepted); n > 0 {
		switch a := t.Accepted[n-1]; t.Kind {
		case events.Answered, events.Released, events.Denied, events.Asked, events.ApprovalAsked, events.Escalated, events.Stopped:
			out = append(out, fmt.Sprintf("%s v%d by %s", a.Kind, a.Version, person(a.Responder)))
		default: // that answer moved the task at an earlier transition, and was shown there
		}
	}
	if t.By != "" {
		out = append(out, "by "+channels.Plain(t.By))
	}
	if t.Effect != nil {
		out = append(out, "effect "+string(t.Effect.Status))
	}
	if t.Superseded > 0 {
		out = append(out, fmt.Sprintf("replaces v%d", t.Superseded))
	}
	return out
}

func fieldNames(p events.PauseRecord) string {
	var names []string
	for _, f := range p.Fields {
		names = append(names, fmt.Sprintf("%s of %d", f.Name, f.Options))
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func deliveries(p events.PauseRecord) string {
	var out []string
	for _, d := range p.Deliveries {
		state := string(d.State)
		if state == "" {
			state = "asked"
		}
		if d.Code != "" {
			state += " " + d.Code
		}
		out = append(out, string(d.Channel)+" "+state)
	}
	return strings.Join(out, ", ")
}

func person(r events.ResponderRecord) string {
	name := r.Person
	if name == "" {
		name = r.Subject
	}
	if len(name) > 24 && strings.HasPrefix(name, "hmac-") {
		name = "‹" + name[len(name)-8:] + "›" // who it was is keyed: the same person has the same mark
	}
	return channels.Plain(name) + " on " + string(r.Channel)
}

// since parses --since: a duration back from now, or a time.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fail(usage, "--since: %q is neither a duration like 24h nor a time like 2026-01-31 or 2026-01-31T09:00:00Z", text)
}
