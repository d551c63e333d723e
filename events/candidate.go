package events

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits on what an agent may send, in bytes.
const (
	MaxCandidate = 128 << 10
	maxStep      = 256
	maxText      = 4 << 10
	maxName      = 256
)

// Candidate is the action an agent wants to take, described before its tool runs: the data of candidate.proposed.v1.
// Agent, Task, Version, Step, Tool.Name and Arguments are required.
type Candidate struct {
	Agent   Agent   `json:"agent"`
	Task    Task    `json:"task"`
	ID      string  `json:"id,omitzero"` // stays the same when it is sent again; the event's id when empty
	Version Version `json:"version"`
	Step    string  `json:"step"` // at most 256 bytes, comes back untouched on release

	Tool      Tool      `json:"tool"`
	Arguments Arguments `json:"arguments"`
	Evidence
	Setting
}

// Evidence is what the agent knows about its arguments.
type Evidence struct {
	Provenance map[string]Provenance `json:"provenance,omitempty"`
	Missing    []Missing             `json:"missing,omitempty"`
	Candidates []Alternative         `json:"candidates,omitempty"`
	State      map[string]Secret     `json:"state,omitempty"` // stored facts, such as "order.status"
}

// Setting is for whom and in what situation the action is proposed.
type Setting struct {
	Requester *Requester `json:"requester,omitzero"`
	Context   string     `json:"context,omitzero"`  // what led here, in the agent's words: shown as such, never trusted
	Attended  *bool      `json:"attended,omitzero"` // false: nobody is there to answer; absent means true
	Lang      string     `json:"lang,omitzero"`     // BCP 47
}

// Unattended reports that the agent said nobody is there to answer.
func (s Setting) Unattended() bool { return s.Attended != nil && !*s.Attended }

// Tool names a tool and, where the policy trusts the agent to say so, defines it.
type Tool struct {
	Name        string       `json:"name"`
	Server      string       `json:"server,omitzero"`
	Description string       `json:"description,omitzero"`
	Annotations *Annotations `json:"annotations,omitzero"`
	InputSchema Raw          `json:"input_schema,omitempty"` // JSON Schema of the arguments
}

// Annotations are MCP's tool hints. An absent hint has MCP's default: not read-only, destructive, not idempotent, open world.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitzero"`
	Destructive *bool `json:"destructiveHint,omitzero"`
	Idempotent  *bool `json:"idempotentHint,omitzero"`
	OpenWorld   *bool `json:"openWorldHint,omitzero"`
}

// Origin is where the value of an argument came from.
type Origin string

// Where a value may come from.
const (
	FromUser     Origin = "user"
	FromLookup   Origin = "lookup"
	FromRecord   Origin = "record"
	FromDefault  Origin = "default"
	FromInferred Origin = "inferred"
)

// Provenance says where the value of one argument came from; Event cites what a lookup or record was read from.
type Provenance struct {
	From  Origin `json:"from"`
	Event string `json:"event,omitzero"`
}

// Missing is an argument the agent knows it lacks.
type Missing struct {
	Field    string `json:"field"`
	Question string `json:"question,omitzero"` // the agent's wording, secondary to the policy's
}

// Alternative is one of several calls the agent could mean: values for some arguments, and how to tell it apart.
type Alternative struct {
	Arguments Arguments `json:"arguments"`
	Label     string    `json:"label,omitzero"`
	Weight    float64   `json:"weight,omitzero"` // relative, 0 counts as 1
}

// Requester is the person the agent acts for.
type Requester struct {
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
}

// Validate checks what the schema cannot: that ids are tokens and texts within their limits. The error is an [*Invalid].
func (c Candidate) Validate() error {
	if _, err := ParseAgent(string(c.Agent)); err != nil {
		return err
	}
	if _, err := ParseTask(string(c.Task)); err != nil {
		return err
	}
	switch {
	case c.Version == 0:
		return invalid("version", "name a version greater than the task's current one", "is missing or 0")
	case c.Version > maxVersion:
		return invalid("version", "start lower: each further pause takes the next", "is over 2^53")
	case c.Step == "":
		return invalid("step", "name the step the task is at", "is missing")
	case c.Tool.Name == "":
		return invalid("tool.name", "name the tool that would run", "is missing")
	case c.Arguments == nil:
		return invalid("arguments", "send an object, {} for none", "are missing")
	}
	for _, t := range []struct {
		field, text string
		limit       int
	}{
		{"step", c.Step, maxStep},
		{"id", c.ID, maxName},
		{"tool.name", c.Tool.Name, maxName},
		{"tool.server", c.Tool.Server, maxName},
		{"context", c.Context, maxText},
		{"lang", c.Lang, 35},
	} {
		if len(t.text) > t.limit || !utf8.ValidString(t.text) {
			return invalid(t.field, "shorten it", "is %d bytes, the limit is %d", len(t.text), t.limit)
		}
	}
	if len(c.Tool.InputSchema) > 0 && !c.Tool.InputSchema.IsValid() {
		return invalid("tool.input_schema", "send a JSON Schema", "is not JSON")
	}
	if !validValues(c.Arguments) {
		return invalid("arguments", "give every argument a JSON value", "hold text that is not JSON")
	}
	return c.Evidence.validate()
}

