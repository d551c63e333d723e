package events

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"mime"
	"reflect"
	"slices"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"
)

// TypePrefix starts the type of every event.
const TypePrefix = "dev.clarify."

// ContentType is that of a structured CloudEvent. Events are emitted in structured mode; binary mode is read too.
const ContentType = "application/cloudevents+json"

// NewID makes an event's id: a ULID.
func NewID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// Envelope is an event: what it says and where it comes from. Data is one of the values this package documents as the data
// of an event type, never a pointer.
type Envelope struct {
	ID          string // NewID when empty
	Source      string // such as /agents/crm-bot or /clarify/<instance>
	Time        time.Time
	TraceParent string // W3C, carried along
	Data        any
}

// schema describes one event type: how its data is read and whether it may carry Secrets in the clear.
type schema struct {
	limit  int
	reveal bool
	decode func([]byte, int) (any, error)
}

func dataOf[T any](limit int, reveal bool) schema {
	return schema{limit: limit, reveal: reveal, decode: func(data []byte, limit int) (any, error) {
		var v T
		if err := Decode(data, limit, &v); err != nil {
			return nil, err
		}
		if c, ok := any(v).(interface{ Validate() error }); ok {
			return v, c.Validate()
		}
		return v, nil
	}}
}

func schemaOf(name string) (schema, bool) {
	switch name {
	case "candidate.proposed.v1":
		return dataOf[Candidate](MaxCandidate, true), true
	case "cancel.requested.v1":
		return dataOf[CancelRequest](MaxAnswer, false), true
	case "task.refused.v1":
		return dataOf[Refusal](MaxState, false), true
	case "timer.due.v1":
		return dataOf[Timer](MaxAnswer, false), true
	case "question.asked.v1", "question.reminded.v1", "question.closed.v1":
		return dataOf[Question](MaxState, false), true
	case "delivery.reported.v1":
		return dataOf[DeliveryReport](MaxAnswer, false), true
	case "answer.submitted.v1":
		return dataOf[Answer](MaxAnswer, true), true
	case "approval.submitted.v1":
		return dataOf[ApprovalAnswer](MaxAnswer, false), true
	case "verdict.given.v1":
		return dataOf[Verdict](MaxState, false), true
	case "audit.recorded.v1":
		return dataOf[Record](MaxState, false), true
	}
	for _, k := range Kinds() {
		if name == "task."+string(k)+".v1" {
			return dataOf[State](MaxState, true), true
		}
	}
	return schema{}, false
}

// Types lists every event type, without [TypePrefix].
func Types() []string {
	types := []string{
		"candidate.proposed.v1", "cancel.requested.v1", "task.refused.v1", "timer.due.v1", "question.asked.v1",
		"question.reminded.v1", "question.closed.v1", "delivery.reported.v1", "answer.submitted.v1", "approval.submitted.v1",
		"verdict.given.v1", "audit.recorded.v1",
	}
	for _, k := range Kinds() {
		types = append(types, "task."+string(k)+".v1")
	}
	return types
}

// typeOf names the event type of a value, and the agent, task and version that go into the CloudEvent's attributes.
func typeOf(data any) (name string, agent Agent, task Task, version Version) {
	switch v := data.(type) {
	case Candidate:
		return "candidate.proposed.v1", v.Agent, v.Task, v.Version
	case CancelRequest:
		return "cancel.requested.v1", v.Agent, v.Task, v.Version
	case State:
		return "task." + string(v.Kind) + ".v1", v.Agent, v.Task, v.Version
	case Refusal:
		return "task.refused.v1", v.Agent, v.Task, v.Version
	case Timer:
		return "timer.due.v1", v.Agent, v.Task, 0
	case Question:
		return "question." + string(v.Phase) + ".v1", v.Agent, v.Task, v.Version
	case DeliveryReport:
		return "delivery.reported.v1", v.Agent, v.Task, v.Version
	case Answer:
		return "answer.submitted.v1", v.Agent, v.Task, v.Version
	case ApprovalAnswer:
		return "approval.submitted.v1", v.Agent, v.Task, v.Version
	case Verdict:
		return "verdict.given.v1", v.Agent, v.Task, v.Version
	case Record:
		return "audit.recorded.v1", v.Agent, v.Task, v.Version
	}
	return "", "", "", 0
}

