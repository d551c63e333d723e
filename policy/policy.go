// Package policy decides what becomes of a candidate action: ask, proceed, approve, stop, escalate or reconcile.
//
//	catalog ▶ arguments ▶ reconcile ▶ authority ▶ open fields ▶ approval ▶ proceed ▶ otherwise
//
// The order is fixed, and the first stage with something to say decides. A file ([Parse]) feeds the stages and can make
// them stricter; it cannot reorder them, and there is no way to write "allow everything". A condition that fails to
// evaluate, or costs too much, stops the action.
//
// # Guarantees
//
// Deciding is pure: no clock, no I/O, no randomness, no log, and the same policy and [Input] give the same bytes. An
// argument that selects a record or a recipient is never guessed for a tool that writes: it is known from a source the
// policy accepts, or a person gives it, or a person sees it in an approval. What the policy assumed in place of a question
// stands in the decision's basis. No reason holds a value that an agent or a person gave.
package policy

import (
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// Policy is a parsed and checked policy file. It is safe for concurrent use.
type Policy struct {
	file     file
	ref      events.PolicyRef
	tools    index
	catalog  map[string][]*listed
	secret   map[string]bool // names of fields that are secret in some tool
	schemas  *schemas
	warnings Problems
	mentions []Mention
}

// Mention is a place where the file names a channel, or somebody: one of the two is empty.
type Mention struct {
	At      Problem // without a text
	Channel string
	Who     string // a person's id, role:<role>, requester, owner or anyone
}

// Input is all a decision depends on.
type Input struct {
	Candidate events.Candidate // with the answers so far merged into its arguments and their provenance "user"
	Asks      events.Asks      // what was asked already about this candidate
	Granted   events.Digest    // the action a person approved, if any
	Overdue   []string         // fields whose question's deadline has passed by a route that says after_deadline: default

	Unanswered []string // the same by a route that says after_deadline: escalate
}

// Ref names the policy.
func (p *Policy) Ref() events.PolicyRef { return p.ref }

// Warnings are what the file's author probably did not mean. They do not keep the policy from being used.
func (p *Policy) Warnings() []Problem { return p.warnings }

// Mentions lists whom and what the file names, in its order: whether they exist, only the configuration knows.
func (p *Policy) Mentions() []Mention { return p.mentions }

// Rules lists the names under which the file's own lines can decide, in its order: classes, tools that name a class or a
// decision, and the rules of reconcile and authority. A decision's basis has one of them as its rule, or one of the fixed
// names of the stages.
func (p *Policy) Rules() []string {
	var names []string
	for _, c := range p.file.Classes {
		names = append(names, "class/"+c.Name)
	}
	for _, e := range p.file.Tools {
		if e.Decide != "" || e.Class != nil {
			names = append(names, "tool/"+e.Match)
		}
		for _, r := range slices.Concat(e.Reconcile, e.Authority) {
			names = append(names, r.ID)
		}
	}
	return names
}
