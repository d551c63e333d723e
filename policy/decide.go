package policy

import (
	"cmp"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// call is one candidate on its way through the stages, and what they have found out so far.
type call struct {
	p  *Policy
	in Input

	known   bool
	trusted bool // the agent's own words about its tool may loosen the decision
	facts   toolFacts
	entry   entry
	worth   worth
	class   string // the rule that gave worth
	schema  *schema

	args    map[string]any // decoded, with what was assumed
	found   findings       // what the schema says of them as they were proposed
	assumed []events.Assumption
}

// Decide decides. It is pure: the same input and policy give the same bytes.
func (p *Policy) Decide(in Input) events.Decision {
	c := &call{p: p, in: in}
	stages := []func() events.Decision{c.identify, c.understand, c.reconcile, c.authority, c.clarify, c.authorise}
	for _, stage := range stages {
		if d := stage(); d != nil {
			return d
		}
	}
	return c.proceed()
}

// proceed is the last stage: what is approved, or harmless and reversible, may run. Nothing else may.
func (c *call) proceed() events.Decision {
	switch {
	case c.granted():
		return events.Proceed{Why: c.basis("approved", "a person approved exactly this action")}
	case c.worth.Consequence == "low" && c.worth.Reversible && c.worth.Approval == "none":
		return events.Proceed{Why: c.basis(c.class, "what the action needs is known, and the policy lets such tools run")}
	}
	return c.dead(c.p.file.Defaults.Otherwise, "otherwise", "no safe decision is available", "")
}

// basis is why: every decision carries it. Its action is what would run, with what was assumed among the arguments.
func (c *call) basis(rule, reason string) events.Basis {
	return events.Basis{
		Rule: rule, Reason: reason, Policy: c.p.ref, Action: c.action(), Assumptions: slices.Clone(c.assumed), Traits: c.traits(),
	}
}

// action is the digest of what would run.
func (c *call) action() events.Digest {
	return Assume(c.in.Candidate, events.Basis{Assumptions: c.assumed}).Action()
}

func (c *call) traits() events.Traits {
	return events.Traits{
		Consequence: c.worth.Consequence, Reversible: c.worth.Reversible, Idempotent: c.worth.Idempotent,
		Redact: c.redactedNames(), Retention: c.p.file.Retention, Show: slices.Clone(c.entry.Approval.Show),
	}
}

func (c *call) stop(rule, reason string) events.Decision {
	return events.Stop{Why: c.basis(rule, reason)}
}

// broken says a rule could not be evaluated: nobody knows what it would have said.
func (c *call) broken(rule string) events.Decision {
	return c.stop("policy-error/"+rule, "a rule could not be evaluated, so nothing may run")
}

// dead ends the way to a release as the policy says: stop or escalate. Without an owner there is nobody to escalate to.
func (c *call) dead(how, rule, reason, to string) events.Decision {
	if how == "escalate" {
		return c.escalate(rule, reason, to, nil)
	}
	return c.stop(rule, reason)
}

// escalate hands the case to the rule's owner, or to the policy's.
func (c *call) escalate(rule, reason, to string, fields []events.Field) events.Decision {
	owner := cmp.Or(to, c.entry.To, c.p.owner())
	if owner == "" {
		return c.stop(rule, reason)
	}
	plan, problem := c.p.escalationPlan(c)
	if problem != "" {
		return c.broken(problem)
	}
	return events.Escalate{Why: c.basis(rule, reason), To: owner, Fields: fields, Plan: plan}
}

func (p *Policy) owner() string { return cmp.Or(p.file.Defaults.EscalateTo, p.file.Escalation.To) }
