package events

import "time"

// MaxAnswer is the size of one submission, in bytes.
const MaxAnswer = 32 << 10

// Responder is who answered, by an identity the adapter verified.
type Responder struct {
	Person    string    `json:"person,omitzero"` // the directory's id, filled in by the broker
	Channel   Channel   `json:"channel"`
	Subject   string    `json:"subject"` // who the provider says it is
	Name      string    `json:"name,omitzero"`
	Assurance Assurance `json:"assurance"`
}

// Assurance is how sure the adapter is of the responder.
type Assurance string

// Assurances, weakest first.
const (
	Bearer   Assurance = "bearer"   // holds the link, nothing else is known
	Sender   Assurance = "sender"   // an authenticated sender of mail
	Platform Assurance = "platform" // signed by the provider, or the operating system's user
	Login    Assurance = "login"    // logged in
)

// Answer is one submission of a person to a clarification or an escalation: the data of answer.submitted.v1.
type Answer struct {
	Agent      Agent          `json:"agent"`
	Task       Task           `json:"task"`
	Version    Version        `json:"version"`
	Question   QuestionID     `json:"question"`
	Submission SubmissionID   `json:"submission"`
	Responder  Responder      `json:"responder"`
	Values     []Given        `json:"values,omitempty"` // an option's id or a value, per field
	Cancel     bool           `json:"cancel,omitzero"`  // the person calls the task off
	Handover   EscalationMove `json:"handover,omitzero"`
	Note       string         `json:"note,omitzero"`
	ReceivedAt time.Time      `json:"received_at,omitzero"`
}

// EscalationMove is what the owner of an escalated case does with it.
type EscalationMove string

// What an owner can do. None of them releases anything by itself.
const (
	TakeOver EscalationMove = "take_over" // the owner does it by hand: the step ends as stopped
	EndIt    EscalationMove = "stop"
	HandBack EscalationMove = "hand_back" // decide again, with Values if a datum was missing
)

// ApprovalVerdict is what an approver says. Its zero value is invalid.
type ApprovalVerdict string

// Verdicts of an approver.
const (
	Granted    ApprovalVerdict = "approve"
	NotGranted ApprovalVerdict = "deny"
)

// ApprovalAnswer is one submission of a person to an approval: the data of approval.submitted.v1. It is another type on
// another subject than [Answer], so neither can satisfy the other.
type ApprovalAnswer struct {
	Agent      Agent           `json:"agent"`
	Task       Task            `json:"task"`
	Version    Version         `json:"version"`
	Question   QuestionID      `json:"question"`
	Submission SubmissionID    `json:"submission"`
	Responder  Responder       `json:"responder"`
	Verdict    ApprovalVerdict `json:"verdict"`
	Action     Digest          `json:"action"` // the digest that was shown
	Note       string          `json:"note,omitzero"`
	ReceivedAt time.Time       `json:"received_at,omitzero"`
}

// Validate checks ids and limits. The error is an [*Invalid].
func (a Answer) Validate() error {
	if err := checkSubmission(a.Agent, a.Task, a.Version, a.Submission); err != nil {
		return err
	}
	if len(a.Values) > 3 {
		return invalid("values", "answer the fields of the question", "has %d entries, a question has at most 3 fields", len(a.Values))
	}
	for i, v := range a.Values {
		if v.Field == "" || (v.Option == "") == v.Value.IsZero() {
			return invalid("values", "give a field and either an option's id or a value", "entry %d has neither or both", i)
		}
	}
	switch a.Handover {
	case "", TakeOver, EndIt, HandBack:
	default:
		return invalid("handover", "use take_over, stop or hand_back", "%.20q is unknown", a.Handover)
	}
	return checkNote(a.Note)
}

// Validate checks ids and limits. The error is an [*Invalid].
func (a ApprovalAnswer) Validate() error {
	if err := checkSubmission(a.Agent, a.Task, a.Version, a.Submission); err != nil {
		return err
	}
	if a.Verdict != Granted && a.Verdict != NotGranted {
		return invalid("verdict", "use approve or deny", "%.20q is unknown", a.Verdict)
	}
	if a.Action == "" {
		return invalid("action", "send the digest that was shown", "is missing")
	}
	return checkNote(a.Note)
}

func checkNote(note string) error {
	if len(note) > maxText {
		return invalid("note", "shorten it", "is %d bytes, the limit is %d", len(note), maxText)
	}
	return nil
}

func checkSubmission(agent Agent, task Task, v Version, id SubmissionID) error {
	if _, err := ParseAgent(string(agent)); err != nil {
		return err
	}
	if _, err := ParseTask(string(task)); err != nil {
		return err
	}
	if v == 0 {
		return invalid("version", "name the version the question shows", "is missing or 0")
	}
	_, err := ParseSubmission(string(id))
	return err
}

// Verdict tells the surface that submitted what became of it: the data of verdict.given.v1. Reason is empty when accepted.
type Verdict struct {
	Agent      Agent        `json:"agent"`
	Task       Task         `json:"task"`
	Version    Version      `json:"version"`
	Question   QuestionID   `json:"question"`
	Submission SubmissionID `json:"submission"`
	Accepted   bool         `json:"accepted"`
	Refusal    *Refusal     `json:"refusal,omitzero"`
	Kind       Kind         `json:"kind,omitzero"`    // what the task did
	Current    Version      `json:"current,omitzero"` // the task's version now
	Open       bool         `json:"open"`             // the question still waits
	At         time.Time    `json:"at"`
}
