package policy

import (
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// Where an assumption came from.
const (
	fromDefault       = "default"
	fromAfterDeadline = "after_deadline"
	fromSingle        = "single_candidate"
	fromSameEffect    = "same_effect"
)

// settle supplies what need not be asked, and records it. It returns what is still open.
func (c *call) settle(fields []open, alternatives []alternative) ([]open, events.Decision) {
	var rest []open
	for _, o := range fields {
		if !c.takeAlternative(o, alternatives) && !c.takeDefault(o) {
			rest = append(rest, o)
		}
	}
	if len(c.assumed) == 0 {
		return rest, nil
	}
	// What was assumed may make other fields necessary, or meet a rule that the arguments alone did not.
	f := c.schema.check(c.args)
	for _, a := range c.assumed {
		if slices.Contains(f.bad, a.Field) {
			return nil, c.broken("default/" + a.Field)
		}
	}
	if f.broken {
		return nil, c.stop("invalid-arguments", "the arguments do not fit the tool's schema in a way no answer would mend")
	}
	for _, name := range slices.Concat(f.absent, f.bad) {
		if !slices.ContainsFunc(rest, func(o open) bool { return o.name == name }) {
			rest = append(rest, open{name, c.role(name), c.entry.Fields[name], []string{sourceRequired}})
		}
	}
	if d := c.reconcile(); d != nil {
		return nil, d
	}
	return rest, c.authority()
}

func (c *call) assume(name string, v any, a events.Assumption) {
	a.Field = name
	c.args[name] = v
	c.assumed = append(c.assumed, a)
}

// takeAlternative supplies a field when it makes no difference which of the alternatives is meant.
func (c *call) takeAlternative(o open, alternatives []alternative) bool {
	if !c.sameEffect(alternatives) {
		return false
	}
	v, has := alternatives[0].values[o.name]
	if !has || (selects(o.role) && !c.mayPick(o, v)) {
		return false
	}
	source := fromSameEffect
	if len(alternatives) == 1 {
		source = fromSingle
	}
	c.assume(o.name, v.plain, events.Assumption{Value: v.secret, Source: source})
	return true
}

// mayPick reports that the only record that fits may be taken: when nothing is written, when the agent says where the
// value came from and the policy accepts that, or when a person sees it in an approval. A single hit of a fuzzy search
// never becomes a write by itself.
func (c *call) mayPick(o open, v value) bool {
	if proposed, has := c.in.Candidate.Arguments[o.name]; has && canonical(proposed) != v.text {
		return false
	}
	return c.reads() || c.vouched(o.name) || c.worth.Approval == "required"
}

// takeDefault supplies a field by the file's documented default: on a reversible tool only, never a record or a recipient.
func (c *call) takeDefault(o open) bool {
	if !c.hasDefault(o) {
		return false
	}
	d := o.rule.Default
	source := fromDefault
	if d.Use == "after-deadline" {
		if !slices.Contains(c.in.Overdue, o.name) {
			return false
		}
		source = fromAfterDeadline
	}
	v, err := decode(d.Value.raw)
	if err != nil {
		return false
	}
	c.assume(o.name, v, events.Assumption{Value: events.NewSecret(slices.Clone(d.Value.raw)), Source: source, Documented: d.Documented})
	return true
}

// hasDefault reports that the field has a default that may be used, now or after the deadline.
func (c *call) hasDefault(o open) bool {
	return o.rule.Default != nil && c.worth.Reversible && o.role != events.RoleIdentity && o.role != events.RoleRecipient
}

// Assume returns the candidate with a decision's assumptions among its arguments: what would really run.
func Assume(c events.Candidate, b events.Basis) events.Candidate {
	if len(b.Assumptions) == 0 {
		return c
	}
	args := maps.Clone(c.Arguments)
	if args == nil {
		args = events.Arguments{}
	}
	for _, a := range b.Assumptions {
		args[a.Field] = a.Value
	}
	c.Arguments = args
	return c
}
