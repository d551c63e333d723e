package events

import "time"

// Phase is why an adapter is spoken to about a question.
type Phase string

// Phases, each an event type of its own.
const (
	PhaseAsk    Phase = "asked"
	PhaseRemind Phase = "reminded"
	PhaseClose  Phase = "closed"
)

// Question is what an adapter shows people: the data of question.asked.v1, question.reminded.v1 and question.closed.v1.
// Every text in it comes from a model or from tool data and is untrusted; none of it is a secret.
type Question struct {
	Agent    Agent      `json:"agent"`
	Task     Task       `json:"task"`
	Version  Version    `json:"version"`
	Question QuestionID `json:"question"`
	Kind     PauseKind  `json:"kind"`
	Phase    Phase      `json:"phase"`
	Channel  Channel    `json:"channel"`
	Delivery Delivery   `json:"delivery"` // whom to tell here, and the last receipt
	Content  Content    `json:"content"`
	Closed   *Closed    `json:"closed,omitzero"` // phase closed only
}

// Content is what the people see, made by the broker from the canonical action, never from an agent's prose alone.
type Content struct {
	Lang          string        `json:"lang,omitzero"`
	Step          string        `json:"step"`
	Tool          string        `json:"tool"`
	Fields        []Field       `json:"fields,omitempty"` // options without their values
	Shown         []Shown       `json:"shown,omitempty"`
	Action        Digest        `json:"action"`
	AgentSays     string        `json:"agent_says,omitzero"`
	Requester     string        `json:"requester,omitzero"`
	Reason        string        `json:"reason,omitzero"` // the rule's words
	Assumptions   []Shown       `json:"assumptions,omitempty"`
	Next          string        `json:"next"`              // what happens after an answer
	Deadline      Duration      `json:"deadline,omitzero"` // from the first accepted receipt
	NotAfter      time.Time     `json:"not_after,omitzero"`
	AfterDeadline AfterDeadline `json:"after_deadline,omitzero"`
}

// Shown is one argument as people see it: redacted where the policy says so.
type Shown struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Closed tells every surface of a question what became of it.
type Closed struct {
	Status PauseStatus `json:"status"`
	Kind   Kind        `json:"kind"` // what the task did next
	By     *Responder  `json:"by,omitzero"`
	At     time.Time   `json:"at"`
}
