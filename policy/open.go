package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

// Why a field is open: the sources a question records.
const (
	sourceRequired   = "required"   // the tool cannot run without it
	sourceDeclared   = "declared"   // the agent says it lacks it
	sourceSchema     = "schema"     // its value is not one the tool takes
	sourceProvenance = "provenance" // its value comes from where such a value may not come from
	sourceCandidates = "candidates" // the agent could mean several
)

// open is a field whose value nobody who may say so has given.
type open struct {
	name    string
	role    events.Role
	rule    field
	sources []string
}

// selects reports that a wrong value would reach another record, recipient or resource. Such a field is never guessed.
func selects(role events.Role) bool {
	return role == events.RoleIdentity || role == events.RoleRecipient || role == events.RoleResource
}

// role is the file's word on a field; else what a tool cannot run without changes its effect, and the rest is plain.
func (c *call) role(name string) events.Role {
	if r := c.entry.Fields[name].Role; r != "" {
		return r
	}
	if c.schema.requires(name) {
		return events.RoleEffect
	}
	return events.RolePlain
}

// origin is where the agent says the value of a field came from, if it says so.
func (c *call) origin(name string) events.Origin { return c.in.Candidate.Provenance[name].From }

// vouched reports that the field's value comes from where the policy accepts one of its role.
func (c *call) vouched(name string) bool {
	from := c.origin(name)
	return from != "" && c.p.file.Defaults.Provenance.accepts(c.role(name), from)
}

// openFields lists what is not known, and why, in order of name.
func (c *call) openFields(alternatives []alternative) []open {
	found := map[string][]string{}
	note := func(name, source string) {
		if c.schema.has(name) && !slices.Contains(found[name], source) {
			found[name] = append(found[name], source)
		}
	}
	for _, name := range c.found.absent {
		note(name, sourceRequired)
	}
	for _, name := range c.unfilled() {
		note(name, sourceRequired)
	}
	for _, m := range c.in.Candidate.Missing {
		if _, has := c.args[m.Field]; !has || !c.vouched(m.Field) {
			note(m.Field, sourceDeclared)
		}
	}
	for _, name := range c.found.bad {
		note(name, sourceSchema)
	}
	for name := range c.args {
		if c.unaccounted(name) {
			note(name, sourceProvenance)
		}
	}
	for _, name := range c.contested(alternatives) {
		note(name, sourceCandidates)
	}
	var out []open
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, open{name, c.role(name), c.entry.Fields[name], found[name]})
	}
	return out
}

// unfilled lists the fields that select something and hold nothing, whatever the agent's schema says of them.
func (c *call) unfilled() []string {
	var names []string
	for name := range c.entry.Fields {
		if !selects(c.role(name)) {
			continue
		}
		v, has := c.args[name]
		text, isText := v.(string)
		if !has || v == nil || isText && strings.TrimSpace(text) == "" {
			names = append(names, name)
		}
	}
	return names
}

// unaccounted reports that a field's value comes from where the policy does not accept it, or from nowhere at all where
// the policy wants to be told.
func (c *call) unaccounted(name string) bool {
	d := c.p.file.Defaults
	if c.origin(name) == "" {
		return slices.Contains(d.RequireProvenance, string(c.role(name)))
	}
	return !c.vouched(name)
}

// contested lists the fields in which the calls the agent could mean differ from what it proposed. A call that only reads
// contests nothing; what a person said has ruled out all that differs from it.
func (c *call) contested(alternatives []alternative) []string {
	if c.reads() {
		return nil
	}
	oneEffect := c.sameEffect(alternatives)
	names := map[string]bool{}
	for _, a := range alternatives {
		for name, v := range a.values {
			proposed, has := c.in.Candidate.Arguments[name]
			switch {
			case has && canonical(proposed) == v.text:
			case has && oneEffect && !c.bearsEffect(name):
			default:
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// before orders what could be asked when nothing else tells fields apart.
func (c *call) before(a, b open) int {
	rank := func(o open) int {
		switch {
		case selects(o.role):
			return 0
		case o.role == events.RolePlain:
			return 2
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(c.schema.order(a.name), c.schema.order(b.name)), cmp.Compare(a.name, b.name))
}
