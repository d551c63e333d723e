package events

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decision is what the policy says of a candidate: exactly one of [Ask], [Proceed], [Approve], [Stop], [Escalate] and
// [Reconcile]. There is no zero decision and none that means yes by omission.
//
//sumtype:decl
type Decision interface {
	Basis() Basis
	decision()
}

// Basis is why: which rule of which policy decided, over which action. Every decision carries it.
type Basis struct {
	Rule        string       `json:"rule"`
	Reason      string       `json:"reason"` // a sentence of the policy's author or a fixed one; never an argument's value
	Policy      PolicyRef    `json:"policy"`
	Action      Digest       `json:"action"`
	Assumptions []Assumption `json:"assumptions,omitempty"`
	Traits      Traits       `json:"traits"`
}

// PolicyRef names the policy that decided: its name, its author's version, and the digest of its text.
type PolicyRef struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Digest  Digest `json:"digest"`
}

// Traits are what the policy knows about the tool.
type Traits struct {
	Consequence string   `json:"consequence,omitzero"` // low or high
	Reversible  bool     `json:"reversible"`
	Idempotent  bool     `json:"idempotent"`         // a claim whose outcome is lost may be made again
	Redact      []string `json:"redact,omitempty"`   // arguments never shown in full
	Retention   Duration `json:"retention,omitzero"` // how long the task is kept once final; 0 is the broker's default
	Show        []string `json:"show,omitempty"`     // arguments people are shown; empty means all that are not redacted
}

// Assumption is a value the policy supplied in place of a question, recorded and correctable while the action is reversible.
type Assumption struct {
	Field      string `json:"field"`
	Value      Secret `json:"value"`
	Source     string `json:"source"`              // default, single_candidate, same_effect or after_deadline
	Documented string `json:"documented,omitzero"` // where the default is written down
}

// Ask says a datum is missing that can change the action: a person, or the agent itself when Lookup is set, must supply it.
type Ask struct {
	Why    Basis
	Fields []Field // one; up to three where the policy allows a batch
	Lookup string  // not empty: this read tool may find it; the agent is asked to look and propose again
	Plan   Plan
}

// Proceed says the action may run, once. Assumptions that were made stand in its basis.
type Proceed struct{ Why Basis }

// Approve says the action is understood and a person must authorise it.
type Approve struct {
	Why  Basis
	From []string // who may: person ids, "role:<role>", "requester" (the policy says so by naming it)
	Plan Plan
}

// Stop says the action must not run.
type Stop struct{ Why Basis }

// Escalate hands the case to a named owner.
type Escalate struct {
	Why    Basis
	To     string  // a person's id or "role:<role>"
	Fields []Field // what was still open, so that the owner may hand the case back with a value
	Plan   Plan
}

// Reconcile says stored state contradicts the action: no answer would mend it.
type Reconcile struct{ Why Basis }

// Basis returns why.
func (d Ask) Basis() Basis { return d.Why }

// Basis returns why.
func (d Proceed) Basis() Basis { return d.Why }

// Basis returns why.
func (d Approve) Basis() Basis { return d.Why }

// Basis returns why.
func (d Stop) Basis() Basis { return d.Why }

// Basis returns why.
func (d Escalate) Basis() Basis { return d.Why }

// Basis returns why.
func (d Reconcile) Basis() Basis { return d.Why }

func (Ask) decision()       {}
func (Proceed) decision()   {}
func (Approve) decision()   {}
func (Stop) decision()      {}
func (Escalate) decision()  {}
func (Reconcile) decision() {}

// Plan is how people are reached and what silence means.
type Plan struct {
	Route         []RouteStep   `json:"route,omitempty"`
	Deadline      Duration      `json:"deadline,omitzero"` // from the first accepted receipt
	Cap           Duration      `json:"cap,omitzero"`      // hard limit from the moment the pause is made
	Remind        Duration      `json:"remind,omitzero"`   // one reminder this long after the first accepted receipt; 0 is none
	AfterDeadline AfterDeadline `json:"after_deadline,omitzero"`
}

// RouteStep is asked when the one before is undelivered, or After its wait. Its targets are asked together.
type RouteStep struct {
	Targets []RouteTarget `json:"targets"`
	After   Duration      `json:"after,omitzero"` // wait from the earlier step's first accepted receipt; 0 waits for undelivered only
}

// RouteTarget is whom to ask on which channel: "requester", "anyone", "role:<role>", "owner" or a person's id.
type RouteTarget struct {
	Channel Channel `json:"channel"`
	Who     string  `json:"who"`
}

// AfterDeadline is what the policy does when the deadline passes unanswered. Silence is never an answer.
type AfterDeadline string

// What silence means.
const (
	DeadlineHold     AfterDeadline = "hold"     // keep waiting, visibly overdue
	DeadlineStop     AfterDeadline = "stop"     // the pause ends as timed_out
	DeadlineDefault  AfterDeadline = "default"  // decide again with the documented default, on a reversible action only
	DeadlineEscalate AfterDeadline = "escalate" // hand over to Plan's owner
)

// Role is what a field's value selects, and so what a wrong one would change.
type Role string

// Roles of fields.
const (
	RoleIdentity  Role = "identity"
	RoleRecipient Role = "recipient"
	RoleResource  Role = "resource"
	RoleEffect    Role = "effect"
	RolePlain     Role = "plain"
)

