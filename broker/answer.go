package broker

import (
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Answer is stage four for a clarification or an escalation: the first valid answer to (task, version) ends the pause, and
// the candidate with its value is decided again from the first stage.
func (r Rules) Answer(s Snapshot, a events.Answer, m Moment) Change {
	a.Responder = r.People.identify(a.Responder)
	sub := submission{
		attempt{Key{a.Agent, a.Task}, "answer", string(a.Submission), a.Version},
		a.Question, a.Responder,
		[]events.PauseKind{events.Clarification, events.Escalation},
	}
	if a.Cancel {
		sub.kinds = append(sub.kinds, events.Approval) // anybody who may answer may call the task off
	}
	if judged(s, sub, a.Values) {
		return Change{}
	}
	if refusal := judge(s, sub, m); refusal != nil {
		return Change{Refusal: refusal}
	}
	next := step(s.State, m)
	switch {
	case a.Cancel:
		next.By, next.Note = who(a.Responder), a.Note
		return become(end(next, events.Cancelled, events.PauseCancelled, m))
	case next.Pause.Kind == events.Escalation:
		return r.handover(s, sub, a, m)
	case a.Handover != "":
		return sub.refused(s, events.WrongKind, "", m)
	}
	values, reason, field := values(next.Pause.Fields, a.Values)
	if reason != "" {
		return sub.refused(s, reason, field, m)
	}
	next = accept(next, a.Responder, a.Submission, a.Values, m)
	next = merge(next, values, a.Submission)
	return become(r.settle(next, policy.Input{}, events.FromAnswer, m))
}

// values checks what was given for each field of the question. The zero Secret stands for "none of these".
func values(fields []events.Field, given []events.Given) (map[string]events.Secret, events.Reason, string) {
	out := make(map[string]events.Secret, len(fields))
	for _, g := range given {
		i := slices.IndexFunc(fields, func(f events.Field) bool { return f.Name == g.Field })
		if _, twice := out[g.Field]; i < 0 || twice {
			return nil, events.InvalidValue, g.Field
		}
		if g.Option == events.NoneOfThese && slices.ContainsFunc(fields[i].Options, isNone) {
			out[g.Field] = events.Secret{}
			continue
		}
		v, reason := policy.Accepts(fields[i], g)
		if reason != "" {
			return nil, reason, g.Field
		}
		out[g.Field] = v
	}
	for _, f := range fields {
		if _, ok := out[f.Name]; !ok {
			return nil, events.Incomplete, f.Name
		}
	}
	return out, "", ""
}

func isNone(o events.Option) bool { return o.ID == events.NoneOfThese }

// accept ends the pause with an answer.
func accept(s events.State, by events.Responder, id events.SubmissionID, given []events.Given, m Moment) events.State {
	s.Accepted = append(slices.Clip(s.Accepted), events.Accepted{
		Version: s.Pause.Version, Question: s.Pause.Question,
		Kind: s.Pause.Kind, Submission: id, Responder: by, Values: given, At: m.Now,
	})
	s.Pause, s.Closes = ended(s.Pause, events.PauseAnswered, m), true
	for i, f := range s.Pause.Fields {
		if j := slices.IndexFunc(given, func(g events.Given) bool { return g.Field == f.Name }); j >= 0 {
			s.Pause.Fields[i].Outcome = events.FieldAnswered
			if given[j].Option == events.NoneOfThese {
				s.Pause.Fields[i].Outcome = events.FieldDeclined
			}
		}
	}
	return s
}

// merge puts answered values into the candidate as the person's own, and drops the alternatives they rule out.
func merge(s events.State, values map[string]events.Secret, id events.SubmissionID) events.State {
	c := s.Candidate
	c.Arguments, c.Provenance = maps.Clone(c.Arguments), maps.Clone(c.Provenance)
	if c.Provenance == nil {
		c.Provenance = map[string]events.Provenance{}
	}
	for field, v := range values {
		if v.IsZero() {
			s.Asks.Declined = append(slices.Clip(s.Asks.Declined), field)
			c.Candidates = nil
			continue
		}
		c.Arguments[field] = v
		c.Provenance[field] = events.Provenance{From: events.FromUser, Event: string(id)}
		c.Missing = slices.DeleteFunc(slices.Clone(c.Missing), func(m events.Missing) bool { return m.Field == field })
		c.Candidates = slices.DeleteFunc(slices.Clone(c.Candidates), func(alt events.Alternative) bool {
			given, has := alt.Arguments[field]
			return has && !given.Equal(v)
		})
	}
	s.Candidate = c
	return s
}

func who(r events.Responder) string {
	for _, name := range []string{r.Person, r.Name, r.Subject} {
		if name != "" {
			return name
		}
	}
	return string(r.Channel)
}
