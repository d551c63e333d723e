package events

import "time"

// Release is a task's permission to run its action once.
type Release struct {
	Version Version      `json:"version"`
	Action  Digest       `json:"action"`
	From    ReleaseBasis `json:"from"`
	Basis   Version      `json:"basis,omitzero"` // the pause it rests on, if any
	At      time.Time    `json:"at"`
}

// ReleaseBasis is what a release rests on. Its zero value is invalid.
type ReleaseBasis string

// What a release can rest on.
const (
	FromProceed       ReleaseBasis = "proceed"        // a proceed decision without a pause
	FromAnswer        ReleaseBasis = "answer"         // an accepted answer, decided again
	FromApproval      ReleaseBasis = "approval"       // an approval of exactly this digest
	FromAfterDeadline ReleaseBasis = "after_deadline" // the policy's documented default on a reversible action, decided at that moment
)

// Claim is one executor's hold on a release.
type Claim struct {
	Nonce  string    `json:"nonce"`
	Worker string    `json:"worker,omitzero"`
	Fence  uint64    `json:"fence"` // the log's sequence it was made over: grows with every claim
	Until  time.Time `json:"until"` // end of the lease
	Count  int       `json:"count"`
}

// ClaimRequest asks for a release. The same nonce may ask again, in case the reply was lost.
type ClaimRequest struct {
	Agent   Agent   `json:"agent"`
	Task    Task    `json:"task"`
	Version Version `json:"version"`
	Nonce   string  `json:"nonce"`
	Worker  string  `json:"worker,omitzero"`

	Recheck map[string]Secret `json:"recheck,omitempty"` // fresh facts; the reconcile rules see them
}

// Validate checks that the claim can be told from others. The error is an [*Invalid].
func (c ClaimRequest) Validate() error {
	return checkNonce(c.Nonce, c.Worker)
}

func checkNonce(nonce, worker string) error {
	switch {
	case nonce == "" || len(nonce) > maxTask:
		return invalid("nonce", "send 1 to 128 random characters, the same when the claim is asked for again", "is missing or too long")
	case len(worker) > maxName:
		return invalid("worker", "shorten it", "is %d bytes, the limit is %d", len(worker), maxName)
	}
	return nil
}

// ClaimReply is the answer to a ClaimRequest: exactly one of Granted and Refused is set.
type ClaimReply struct {
	Granted *Grant   `json:"granted,omitzero"`
	Refused *Refusal `json:"refused,omitzero"`
}

// Grant is a claim that was won: what to run, and the fence that must come back with the outcome.
type Grant struct {
	Version   Version   `json:"version"`
	Step      string    `json:"step"`
	Tool      Tool      `json:"tool"`
	Arguments Arguments `json:"arguments"`
	Action    Digest    `json:"action"`
	Fence     uint64    `json:"fence"`
	Until     time.Time `json:"until"`
}

// EffectStatus is what an executor says about its claim.
type EffectStatus string

// What an executor can say.
const (
	EffectRunning EffectStatus = "running" // renews the lease
	EffectDone    EffectStatus = "done"
	EffectFailed  EffectStatus = "failed"
)

// EffectReport is an executor's word on a claim.
type EffectReport struct {
	Agent   Agent        `json:"agent"`
	Task    Task         `json:"task"`
	Version Version      `json:"version"`
	Nonce   string       `json:"nonce"`
	Fence   uint64       `json:"fence"`
	Action  Digest       `json:"action"` // recomputed over the arguments that were passed
	Status  EffectStatus `json:"status"`
	Result  Secret       `json:"result,omitzero"` // at most 64 KiB; recorded and returned to an identical repeat
	Error   string       `json:"error,omitzero"`  // a code or short text of the tool, shown to the agent only
}

// MaxResult is the size of a recorded result, in bytes.
const MaxResult = 64 << 10

