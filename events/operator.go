package events

import "time"

// Operator verbs: the third token of clarify.operator.<verb>.
const (
	VerbList      = "list"
	VerbState     = "state"
	VerbCancel    = "cancel"
	VerbReconcile = "reconcile"
	VerbFreeze    = "freeze"
	VerbHealth    = "health"
)

// ListRequest asks for tasks, newest first. Without Ended only what is not final is listed.
type ListRequest struct {
	Agent    Agent      `json:"agent,omitzero"`
	Question QuestionID `json:"question,omitzero"`
	Waiting  bool       `json:"waiting,omitzero"` // only open pauses
	Ended    bool       `json:"ended,omitzero"`
	Limit    int        `json:"limit,omitzero"` // 100 when 0, at most 1000
}

// ListReply is the answer to a ListRequest.
type ListReply struct {
	Items []ListItem `json:"items"`
	More  int        `json:"more,omitzero"` // how many the limit left out
}

// ListItem is one task in a list: no values.
type ListItem struct {
	Agent   Agent      `json:"agent"`
	Task    Task       `json:"task"`
	Version Version    `json:"version"`
	Kind    Kind       `json:"kind"`
	Step    string     `json:"step"`
	Tool    string     `json:"tool"`
	At      time.Time  `json:"at"`
	Pause   *PauseView `json:"pause,omitzero"`
}

// OperatorRequest is an operator's cancel, reconcile, freeze or look at one task.
type OperatorRequest struct {
	Agent   Agent        `json:"agent,omitzero"`
	Task    Task         `json:"task,omitzero"`
	Version Version      `json:"version,omitzero"`
	By      string       `json:"by,omitzero"`
	Reason  string       `json:"reason,omitzero"`
	Outcome EffectStatus `json:"outcome,omitzero"` // reconcile: done or failed
	Freeze  FreezeMove   `json:"freeze,omitzero"`
}

// FreezeMove stops or resumes all releases.
type FreezeMove string

// Moves of a freeze.
const (
	FreezeReleases FreezeMove = "freeze"
	ThawReleases   FreezeMove = "thaw"
)

// OperatorReply is the answer to an OperatorRequest.
type OperatorReply struct {
	View    *View    `json:"view,omitzero"`
	Refused *Refusal `json:"refused,omitzero"`
	Error   string   `json:"error,omitzero"` // it could not be done; nothing changed
}

// Health is what a broker says of itself.
type Health struct {
	Instance string    `json:"instance"`
	Started  time.Time `json:"started"`
	Policy   PolicyRef `json:"policy"`
	Server   string    `json:"server"`
	Sync     string    `json:"sync"` // always, or lazy: acknowledged answers can be lost at a power cut
	Frozen   string    `json:"frozen,omitzero"`
	Waiting  int       `json:"waiting"`
	Tasks    int       `json:"tasks"`
	Problems []string  `json:"problems,omitempty"`
}

// Timer is the data of timer.due.v1: it only says "look at this task".
type Timer struct {
	Agent Agent     `json:"agent"`
	Task  Task      `json:"task"`
	Due   time.Time `json:"due"`
}
