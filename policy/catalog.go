package policy

import (
	"maps"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// identify is the first stage: which tool is this, what may it do, and what is a call of it worth?
func (c *call) identify() events.Decision {
	tool := c.in.Candidate.Tool
	c.trusted = c.p.trusts(tool.Server, string(c.in.Candidate.Agent))
	listed := c.p.listed(tool.Name, tool.Server)
	if e := c.p.tools.find(tool.Name, tool.Server); e != nil {
		c.entry = *e
	}
	c.known = listed != nil || c.p.tools.names(tool.Name, tool.Server) || (c.trusted && len(tool.InputSchema) > 0)
	c.facts = factsOf(tool, listed, c.trusted)
	if d := c.classify(); d != nil {
		return d
	}
	if !c.known {
		return c.dead(c.p.file.Defaults.UnknownTool, "unknown-tool", "the policy knows no such tool", "")
	}
	if listed != nil && listed.schema != nil {
		c.schema = listed.schema
		return nil
	}
	if len(tool.InputSchema) == 0 {
		return nil
	}
	s, err := c.p.schemas.compiled(tool.InputSchema)
	if err != nil {
		return c.stop("invalid-schema", "the tool's input schema is not usable")
	}
	c.schema = s
	return nil
}

func (p *Policy) trusts(server, agent string) bool {
	return slices.ContainsFunc(p.file.Trust, func(t trusted) bool {
		return globs(t.Server, server) && (t.Agent == "" || globs(t.Agent, agent))
	})
}

func (p *Policy) listed(name, server string) *listed {
	for _, l := range p.catalog[name] {
		if l.Server == "" || globs(l.Server, server) {
			return l
		}
	}
	return nil
}

// factsOf applies MCP's defaults to absent hints: a tool is a destructive, open-world write until somebody who may say so
// says otherwise. The catalog may; a trusted agent may where there is no catalog; anybody may say it is worse.
func factsOf(tool events.Tool, l *listed, trusted bool) toolFacts {
	f := toolFacts{Name: tool.Name, Server: tool.Server, Destructive: true, OpenWorld: true}
	said := events.Annotations{}
	if tool.Annotations != nil {
		said = *tool.Annotations
	}
	switch {
	case l != nil:
		f.apply(events.Annotations{
			ReadOnly: l.Annotations.ReadOnly, Destructive: l.Annotations.Destructive,
			Idempotent: l.Annotations.Idempotent, OpenWorld: l.Annotations.OpenWorld,
		})
	case trusted:
		f.apply(said)
	}
	f.tighten(said)
	return f
}

func (f *toolFacts) apply(h events.Annotations) {
	f.ReadOnly = h.ReadOnly != nil && *h.ReadOnly
	f.Idempotent = h.Idempotent != nil && *h.Idempotent
	f.OpenWorld = h.OpenWorld == nil || *h.OpenWorld
	if f.Destructive = !f.ReadOnly; h.Destructive != nil { // the hint's default is for tools that write
		f.Destructive = *h.Destructive
	}
}

func (f *toolFacts) tighten(h events.Annotations) {
	f.ReadOnly = f.ReadOnly && (h.ReadOnly == nil || *h.ReadOnly)
	f.Idempotent = f.Idempotent && (h.Idempotent == nil || *h.Idempotent)
	f.OpenWorld = f.OpenWorld || (h.OpenWorld != nil && *h.OpenWorld)
	f.Destructive = f.Destructive || (h.Destructive != nil && *h.Destructive)
}

// classify finds what the call is worth: the entry's own word, or the first class that fits, or the worst.
func (c *call) classify() events.Decision {
	c.class, c.worth = "class/none", worth{Consequence: "high", Approval: "required"}
	if c.entry.Class != nil {
		c.class, c.worth = "tool/"+c.entry.Match, *c.entry.Class
	} else {
		for _, k := range c.p.file.Classes {
			fits, err := k.When.holds(c)
			if err != nil {
				return c.broken("class/" + k.Name)
			}
			if fits {
				c.class, c.worth = "class/"+k.Name, k.worth
				break
			}
		}
	}
	orElse(&c.worth.Approval, "required")
	if c.entry.Reversible != nil {
		c.worth.Reversible = *c.entry.Reversible
	}
	if c.entry.Idempotent != nil {
		c.worth.Idempotent = *c.entry.Idempotent
	}
	return nil
}

// reads reports that the call only reads, and that nothing hangs on which of several records it reads.
func (c *call) reads() bool {
	return c.facts.ReadOnly && c.worth.Consequence == "low" && c.worth.Reversible
}

// understand is the second stage: arguments that no answer could mend must not run.
func (c *call) understand() events.Decision {
	c.args = make(map[string]any, len(c.in.Candidate.Arguments))
	for _, name := range slices.Sorted(maps.Keys(c.in.Candidate.Arguments)) {
		v, err := decode(c.in.Candidate.Arguments[name].Reveal())
		if err != nil {
			return c.stop("invalid-arguments", "an argument cannot be read")
		}
		c.args[name] = v
	}
	if c.found = c.schema.check(c.args); c.found.broken {
		return c.stop("invalid-arguments", "the arguments do not fit the tool's schema in a way no answer would mend")
	}
	return nil
}