// validValues is about values that Go code boxed: what was decoded is JSON.
func validValues(values map[string]Secret) bool {
	for name, v := range values {
		if !utf8.ValidString(name) || !v.IsZero() && !v.Reveal().IsValid() {
			return false
		}
	}
	return true
}

func (e Evidence) validate() error {
	if !validValues(e.State) {
		return invalid("state", "give every fact a JSON value", "holds text that is not JSON")
	}
	for i, m := range e.Missing {
		if m.Field == "" || len(m.Field) > maxName || len(m.Question) > maxText {
			return invalid("missing", "name the argument that is missing", "entry %d has no usable field", i)
		}
	}
	for field, p := range e.Provenance {
		switch p.From {
		case FromUser, FromLookup, FromRecord, FromDefault, FromInferred:
		default:
			return invalid("provenance", "use user, lookup, record, default or inferred", "of %.80q is unknown", field)
		}
	}
	for i, a := range e.Candidates {
		if len(a.Arguments) == 0 || !validValues(a.Arguments) || len(a.Label) > maxText || a.Weight < 0 {
			return invalid("candidates", "give arguments, a short label and a weight of 0 or more", "entry %d is unusable", i)
		}
	}
	return nil
}

// Digest is "sha256:" and 64 hex digits.
type Digest string

// digestOf panics on a Secret or schema whose text is not JSON, which neither Decode nor Validate lets through.
func digestOf(v any) Digest {
	raw, err := json.Marshal(v, revealed(), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("events: a value that was decoded has no JSON form")
	}
	text, err := Canonical(raw)
	if err != nil {
		panic("events: a value that was encoded is not JSON")
	}
	sum := sha256.Sum256(text)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// Content is the digest of everything the agent said but the version: two candidates with one id must have one content.
func (c Candidate) Content() Digest {
	c.Version = 0
	return digestOf(c)
}

// Action is the digest of what would run: agent, task, step, tool and arguments. The policy decides on it, approvers see
// it, the release carries it and the executor recomputes it.
func (c Candidate) Action() Digest { return ActionDigest(c.Agent, c.Task, c.Step, c.Tool, c.Arguments) }

// ActionDigest is the digest of one action, over the canonical JSON of {agent, task, step, tool: {name, server}, arguments}.
func ActionDigest(agent Agent, task Task, step string, tool Tool, args Arguments) Digest {
	type name struct {
		Name   string `json:"name"`
		Server string `json:"server"`
	}
	if args == nil {
		args = Arguments{}
	}
	return digestOf(struct {
		Agent     Agent     `json:"agent"`
		Task      Task      `json:"task"`
		Step      string    `json:"step"`
		Tool      name      `json:"tool"`
		Arguments Arguments `json:"arguments"`
	}{agent, task, step, name{tool.Name, tool.Server}, args})
}

// CancelRequest is an agent's or operator's wish to call a task's current step off: the data of cancel.requested.v1.
type CancelRequest struct {
	Agent   Agent   `json:"agent"`
	Task    Task    `json:"task"`
	Version Version `json:"version"` // a version of the current candidate
	Reason  string  `json:"reason,omitzero"`
}

// Validate checks ids and limits. The error is an [*Invalid].
func (c CancelRequest) Validate() error {
	if _, err := ParseAgent(string(c.Agent)); err != nil {
		return err
	}
	if _, err := ParseTask(string(c.Task)); err != nil {
		return err
	}
	if c.Version == 0 {
		return invalid("version", "name a version of the current candidate", "is missing or 0")
	}
	if len(c.Reason) > maxText {
		return invalid("reason", "shorten it", "is %d bytes, the limit is %d", len(c.Reason), maxText)
	}
	return nil
}
