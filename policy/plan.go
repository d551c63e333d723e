package policy

import (
	"fmt"

	"github.com/clarify-broker/clarify/events"
)

// plan finds the first route for a question. The second result names the route whose condition could not be evaluated.
func (p *Policy) plan(c *call, q questionFacts) (events.Plan, string) {
	for i, r := range p.file.Routes {
		holds, err := r.When.holds(asked{c, q})
		if err != nil {
			return events.Plan{}, fmt.Sprintf("routes[%d]", i)
		}
		if holds {
			return r.plan(), ""
		}
	}
	return events.Plan{}, "routes" // the last route has no condition: see lint
}

// escalationPlan is the escalation's own route, or the one of questions with the owner in place of whom they go to.
func (p *Policy) escalationPlan(c *call) (events.Plan, string) {
	if own := p.file.Escalation.Route; own != nil {
		return own.plan(), ""
	}
	plan, problem := p.plan(c, questionFacts{Kind: string(events.Escalation)})
	for i := range plan.Route {
		for j := range plan.Route[i].Targets {
			plan.Route[i].Targets[j].Who = "owner"
		}
	}
	if plan.AfterDeadline == events.DeadlineDefault || plan.AfterDeadline == events.DeadlineEscalate {
		plan.AfterDeadline = events.DeadlineHold // the owner has it: there is nobody further
	}
	return plan, problem
}

func (w way) plan() events.Plan {
	plan := events.Plan{
		Deadline: w.Deadline, Cap: w.Cap, Remind: w.Remind, AfterDeadline: events.AfterDeadline(w.AfterDeadline),
	}
	if plan.AfterDeadline == "" {
		plan.AfterDeadline = events.DeadlineStop
	}
	for _, s := range w.To {
		plan.Route = append(plan.Route, events.RouteStep{Targets: s.targets(), After: s.After})
	}
	return plan
}

func (s step) targets() []events.RouteTarget {
	if len(s.All) == 0 {
		return []events.RouteTarget{{Channel: events.Channel(s.Channel), Who: s.Who}}
	}
	out := make([]events.RouteTarget, len(s.All))
	for i, t := range s.All {
		out[i] = events.RouteTarget{Channel: events.Channel(t.Channel), Who: t.Who}
	}
	return out
}
