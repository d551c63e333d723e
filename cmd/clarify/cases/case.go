package cases

import (
	"bufio"
	"fmt"
	"io"
	"maps"

	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
)

// agent is who proposes all cases.
const agent events.Agent = "cases"

// Case is one tool call with the decisions that are acceptable for it. Members of the file that are not listed here say
// where the case comes from, and are not read.
type Case struct {
	ID     string                `json:"id"`
	Source string                `json:"source"`
	Accept []events.DecisionKind `json:"accept"`

	Tool       events.Tool              `json:"tool"`
	Known      *bool                    `json:"catalog_has_tool"` // false: the tool is proposed by its name alone
	Arguments  events.Arguments         `json:"arguments"`
	Missing    []string                 `json:"missing"`
	Candidates []Option                 `json:"candidates"` // of the first missing argument
	State      map[string]events.Secret `json:"state"`
	Later
}

// Later is what is not in the call.
type Later struct {
	Principal string           `json:"principal"` // the account that asks; becomes state
	Invented  events.Arguments `json:"invented"`  // what a model filled in without being told
	Answer    events.Arguments `json:"answer"`    // what a person says when asked
}

// Option is a value the first missing argument may have.
type Option struct {
	Value events.Secret `json:"value"`
	Label string        `json:"label"`
}

// Mode is how an agent presents a case.
type Mode string

// Modes.
const (
	Absent   Mode = "absent"   // arguments as they are, nothing said of what is missing
	Declared Mode = "declared" // the agent says what is missing
	Invented Mode = "invented" // what a model made up stands in the arguments, in silence
	Inferred Mode = "inferred" // the same, and the agent says that it inferred it
)

// Modes lists them.
func Modes() []Mode { return []Mode{Absent, Declared, Invented, Inferred} }

// Read reads cases, one JSON object a line. The error names the line.
func Read(r io.Reader) ([]Case, error) {
	var out []Case
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("line %d is not a case: %w", n, err)
		}
		if c.ID == "" || c.Tool.Name == "" || len(c.Accept) == 0 {
			return nil, fmt.Errorf("line %d is not a case: it has no id, tool or accept", n)
		}
		out = append(out, c)
	}
	return out, lines.Err()
}

// Task is the task a case is proposed as.
func (c Case) Task() events.Task { return events.Task(events.TokenFor(c.ID)) }

// Candidate is the case as an agent proposes it.
func (c Case) Candidate(m Mode) events.Candidate {
	out := events.Candidate{
		Agent: agent, Task: c.Task(), ID: string(c.Task()), Version: 1, Step: "call",
		Tool: events.Tool{Name: c.Tool.Name, Server: "mcp://cases"}, Arguments: maps.Clone(c.Arguments),
	}
	if out.Arguments == nil {
		out.Arguments = events.Arguments{}
	}
	if c.Known == nil || *c.Known {
		out.Tool = c.Tool
		out.Tool.Server = "mcp://cases"
	}
	out.State = maps.Clone(c.State)
	if c.Principal != "" {
		if out.State == nil {
			out.State = map[string]events.Secret{}
		}
		out.State["principal"] = events.SecretOf(c.Principal)
	}
	for _, o := range c.Candidates {
		if len(c.Missing) > 0 {
			out.Candidates = append(out.Candidates, events.Alternative{Arguments: events.Arguments{c.Missing[0]: o.Value}, Label: o.Label})
		}
	}
	c.present(m, &out)
	return out
}

func (c Case) present(m Mode, out *events.Candidate) {
	switch m {
	case Absent:
	case Declared:
		for _, field := range c.Missing {
			out.Missing = append(out.Missing, events.Missing{Field: field})
		}
	case Inferred:
		out.Provenance = map[string]events.Provenance{}
		for field := range c.Invented {
			out.Provenance[field] = events.Provenance{From: events.FromInferred}
		}
		maps.Copy(out.Arguments, c.Invented)
	case Invented:
		maps.Copy(out.Arguments, c.Invented)
	}
}

// given answers one field of a question as the case's person would: by the option of that value, or by the value.
func (c Case) given(f events.Field) (events.Given, bool) {
	value, knows := c.Answer[f.Name]
	if !knows {
		return events.Given{}, false
	}
	for _, o := range f.Options {
		if o.ID == value.RevealString() {
			return events.Given{Field: f.Name, Option: o.ID}, true
		}
	}
	return events.Given{Field: f.Name, Value: value}, true
}