// Validate checks that the report says one of the things there are to say. The error is an [*Invalid].
func (e EffectReport) Validate() error {
	switch {
	case e.Status != EffectRunning && e.Status != EffectDone && e.Status != EffectFailed:
		return invalid("status", "use running, done or failed", "%.20q is unknown", e.Status)
	case len(e.Result.Reveal()) > MaxResult:
		return invalid("result", "return less, or a reference", "is %d bytes, the limit is %d", len(e.Result.Reveal()), MaxResult)
	case len(e.Error) > maxText:
		return invalid("error", "shorten it", "is %d bytes, the limit is %d", len(e.Error), maxText)
	}
	return checkNonce(e.Nonce, "")
}

// EffectReply is the answer to an EffectReport, given after the durable append.
type EffectReply struct {
	Kind    Kind      `json:"kind,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Refused *Refusal  `json:"refused,omitzero"`
}

// Effect is the recorded outcome of a release.
type Effect struct {
	Status EffectStatus `json:"status"`
	Action Digest       `json:"action"`
	Fence  uint64       `json:"fence"`
	Result Secret       `json:"result,omitzero"`
	Error  string       `json:"error,omitzero"`
	By     string       `json:"by,omitzero"` // who reconciled it, if somebody had to
	At     time.Time    `json:"at"`
}

// StateRequest asks what has become of a task. Candidate or Submission ask about one of them.
type StateRequest struct {
	Candidate  string       `json:"candidate,omitzero"`
	Version    Version      `json:"version,omitzero"`
	Submission SubmissionID `json:"submission,omitzero"`
	AtLeast    uint64       `json:"at_least,omitzero"` // a sequence of the log that the answer must know of, from a wake-up; 0: the latest
}

// View is a task as its agent may see it.
type View struct {
	Agent     Agent     `json:"agent"`
	Task      Task      `json:"task"`
	Version   Version   `json:"version"`
	Seq       uint64    `json:"seq"` // of the log: grows with every transition
	Kind      Kind      `json:"kind"`
	Candidate string    `json:"candidate"`
	Content   Digest    `json:"content"` // of the candidate as it was proposed
	Step      string    `json:"step"`
	Action    Digest    `json:"action"`
	At        time.Time `json:"at"`
	Why       Basis     `json:"why"`
	ViewEnd
}

// ViewEnd is what a View says beyond where the task stands.
type ViewEnd struct {
	Pause   *PauseView `json:"pause,omitzero"`
	Lookup  string     `json:"lookup,omitzero"` // look it up with this tool and propose again
	By      string     `json:"by,omitzero"`
	Note    string     `json:"note,omitzero"`
	Effect  *Effect    `json:"effect,omitzero"`
	Release *Release   `json:"release,omitzero"`
}

// PauseView is a pause as anybody involved may see it: no values.
type PauseView struct {
	Question   QuestionID  `json:"question"`
	Kind       PauseKind   `json:"kind"`
	Version    Version     `json:"version"`
	Status     PauseStatus `json:"status"`
	Fields     []Field     `json:"fields,omitempty"`
	Deadline   time.Time   `json:"deadline,omitzero"`
	Cap        time.Time   `json:"cap,omitzero"`
	Overdue    time.Time   `json:"overdue,omitzero"`
	Channels   []Channel   `json:"channels,omitempty"`
	AnsweredBy *Responder  `json:"answered_by,omitzero"`
	AnsweredAt time.Time   `json:"answered_at,omitzero"`
}

// StateReply is the answer to a StateRequest of an agent or executor. None of its members means the broker knows nothing of it.
type StateReply struct {
	View    *View    `json:"view,omitzero"`
	Refused *Refusal `json:"refused,omitzero"` // the candidate that was asked about was refused
}

// QuestionReply is the answer to a StateRequest of an adapter.
type QuestionReply struct {
	Question *Question  `json:"question,omitzero"`
	Pause    *PauseView `json:"pause,omitzero"`
	Kind     Kind       `json:"kind,omitzero"`
	Current  Version    `json:"current,omitzero"`
	Verdict  *Verdict   `json:"verdict,omitzero"` // of the submission that was asked about
}