// Field is one datum a person is asked for.
type Field struct {
	Name     string    `json:"name"`
	Role     Role      `json:"role"`
	Prompt   string    `json:"prompt"`
	Options  []Option  `json:"options,omitempty"`
	FreeText *FreeText `json:"free_text,omitzero"` // nil: one of the options, nothing else
	Secret   bool      `json:"secret,omitzero"`    // the value is never shown again
	Changes  string    `json:"changes,omitzero"`   // what it can change: objective, authority, evidence or effect
	Sources  []string  `json:"sources,omitempty"`  // why it is open: required, declared, schema, provenance, candidates
	Outcome  Outcome   `json:"outcome,omitzero"`
}

// Outcome is what became of a field of a question.
type Outcome string

// Outcomes of fields. The zero Outcome is a field still waiting.
const (
	FieldAnswered Outcome = "answered"
	FieldDeclined Outcome = "declined" // "none of these"
	FieldUnknown  Outcome = "unknown"  // the pause ended before it was answered
)

// NoneOfThese is the id of the option that says the value is not among the options.
const NoneOfThese = "none-of-these"

// Option is one possible value. Its id travels, never its label; two records with one label are two options.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Hint  string `json:"hint,omitzero"`
	Value Secret `json:"value,omitzero"` // stays in the broker: not part of a question on its way to people
}

// FreeText says what a typed answer must be.
type FreeText struct {
	MaxRunes int `json:"max_runes"`
	Schema   Raw `json:"schema,omitempty"` // JSON Schema of the value; a string otherwise
}

// Duration is a time.Duration whose text is Go's: "30m", "1h30m".
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads, and refuses negative durations.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return invalid("duration", "write it like 10m or 1h30m", "%.20q is not a duration", text)
	}
	*d = Duration(v)
	return nil
}

// DecisionKind names the kind of a decision on the wire and in records.
type DecisionKind string

// Kinds of decisions.
const (
	KindAsk       DecisionKind = "ask"
	KindProceed   DecisionKind = "proceed"
	KindApprove   DecisionKind = "approve"
	KindStop      DecisionKind = "stop"
	KindEscalate  DecisionKind = "escalate"
	KindReconcile DecisionKind = "reconcile"
)

// KindOf returns the kind of a decision.
func KindOf(d Decision) DecisionKind {
	switch d.(type) {
	case Ask:
		return KindAsk
	case Proceed:
		return KindProceed
	case Approve:
		return KindApprove
	case Stop:
		return KindStop
	case Escalate:
		return KindEscalate
	case Reconcile:
		return KindReconcile
	}
	panic(fmt.Sprintf("events: %T is no decision", d))
}

// Decided is a decision as it is stored: {"kind": …} and the members that kind has.
type Decided struct{ Decision Decision } // not embedded: a Decided is no seventh kind

// Basis returns why.
func (d Decided) Basis() Basis { return d.Decision.Basis() }

type decidedWire struct {
	Kind   DecisionKind `json:"kind"`
	Basis  Basis        `json:"basis"`
	Fields []Field      `json:"fields,omitempty"`
	Lookup string       `json:"lookup,omitzero"`
	From   []string     `json:"from,omitempty"`
	To     string       `json:"to,omitzero"`
	Plan   *Plan        `json:"plan,omitzero"`
}

// wire flattens the sum; the encoder is given it so that the caller's options (revealed values) reach what it holds.
func (d Decided) wire() decidedWire {
	w := decidedWire{Kind: KindOf(d.Decision), Basis: d.Basis()}
	switch v := d.Decision.(type) {
	case Ask:
		w.Fields, w.Lookup, w.Plan = v.Fields, v.Lookup, &v.Plan
	case Approve:
		w.From, w.Plan = v.From, &v.Plan
	case Escalate:
		w.To, w.Fields, w.Plan = v.To, v.Fields, &v.Plan
	case Proceed, Stop, Reconcile:
	}
	return w
}

// UnmarshalJSONFrom reads the stored form; a kind it does not know is an error, never a default.
func (d *Decided) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w decidedWire
	if err := json.UnmarshalDecode(dec, &w, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	var plan Plan
	if w.Plan != nil {
		plan = *w.Plan
	}
	switch w.Kind {
	case KindAsk:
		d.Decision = Ask{w.Basis, w.Fields, w.Lookup, plan}
	case KindProceed:
		d.Decision = Proceed{w.Basis}
	case KindApprove:
		d.Decision = Approve{w.Basis, w.From, plan}
	case KindStop:
		d.Decision = Stop{w.Basis}
	case KindEscalate:
		d.Decision = Escalate{w.Basis, w.To, w.Fields, plan}
	case KindReconcile:
		d.Decision = Reconcile{w.Basis}
	default:
		return invalid("decision.kind", "use ask, proceed, approve, stop, escalate or reconcile", "%.20q is unknown", w.Kind)
	}
	return nil
}

// MarshalJSONTo writes the stored form with the options of the encoder, so that what it holds is revealed or hidden as
// the whole is.
func (d Decided) MarshalJSONTo(enc *jsontext.Encoder) error {
	if d.Decision == nil {
		return errors.New("no decision: what is written could not be read again")
	}
	return json.MarshalEncode(enc, d.wire())
}
