package events

import "time"

// MaxState is the size of a task's state, in bytes; checked at intake with room for the answers.
const MaxState = 512 << 10

// Kind is one transition of a task: the last token of its subject in the log.
type Kind string

// The kinds of the log. What they do to the pause and what a waiter learns stands beside each.
const (
	Asked         Kind = "asked"          // a clarification waits
	ApprovalAsked Kind = "approval_asked" // an approval waits
	Escalated     Kind = "escalated"      // a named owner has the case
	Reached       Kind = "reached"        // a target took it: the deadline's clock runs
	Rerouted      Kind = "rerouted"       // the next step of the route is asked, or a receipt changed a delivery
	Reminded      Kind = "reminded"       // the one reminder went out
	Overdue       Kind = "overdue"        // past the deadline, still waiting by policy
	Answered      Kind = "answered"       // a valid answer, to be decided again by another write
	Released      Kind = "released"       // one executor may claim it
	Stopped       Kind = "stopped"        // policy or the owner says stop
	Conflicted    Kind = "conflicted"     // stored state contradicts it: reconcile first
	Denied        Kind = "denied"         // an approver said no
	Cancelled     Kind = "cancelled"      // somebody called it off
	TimedOut      Kind = "timed_out"      // the deadline passed and somebody had been reached
	Undelivered   Kind = "undelivered"    // nobody could be reached
	Superseded    Kind = "superseded"     // a newer candidate replaced it
	Claimed       Kind = "claimed"        // one executor has the release
	Done          Kind = "done"           // the effect happened
	Failed        Kind = "failed"         // the tool said it failed
	InDoubt       Kind = "in_doubt"       // claimed, the lease is over, no outcome
	Reconciled    Kind = "reconciled"     // a person or the tool's own check said what became of it
)

// Kinds lists every kind in the order of a task's life.
func Kinds() []Kind {
	return []Kind{
		Asked, ApprovalAsked, Escalated, Reached, Rerouted, Reminded, Overdue, Answered, Released, Stopped, Conflicted,
		Denied, Cancelled, TimedOut, Undelivered, Superseded, Claimed, Done, Failed, InDoubt, Reconciled,
	}
}

// State is a task's whole state: the data of every task.<kind>.v1. The last message of a task in the log is its state.
type State struct {
	Agent   Agent     `json:"agent"`
	Task    Task      `json:"task"`
	Version Version   `json:"version"`
	Kind    Kind      `json:"kind"`
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"` // id of the event that caused the transition

	Candidate Candidate `json:"candidate"` // answers merged into its arguments
	Content   Digest    `json:"content"`   // of the candidate as it was proposed
	Decision  Decided   `json:"decision"`
	Pause     *Pause    `json:"pause,omitzero"` // the current or last pause of this candidate

	Asks Asks `json:"asks,omitzero"`
	History
	Turn
	Ending
	Execution
}

// History is what people said about the candidate, and which candidates came before it.
type History struct {
	Accepted []Accepted `json:"accepted,omitempty"` // accepted answers of this candidate, oldest first
	Past     []Past     `json:"past,omitempty"`     // the task's earlier candidates, oldest first, at most 64
}

// Past is an earlier candidate of the task: sent again, it is found where the log says what became of it.
type Past struct {
	ID      string `json:"id"`
	Content Digest `json:"content"`
	Seq     uint64 `json:"seq"` // of its last message in the log
}

// Turn is what this transition alone did to pauses, and what is derived from it: none of it stays in the next state.
type Turn struct {
	Left   *Pause `json:"left,omitzero"`   // another pause that it ended, so that its surfaces are told
	Steps  bool   `json:"steps,omitzero"`  // it asked the route's step before Pause.Next
	Closes bool   `json:"closes,omitzero"` // it ended Pause, so that its surfaces are told
}

// Asks are the counters the question limits need, over one candidate.
type Asks struct {
	Total       int            `json:"total,omitzero"`
	Consecutive int            `json:"consecutive,omitzero"`
	PerField    map[string]int `json:"per_field,omitempty"`
	Declined    []string       `json:"declined,omitempty"` // fields answered "none of these"
	Lookups     []string       `json:"lookups,omitempty"`  // fields the agent was asked to look up
}

// Ending is how a step ended without an effect.
type Ending struct {
	By         string  `json:"by,omitzero"`         // the person, agent or operator who ended it
	Note       string  `json:"note,omitzero"`       // their reason, or the rule's
	Superseded Version `json:"superseded,omitzero"` // the version this candidate replaced

	// Settled are the last submissions that moved the task's earlier candidates, oldest first: what was accepted once is
	// not judged again when it is delivered again.
	Settled []SubmissionID `json:"settled,omitempty"`
}

// Execution is what has become of a release.
type Execution struct {
	Release *Release `json:"release,omitzero"`
	Claim   *Claim   `json:"claim,omitzero"`
	Effect  *Effect  `json:"effect,omitzero"`
}

// PauseKind tells a missing datum, an authorisation and a handover apart: they never stand in for each other.
type PauseKind string