// Seal writes an event as a structured CloudEvent. It fails only for data that is not an event's.
func Seal(e Envelope) ([]byte, error) {
	name, agent, task, version := typeOf(e.Data)
	s, ok := schemaOf(name)
	if !ok {
		return nil, fmt.Errorf("seal a %s: not the data of an event", reflect.TypeOf(e.Data))
	}
	data, err := encode(e.Data, s.reveal)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", name, err)
	}
	out := ce.New()
	out.SetID(e.ID)
	if e.ID == "" {
		out.SetID(NewID())
	}
	out.SetType(TypePrefix + name)
	out.SetSource(e.Source)
	out.SetSubject(string(agent) + "/" + string(task))
	if !e.Time.IsZero() {
		out.SetTime(e.Time)
	}
	out.SetExtension("taskid", string(task))
	if version > 0 {
		out.SetExtension("stateversion", fmt.Sprint(version))
	}
	if e.TraceParent != "" {
		out.SetExtension("traceparent", e.TraceParent)
	}
	out.SetDataContentType("application/json")
	out.DataEncoded = data
	if err := out.Validate(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", name, err)
	}
	return out.MarshalJSON()
}

// Open reads an event in structured or binary mode (CloudEvents NATS binding 1.0). Header names are case-insensitive. The
// error is an [*Invalid] that names the member and the fix.
func Open(header map[string][]string, body []byte) (Envelope, error) {
	e, err := parse(header, body)
	if err != nil {
		return Envelope{}, err
	}
	name, ok := strings.CutPrefix(e.Type(), TypePrefix)
	s, known := schemaOf(name)
	if !ok || !known {
		return Envelope{}, invalid("type", "see events/schema for the types there are", "%.80q is not an event of Clarify", e.Type())
	}
	if t := e.DataContentType(); t != "" {
		if media, _, err := mime.ParseMediaType(t); err != nil || media != "application/json" {
			return Envelope{}, invalid("datacontenttype", "send application/json", "%.80q is not JSON", t)
		}
	}
	out := Envelope{ID: e.ID(), Source: e.Source(), Time: e.Time()}
	if tp, ok := e.Extensions()["traceparent"].(string); ok {
		out.TraceParent = tp
	}
	if Raw(e.Data()).Kind() == 'n' { // to Go's decoders a null is any value's zero
		return out, invalid("data", "send an object, see events/schema", "is null")
	}
	out.Data, err = s.decode(e.Data(), s.limit)
	return out, err
}

func parse(header map[string][]string, body []byte) (*ce.Event, error) {
	for k, v := range header {
		if strings.EqualFold(k, "content-type") && len(v) > 0 && strings.HasPrefix(strings.ToLower(v[0]), "application/cloudevents") {
			return parseStructured(v[0], body)
		}
	}
	return parseBinary(header, body)
}

func validEvent(e *ce.Event) (*ce.Event, error) {
	if err := e.Validate(); err != nil {
		var bad []string
		if v, ok := errors.AsType[ce.ValidationError](err); ok {
			bad = slices.Sorted(maps.Keys(v))
		}
		return nil, invalid("event", "set id, source, type and specversion 1.0", "lacks valid attributes %v", bad)
	}
	return e, nil
}

// Encode writes a request or reply that is not an event. Secrets are in the clear only in what an executor or agent and
// the broker say to each other about one claim and its effect.
func Encode(v any) ([]byte, error) {
	switch v.(type) {
	case ClaimRequest, ClaimReply, EffectReport, StateReply:
		return encode(v, true)
	}
	return encode(v, false)
}

func encode(v any, reveal bool) ([]byte, error) {
	if reveal {
		return json.Marshal(v, revealed(), json.Deterministic(true))
	}
	return json.Marshal(v, json.Deterministic(true))
}
