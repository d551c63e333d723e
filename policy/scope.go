package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// ResolveName supplies the variables of conditions, each only when a condition asks for it.
func (c *call) ResolveName(name string) (any, bool) {
	switch name {
	case "tool":
		return &c.facts, true
	case "agent":
		return string(c.in.Candidate.Agent), true
	case "args":
		return celMap(c.args), true
	case "state":
		return c.state(), true
	case "missing":
		names := make([]string, len(c.in.Candidate.Missing))
		for i, m := range c.in.Candidate.Missing {
			names[i] = m.Field
		}
		return names, true
	case "requester":
		if c.in.Candidate.Requester == nil {
			return "", true
		}
		return c.in.Candidate.Requester.ID, true
	}
	return nil, false
}

// Parent is nil: there are no other variables.
func (c *call) Parent() cel.Activation { return nil }

func (c *call) state() ref.Val {
	facts := make(map[string]any, len(c.in.Candidate.State))
	for name, value := range c.in.Candidate.State {
		v, err := decode(value.Reveal())
		if err != nil {
			return types.NewErr("a fact of the state cannot be read")
		}
		facts[name] = v
	}
	return celMap(facts)
}

// asked adds the variable question for the conditions of routes.
type asked struct {
	*call
	question questionFacts
}

// ResolveName supplies question, and whatever rules see.
func (a asked) ResolveName(name string) (any, bool) {
	if name == "question" {
		return &a.question, true
	}
	return a.call.ResolveName(name)
}