// Kinds of pauses.
const (
	Clarification PauseKind = "clarification"
	Approval      PauseKind = "approval"
	Escalation    PauseKind = "escalation"
)

// PauseStatus is the state of a pause. Its zero value is invalid.
type PauseStatus string

// States of a pause. Only waiting can change; the rest are ends and never reopen.
const (
	PauseWaiting     PauseStatus = "waiting"
	PauseAnswered    PauseStatus = "answered"
	PauseCancelled   PauseStatus = "cancelled"
	PauseTimedOut    PauseStatus = "timed_out"
	PauseUndelivered PauseStatus = "undelivered"
	PauseSuperseded  PauseStatus = "superseded"
)

// Pause is one question to people, kept inside the state.
type Pause struct {
	Question   QuestionID  `json:"question"`
	Kind       PauseKind   `json:"kind"`
	Version    Version     `json:"version"`
	Step       string      `json:"step"`
	Status     PauseStatus `json:"status"`
	Fields     []Field     `json:"fields,omitempty"`
	Responders []string    `json:"responders"`      // person ids who may answer; "anyone" must be said; empty means nobody
	Action     Digest      `json:"action"`          // what an approver is shown, and all an approval authorises
	Shown      []Shown     `json:"shown,omitempty"` // the arguments as people see them
	Reason     string      `json:"reason,omitzero"` // why it was asked, in the rule's words

	Clock
	Delivering
}

// Clock is a pause's times, all by the broker's clock.
type Clock struct {
	Opened   time.Time `json:"opened"`
	Reached  time.Time `json:"reached,omitzero"`  // first accepted receipt: the deadline counts from here
	Deadline time.Time `json:"deadline,omitzero"` // zero until somebody is reached
	Cap      time.Time `json:"cap,omitzero"`      // hard limit
	Reminded time.Time `json:"reminded,omitzero"`
	Overdue  time.Time `json:"overdue,omitzero"` // since when the policy holds it past its deadline
	Ended    time.Time `json:"ended,omitzero"`
}

// Delivering is how far a pause's route has been walked.
type Delivering struct {
	Plan       Plan       `json:"plan"`
	Next       int        `json:"next"` // index of the first step not asked yet
	Stepped    time.Time  `json:"stepped,omitzero"`
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Given is what somebody said about one field: an option's id, or a value.
type Given struct {
	Field  string `json:"field"`
	Option string `json:"option,omitzero"`
	Value  Secret `json:"value,omitzero"`
}

// Accepted is an answer, approval or escalation reply that ended a pause.
type Accepted struct {
	Version    Version      `json:"version"`
	Question   QuestionID   `json:"question"`
	Kind       PauseKind    `json:"kind"`
	Submission SubmissionID `json:"submission"`
	Responder  Responder    `json:"responder"`
	Values     []Given      `json:"values,omitempty"`
	At         time.Time    `json:"at"`
}

// Refusal is an outcome, not an error: the data of task.refused.v1. Nothing changed; a question that was open still is.
type Refusal struct {
	Agent      Agent      `json:"agent"`
	Task       Task       `json:"task"`
	Version    Version    `json:"version"` // the version it named
	Current    Version    `json:"current,omitzero"`
	Of         string     `json:"of"` // answer, approval, candidate, cancel or claim
	ID         string     `json:"id"` // the submission's or candidate's id
	Reason     Reason     `json:"reason"`
	Field      string     `json:"field,omitzero"`
	Detail     string     `json:"detail,omitzero"` // a fixed sentence, never a value
	Responder  *Responder `json:"responder,omitzero"`
	AnsweredBy *Responder `json:"answered_by,omitzero"` // duplicate: whose answer was accepted
	AnsweredAt time.Time  `json:"answered_at,omitzero"`
	At         time.Time  `json:"at"`
}

// Reason is why something was refused.
type Reason string

// Reasons. The first nine judge answers and approvals; the rest judge candidates, cancels and claims.
const (
	UnknownTask  Reason = "unknown_task"
	WrongKind    Reason = "wrong_kind"
	NotAllowed   Reason = "not_allowed"
	StaleVersion Reason = "stale_version"
	Duplicate    Reason = "duplicate"
	NotPending   Reason = "not_pending"
	Incomplete   Reason = "incomplete"
	NotAnOption  Reason = "not_an_option"
	InvalidValue Reason = "invalid_value"

	Changed     Reason = "changed"      // the candidate's id was used for other content
	Busy        Reason = "busy"         // the task is claimed or in doubt
	Malformed   Reason = "malformed"    // it could not be read
	TooLarge    Reason = "too_large"    // no room for it
	NotReleased Reason = "not_released" // there is nothing to claim
	Taken       Reason = "taken"        // another executor has it
	Frozen      Reason = "frozen"       // releases are frozen until an operator acknowledges a data loss
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{
		UnknownTask, WrongKind, NotAllowed, StaleVersion, Duplicate, NotPending, Incomplete, NotAnOption, InvalidValue,
		Changed, Busy, Malformed, TooLarge, NotReleased, Taken, Frozen,
	}
}
