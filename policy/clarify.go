package policy

import (
	"cmp"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// clarify is the fifth stage: what is not known and may not be assumed is asked, one field at a time, or handed over when
// asking has been tried enough.
func (c *call) clarify() events.Decision {
	alternatives := c.alternatives()
	rest, decided := c.settle(c.openFields(alternatives), alternatives)
	if decided != nil || len(rest) == 0 {
		return decided
	}
	ranked := c.rank(rest, alternatives)
	best := ranked[0]
	if tool := best.rule.Lookup; tool != "" && !best.covered && !slices.Contains(c.in.Asks.Lookups, best.name) {
		return c.askAgent(best, tool)
	}
	if rule, reason := c.limit(best); rule != "" {
		return c.escalate(rule, reason, "", c.fieldsOf(ranked))
	}
	if !best.answerable() {
		return c.escalate("unanswerable/"+best.name, "the policy leaves no way to answer the question", "", c.fieldsOf(ranked))
	}
	if c.in.Candidate.Unattended() && c.p.file.Unattended.Ask != "hold" {
		return c.dead(c.p.file.Unattended.Ask, "unattended/ask", "nobody is there to answer", "")
	}
	return c.askPeople(c.batch(ranked))
}

// askAgent asks the agent to consult a source before anybody is disturbed. Nobody is reached, so the plan has no route.
func (c *call) askAgent(s scored, tool string) events.Decision {
	plan, problem := c.questionPlan(s)
	if problem != "" {
		return c.broken(problem)
	}
	plan.Route, plan.Remind, plan.AfterDeadline = nil, 0, events.DeadlineStop
	why := c.basis("lookup/"+s.name, "a read may find the value: look it up and propose again")
	return events.Ask{Why: why, Fields: []events.Field{s.field}, Lookup: tool, Plan: plan}
}

func (c *call) askPeople(asked []scored) events.Decision {
	plan, problem := c.questionPlan(asked[0])
	if problem != "" {
		return c.broken(problem)
	}
	why := c.basis("open/"+asked[0].name, reasonOf(asked[0].sources[0]))
	return events.Ask{Why: why, Fields: c.fieldsOf(asked), Plan: plan}
}

// questionPlan is the route of a question. Silence means the default only where there is one that may be used.
func (c *call) questionPlan(s scored) (events.Plan, string) {
	plan, problem := c.p.plan(c, questionFacts{s.name, string(s.role), string(events.Clarification)})
	if plan.AfterDeadline == events.DeadlineDefault && !c.hasDefault(s.open) {
		plan.AfterDeadline = events.DeadlineStop
	}
	return plan, problem
}

func (c *call) fieldsOf(list []scored) []events.Field {
	out := make([]events.Field, 0, maxBatch)
	for _, s := range list[:min(len(list), maxBatch)] {
		out = append(out, s.field)
	}
	return out
}

// limit says which limit of asking the next question would break, if any.
func (c *call) limit(s scored) (rule, reason string) {
	q, asks := c.p.file.Questions, c.in.Asks
	switch {
	case slices.Contains(c.in.Unanswered, s.name):
		return "after-deadline/" + s.name, "nobody answered in time"
	case slices.Contains(asks.Declined, s.name):
		return "declined/" + s.name, "the person said that none of the options is right"
	case asks.PerField[s.name] >= orDefault(q.MaxPerField, 1):
		return "question-limit/field", "it was asked before and is still not known"
	case asks.Consecutive >= orDefault(q.MaxConsecutive, 2):
		return "question-limit/consecutive", "too many questions in a row"
	case asks.Total >= orDefault(q.MaxPerTask, 3):
		return "question-limit/task", "too many questions for one task"
	case !selects(s.role) && s.net() <= 0 && asks.PerField[s.name] > 0:
		return "not-worth-asking/" + s.name, "asking again costs more than the answer is worth"
	}
	return "", ""
}

// batch adds what may be asked along with the first field: independent fields, as many as the policy allows.
func (c *call) batch(ranked []scored) []scored {
	n := min(orDefault(c.p.file.Questions.Batch, 1), maxBatch)
	out := ranked[:1:1]
	if ranked[0].covered {
		return out
	}
	for _, s := range ranked[1:] {
		rule, _ := c.limit(s)
		if len(out) < n && !s.covered && s.answerable() && s.rule.Lookup == "" && rule == "" {
			out = append(out, s)
		}
	}
	return out
}

func reasonOf(source string) string {
	switch source {
	case sourceRequired:
		return "the tool cannot run without it"
	case sourceDeclared:
		return "the agent does not know it"
	case sourceSchema:
		return "its value is not one the tool takes"
	case sourceProvenance:
		return "its value comes from where such a value may not come from"
	}
	return "several calls fit, and they would not do the same"
}

func orDefault[T cmp.Ordered](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
