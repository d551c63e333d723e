package events

import "time"

// Record is one line of the audit: the data of audit.recorded.v1. It holds no value that a person, agent or tool gave:
// values of few possibilities and texts that are no identifier are keyed HMACs ("hmac-sha256:…"), the rest are counts, ids
// and what the policy's author wrote. The hash of a record is over its text, so members that are added later must vanish
// when they are zero.
type Record struct {
	Seq uint64 `json:"seq"` // 1, 2, 3 … without gaps
	Logged
	Agent Agent `json:"agent"`
	Task  Task  `json:"task"`

	Version Version `json:"version"`
	Cause   string  `json:"cause,omitzero"`
	Key     string  `json:"key,omitzero"` // fingerprint of the key of its HMACs: those of two keys cannot be compared
	Entry
	Chained
}

// Logged is where a record's message stands in the task log.
type Logged struct {
	Log   uint64    `json:"log"`            // its sequence
	High  uint64    `json:"high"`           // highest sequence of the log that was seen when this was written
	After uint64    `json:"after,omitzero"` // sequence of the task's transition it was appended over; 0: the log knew none
	At    time.Time `json:"at"`             // when the server stored it
}

// Chained ties a record to the one before.
type Chained struct {
	Prev Digest `json:"prev,omitzero"` // Hash of the record before, empty for the first
	Hash Digest `json:"hash,omitzero"` // SHA-256 over the canonical record without Hash
}

// Entry is what a Record is about. Exactly one member is set.
type Entry struct {
	Transition *Transition    `json:"transition,omitzero"`
	Refusal    *RefusalRecord `json:"refusal,omitzero"`
	Loss       *Loss          `json:"loss,omitzero"`
	Unreadable Unreadable     `json:"unreadable,omitzero"`
}

// Transition is a state of a task with every value taken out.
type Transition struct {
	Kind Kind `json:"kind"`
	ProposalRecord
	Decision DecisionKind `json:"decision"`
	Why      WhyRecord    `json:"why"`
	Action   Digest       `json:"action"` // keyed HMAC of the digest of the candidate with its answers, as all actions here
	Pause    *PauseRecord `json:"pause,omitzero"`
	Left     *PauseRecord `json:"left,omitzero"` // another pause that this transition ended
	Accepted []Approved   `json:"accepted,omitempty"`
	EndRecord
}

// ProposalRecord is who proposed what.
type ProposalRecord struct {
	Candidate string `json:"candidate"`
	Step      Digest `json:"step"` // keyed HMAC
	Tool      string `json:"tool"`
	Requester string `json:"requester,omitzero"`
}

// EndRecord is the part of a Transition about releases and ends. By is kept when it is an id the task itself names, else it
// is a keyed HMAC: it may be a person's name.
type EndRecord struct {
	By         string        `json:"by,omitzero"`
	Superseded Version       `json:"superseded,omitzero"`
	Release    *Release      `json:"release,omitzero"`
	Claim      *ClaimRecord  `json:"claim,omitzero"`
	Effect     *EffectRecord `json:"effect,omitzero"`
}

// WhyRecord is a decision's basis without its values.
type WhyRecord struct {
	Rule        string    `json:"rule"`
	Policy      PolicyRef `json:"policy"`
	Action      Digest    `json:"action"` // what was decided on
	Traits      Traits    `json:"traits"` // without the names of arguments
	Assumptions []Assumed `json:"assumptions,omitempty"`
	Lookup      string    `json:"lookup,omitzero"` // ask: the agent looks first
	From        []string  `json:"from,omitempty"`  // approve: who may, in the policy's words
}

// Assumed is an assumption with its value as a keyed HMAC.
type Assumed struct {
	Field      string `json:"field"`
	Value      Digest `json:"value"`
	Source     string `json:"source"`
	Documented string `json:"documented,omitzero"`
}

