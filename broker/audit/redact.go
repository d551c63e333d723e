package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

const keyed = "hmac-sha256:"

// plain is what a text may look like and still be taken for an identifier: no spaces, no @, nothing to hide a sentence, an
// address or a URL in.
var plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*(/[A-Za-z0-9_.:-]+)*$`)

const maxPlain = 160 // bytes: room for a delivery's id

func isPlain(s string) bool { return len(s) <= maxPlain && plain.MatchString(s) }

// Redact turns a message of the task log into its record, without the places in the chain. It is pure and total: what cannot
// be read becomes a record that says so. No value that a person, agent or tool gave gets into the record: values, steps,
// nonces and digests of actions (whose arguments could be guessed) become HMACs under the key; ids are kept when they look
// like ids and become HMACs otherwise, so an address that is used as an id does not show; prompts, labels, notes, contexts,
// names, results and errors are left out.
func Redact(key []byte, m bus.Message) events.Record {
	r := events.Record{
		Logged: events.Logged{Log: m.Seq, After: m.After, At: m.Stored.UTC()},
		Agent:  m.Subject.Agent, Task: m.Subject.Task, Key: fingerprint(key),
	}
	if r.Agent == "" || r.Task == "" { // not even the subject could be read
		r.Agent, r.Task = events.AboutLog, events.AboutLog
	}
	x := redactor{key: key, agent: r.Agent, task: r.Task}
	switch data := m.Envelope.Data.(type) {
	case events.State:
		if m.Subject.Family != "task" || data.Agent != r.Agent || data.Task != r.Task || data.Kind != m.Subject.Kind ||
			data.Decision.Decision == nil {
			r.Unreadable = events.UnreadableSubject
			return r
		}
		if data.Claim != nil {
			x.nonce = data.Claim.Nonce
		}
		if data.Candidate.Requester != nil {
			x.asker = data.Candidate.Requester.ID
		}
		r.Version, r.Cause, r.Transition = data.Version, x.cause(data.Cause), x.transition(data)
	case events.Refusal:
		if m.Subject.Family != "refused" || data.Agent != r.Agent || data.Task != r.Task ||
			m.Subject.ID != events.TokenFor(data.ID) {
			r.Unreadable = events.UnreadableSubject
			return r
		}
		r.Version, r.Refusal = data.Version, x.refusal(data)
	default:
		r.Unreadable = events.UnreadableEvent
	}
	return r
}

// fingerprint names a key without saying anything about it.
func fingerprint(key []byte) string {
	return string(redactor{key: key}.mac("fingerprint"))[len(keyed):][:16]
}

// redactor takes the values out of what is said about one task.
type redactor struct {
	key   []byte
	agent events.Agent
	task  events.Task
	nonce string // of the claim: whoever knows it may ask for the grant
	asker string // the requester's id, which the record shows
}

// mac is the HMAC of texts, each preceded by its length, so that no two lists of texts are alike.
func (x redactor) mac(texts ...string) events.Digest {
	h := hmac.New(sha256.New, x.key)
	for _, t := range texts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(t)))
		h.Write(size[:])
		h.Write([]byte(t))
	}
	return events.Digest(keyed + hex.EncodeToString(h.Sum(nil)))
}

// own is the HMAC of a text for this task alone: the same text has another one in another task.
func (x redactor) own(what string, texts ...string) events.Digest {
	return x.mac(append([]string{what, string(x.agent), string(x.task)}, texts...)...)
}

// id keeps what looks like an identifier and replaces the rest.
func (x redactor) id(s string) string {
	if s == "" || isPlain(s) {
		return s
	}
	return string(x.mac("id", s))
}

// word is id for the words of a closed list, which a log written by another version may hold others of.
func word[T ~string](x redactor, v T) T { return T(x.id(string(v))) }

func (x redactor) ids(all []string) []string {
	if all == nil {
		return nil
	}
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = x.id(s)
	}
	return out
}

// responders keeps "not:" before the id of somebody who may not answer.
func (x redactor) responders(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		id, found := strings.CutPrefix(s, barred)
		if out[i] = x.id(id); found {
			out[i] = barred + out[i]
		}
	}
	return out
}

func (x redactor) cause(s string) string {
	if s != "" && s == x.nonce {
		return string(x.own("nonce", s))
	}
	return x.id(s)
}

// action replaces the digest of an action: arguments of few possibilities could be found from it.
func (x redactor) action(d events.Digest) events.Digest {
	if d == "" {
		return ""
	}
	return x.own("action", string(d))
}

func (x redactor) value(field, option string, v events.Secret) events.Digest {
	text := v.Reveal()
	if c, err := events.Canonical(text); err == nil {
		text = c
	}
	return x.own("value", field, option, string(text))
}

func (x redactor) transition(s events.State) *events.Transition {
	t := &events.Transition{
		Kind: word(x, s.Kind),
		ProposalRecord: events.ProposalRecord{
			Candidate: x.id(s.Candidate.ID), Step: x.own("step", s.Candidate.Step),
			Tool: x.id(s.Candidate.Tool.Name), Requester: x.id(x.asker),
		},
		Decision: events.KindOf(s.Decision.Decision), Why: x.why(s.Decision.Decision), Action: x.action(decided(s)),
		Pause: x.pause(s.Pause), Left: x.pause(s.Left),
	}
	for _, a := range s.Accepted {
		t.Accepted = append(t.Accepted, x.accepted(a))
	}
	t.EndRecord = x.end(s)
	return t
}

// decided is the digest of what the decision is about: the candidate with its answers, and with what the policy assumed.
func decided(s events.State) events.Digest {
	c := s.Candidate
	if assumed := s.Decision.Basis().Assumptions; len(assumed) > 0 {
		c.Arguments = maps.Clone(c.Arguments)
		if c.Arguments == nil {
			c.Arguments = events.Arguments{}
		}
		for _, a := range assumed {
			c.Arguments[a.Field] = a.Value
		}
	}
	return c.Action()
}

func (x redactor) why(d events.Decision) events.WhyRecord {
	b := d.Basis()
	w := events.WhyRecord{Rule: b.Rule, Policy: b.Policy, Action: x.action(b.Action), Traits: b.Traits}
	w.Traits.Redact, w.Traits.Show = nil, nil
	for _, a := range b.Assumptions {
		w.Assumptions = append(w.Assumptions, events.Assumed{
			Field: x.id(a.Field), Value: x.value(a.Field, "", a.Value),
			Source: x.id(a.Source), Documented: a.Documented,
		})
	}
	switch v := d.(type) {
	case events.Ask:
		w.Lookup = x.id(v.Lookup)
	case events.Approve:
		w.From = x.ids(v.From)
	case events.Proceed, events.Stop, events.Escalate, events.Reconcile:
	}
	return w
}

func (x redactor) pause(p *events.Pause) *events.PauseRecord {
	if p == nil {
		return nil
	}
	r := &events.PauseRecord{
		Question: word(x, p.Question), Kind: word(x, p.Kind), Version: p.Version, Status: word(x, p.Status),
		Responders: x.responders(p.Responders), Action: x.action(p.Action), AfterDeadline: word(x, p.Plan.AfterDeadline),
		Route: events.RouteRecord{Steps: len(p.Plan.Route), Next: p.Next}, Clock: p.Clock,
	}
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, events.FieldRecord{Name: x.id(f.Name), Options: len(f.Options), Outcome: word(x, f.Outcome)})
	}
	for _, d := range p.Deliveries {
		r.Deliveries = append(r.Deliveries, events.DeliveryRecord{
			ID: x.id(d.ID), Channel: word(x, d.Target.Channel),
			State: word(x, d.Receipt.State), Code: x.id(d.Receipt.Code),
		})
	}
	return r
}

func (x redactor) accepted(a events.Accepted) events.Approved {
	r := events.Approved{
		Version: a.Version, Question: word(x, a.Question), Kind: word(x, a.Kind),
		Submission: word(x, a.Submission), Responder: x.responder(a.Responder), At: a.At,
	}
	for _, v := range a.Values {
		if r.Values == nil {
			r.Values = map[string]events.Digest{}
		}
		r.Values[x.id(v.Field)] = x.value(v.Field, v.Option, v.Value)
	}
	return r
}

func (x redactor) responder(r events.Responder) events.ResponderRecord {
	subject := x.id(r.Subject)
	if r.Subject != "" && r.Subject != r.Person && r.Subject != x.asker {
		subject = string(x.mac("id", r.Subject))
	}
	return events.ResponderRecord{Person: x.id(r.Person), Channel: word(x, r.Channel), Subject: subject, Assurance: word(x, r.Assurance)}
}

func (x redactor) end(s events.State) events.EndRecord {
	e := events.EndRecord{By: x.by(s.By, s), Superseded: s.Superseded}
	if s.Release != nil {
		release := *s.Release
		release.Action, release.From = x.action(release.Action), word(x, release.From)
		e.Release = &release
	}
	if s.Claim != nil {
		e.Claim = &events.ClaimRecord{
			Nonce: x.own("nonce", s.Claim.Nonce), Worker: x.id(s.Claim.Worker), Fence: s.Claim.Fence,
			Until: s.Claim.Until, Count: s.Claim.Count,
		}
	}
	if s.Effect != nil {
		e.Effect = &events.EffectRecord{
			Status: word(x, s.Effect.Status), Action: x.action(s.Effect.Action), Fence: s.Effect.Fence,
			By: x.by(s.Effect.By, s), At: s.Effect.At,
		}
	}
	return e
}

// by keeps an id that the task itself names: its agent, or somebody who may answer or has. Anything else may be a name.
func (x redactor) by(s string, in events.State) string {
	s = strings.TrimPrefix(s, "agent ")
	known := s == "" || s == string(in.Agent) || s == "operator" ||
		slices.ContainsFunc(in.Accepted, func(a events.Accepted) bool { return a.Responder.Person == s })
	if in.Pause != nil {
		known = known || slices.Contains(in.Pause.Responders, s)
	}
	if known {
		return x.id(s)
	}
	return string(x.mac("id", s))
}

func (x redactor) refusal(r events.Refusal) *events.RefusalRecord {
	out := &events.RefusalRecord{
		Current: r.Current, Of: x.id(r.Of), ID: x.id(r.ID), Reason: word(x, r.Reason), Field: x.id(r.Field),
		AnsweredAt: r.AnsweredAt,
	}
	if r.Of == "claim" || r.Of == "effect" {
		out.ID = string(x.own("nonce", r.ID))
	}
	if r.Responder != nil {
		who := x.responder(*r.Responder)
		out.Responder = &who
	}
	if r.AnsweredBy != nil {
		who := x.responder(*r.AnsweredBy)
		out.AnsweredBy = &who
	}
	return out
}
