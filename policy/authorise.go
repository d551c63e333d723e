package policy

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// authorise is the sixth stage: an action that is understood, but that a person must allow.
func (c *call) authorise() events.Decision {
	if c.worth.Approval != "required" || c.granted() {
		return nil
	}
	if c.in.Candidate.Unattended() && c.p.file.Unattended.Approve != "hold" {
		return c.dead(c.p.file.Unattended.Approve, "unattended/approve", "nobody is there to approve it", "")
	}
	plan, problem := c.p.plan(c, questionFacts{Kind: string(events.Approval)})
	if problem != "" {
		return c.broken(problem)
	}
	if plan.AfterDeadline == events.DeadlineDefault { // silence never approves
		plan.AfterDeadline = events.DeadlineStop
	}
	if ttl := c.entry.Approval.TTL; ttl > 0 && (plan.Cap == 0 || ttl < plan.Cap) {
		plan.Cap = ttl
	}
	from := c.entry.Approval.From
	if len(from) == 0 {
		from = c.p.file.Defaults.Approvers
	}
	why := c.basis(c.class, "the action is understood, and a person must allow it")
	return events.Approve{Why: why, From: slices.Clone(from), Plan: plan}
}

// granted reports that a person approved exactly this action, with what was assumed among its arguments: another default
// or another single candidate is another action.
func (c *call) granted() bool {
	return c.in.Granted != "" && c.in.Granted == c.action()
}