// PauseRecord is a pause without values, addresses and names.
type PauseRecord struct {
	Question      QuestionID       `json:"question"`
	Kind          PauseKind        `json:"kind"`
	Version       Version          `json:"version"`
	Status        PauseStatus      `json:"status"`
	Fields        []FieldRecord    `json:"fields,omitempty"`
	Responders    []string         `json:"responders"`
	Action        Digest           `json:"action"`
	AfterDeadline AfterDeadline    `json:"after_deadline,omitzero"`
	Route         RouteRecord      `json:"route"`
	Deliveries    []DeliveryRecord `json:"deliveries,omitempty"`
	Clock
}

// RouteRecord is how far a route was walked.
type RouteRecord struct {
	Steps int `json:"steps"`
	Next  int `json:"next"`
}

// FieldRecord is a field of a question: its name, how many options it had, and what became of it.
type FieldRecord struct {
	Name    string  `json:"name"`
	Options int     `json:"options"`
	Outcome Outcome `json:"outcome,omitzero"`
}

// DeliveryRecord is a delivery and its latest receipt.
type DeliveryRecord struct {
	ID      string  `json:"id"`
	Channel Channel `json:"channel"`
	State   Reach   `json:"state,omitzero"`
	Code    string  `json:"code,omitzero"`
}

// Approved is an accepted answer or approval: who, how sure, when, and keyed HMACs of what was said.
type Approved struct {
	Version    Version           `json:"version"`
	Question   QuestionID        `json:"question"`
	Kind       PauseKind         `json:"kind"`
	Submission SubmissionID      `json:"submission"`
	Responder  ResponderRecord   `json:"responder"`
	Values     map[string]Digest `json:"values,omitempty"` // by field
	At         time.Time         `json:"at"`
}

// ResponderRecord is a responder without a name. Subject, who the provider says it is, may be an address: it is a keyed HMAC
// unless it is the person's id.
type ResponderRecord struct {
	Person    string    `json:"person,omitzero"`
	Channel   Channel   `json:"channel"`
	Subject   string    `json:"subject"`
	Assurance Assurance `json:"assurance"`
}

// ClaimRecord is a claim. Its nonce, which whoever holds it may use, is a keyed HMAC.
type ClaimRecord struct {
	Nonce  Digest    `json:"nonce"`
	Worker string    `json:"worker,omitzero"`
	Fence  uint64    `json:"fence"`
	Until  time.Time `json:"until"`
	Count  int       `json:"count"`
}

// EffectRecord is an outcome without the tool's result.
type EffectRecord struct {
	Status EffectStatus `json:"status"`
	Action Digest       `json:"action"`
	Fence  uint64       `json:"fence"`
	By     string       `json:"by,omitzero"`
	At     time.Time    `json:"at"`
}

// RefusalRecord is a refusal without its detail and names. The version it named is the record's.
type RefusalRecord struct {
	Current    Version          `json:"current,omitzero"`
	Of         string           `json:"of"`
	ID         string           `json:"id"`
	Reason     Reason           `json:"reason"`
	Field      string           `json:"field,omitzero"`
	Responder  *ResponderRecord `json:"responder,omitzero"`
	AnsweredBy *ResponderRecord `json:"answered_by,omitzero"`
	AnsweredAt time.Time        `json:"answered_at,omitzero"`
}

// Loss says that the log came back shorter than it had been: the messages behind the record's Log up to Was are gone, and
// sequences from there on are used again. By is who acknowledged it; a Loss without By is not acknowledged.
type Loss struct {
	Was      uint64    `json:"was"` // the High of the record before
	Now      uint64    `json:"now"` // the sequence the log ended with when this was seen
	Detected time.Time `json:"detected"`
	By       string    `json:"by,omitzero"`
}

// AboutLog stands for the agent and the task in records that are about the log as a whole.
const AboutLog = "_log"

// Unreadable says why a message of the log could not be recorded as what it is.
type Unreadable string

// Why a message of the log was unreadable.
const (
	UnreadableEvent   Unreadable = "event"   // it is no event a task log holds
	UnreadableSubject Unreadable = "subject" // it speaks of another task, or kind, than its subject
)
