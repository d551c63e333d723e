package policy

import (
	"cmp"

	"github.com/clarify-broker/clarify/events"
)

// reconcile is the third stage: does stored state contradict the action? No answer would mend that, so it comes before
// any question.
func (c *call) reconcile() events.Decision {
	for _, r := range c.entry.Reconcile {
		holds, err := r.When.holds(c)
		if err != nil {
			return c.broken(r.ID)
		}
		if holds {
			return events.Reconcile{Why: c.basis(r.ID, cmp.Or(r.Say, "stored state contradicts the action"))}
		}
	}
	return nil
}

// authority is the fourth stage: actions that are not the agent's to take. Neither an answer nor an approval changes that.
func (c *call) authority() events.Decision {
	if c.entry.Decide != "" {
		return c.dead(c.entry.Decide, "tool/"+c.entry.Match, cmp.Or(c.entry.Say, "the policy gives this tool to people"), c.entry.To)
	}
	for _, r := range c.entry.Authority {
		holds, err := r.When.holds(c)
		if err != nil {
			return c.broken(r.ID)
		}
		if holds {
			return c.dead(cmp.Or(r.Decide, "stop"), r.ID, cmp.Or(r.Say, "the agent may not take this action"), r.To)
		}
	}
	return nil
}
