package bus

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of a republished message.
const (
	headerSeq    = "Nats-Sequence"
	headerStored = "Nats-Time-Stamp"
)

// headerBinary is on events in binary mode, whose body is not all they say.
const headerBinary = "ce-specversion"

// read opens a message and holds its payload against its subject. What is wrong with it is in Problem.
func (b *Bus) read(subject string, header nats.Header, body []byte) Message {
	var m Message
	m.After, _ = strconv.ParseUint(header.Get(headerLastFor), 10, 64) // absent from what is not a guarded append
	if m.Subject, m.Problem = b.space.Parse(subject); m.Problem != nil {
		return m
	}
	open := events.Open
	if m.Subject.Family == "task" && header.Get(headerBinary) == "" {
		open = b.opened.open
	}
	e, err := open(header, body)
	if err == nil {
		e.Data, err = bind(m.Subject, e.Data)
	}
	if err != nil {
		m.Envelope, m.Problem = events.Envelope{ID: e.ID}, err
		return m
	}
	m.Envelope = e
	return m
}

// delivered is read for what a consumer got. A message without a readable id is named by its place in the stream, so that
// it keeps its name when it is delivered again.
func (b *Bus) delivered(j jetstream.Msg) (Message, error) {
	md, err := j.Metadata()
	if err != nil {
		return Message{}, err
	}
	m := b.read(j.Subject(), j.Headers(), j.Data())
	m.Seq, m.Stored, m.Deliveries, m.Pending = md.Sequence.Stream, md.Timestamp, int(md.NumDelivered), md.NumPending
	if m.Problem != nil && m.Envelope.ID == "" {
		m.Envelope.ID = fmt.Sprintf("%s-%d", md.Stream, md.Sequence.Stream)
	}
	return m, nil
}

// heard is read for core messages. One without a body is a wake-up.
func (b *Bus) heard(j *nats.Msg) Message {
	if len(j.Data) > 0 {
		return b.read(j.Subject, j.Header, j.Data)
	}
	var m Message
	m.Subject, m.Problem = b.space.Parse(j.Subject)
	m.Seq, _ = strconv.ParseUint(j.Header.Get(headerSeq), 10, 64) // absent from a broker's own wake-ups
	m.Stored, _ = time.Parse(time.RFC3339Nano, j.Header.Get(headerStored))
	return m
}

var errOtherType = errors.New("the event's type is not one for this subject")

// bind returns the payload if it is of its subject's type and names nobody but its subject. The subject wins, because
// credentials are bound to it.
func bind(s events.Subject, data any) (any, error) {
	switch v := data.(type) {
	case events.Candidate:
		return v, names(s, v.Agent, v.Task, 0, "candidate")
	case events.CancelRequest:
		return v, names(s, v.Agent, v.Task, 0, "cancel")
	case events.State:
		if v.Kind != s.Kind {
			return nil, &events.Invalid{Field: "kind", Problem: "is not the subject's", Fix: "name the same in both"}
		}
		return v, names(s, v.Agent, v.Task, 0, "task")
	case events.Refusal:
		return v, names(s, v.Agent, v.Task, 0, "refused")
	case events.Timer:
		return v, names(s, v.Agent, v.Task, 0, "timer", "due")
	case events.Record:
		return v, names(s, v.Agent, v.Task, 0, "audit")
	}
	return bindPlace(s, data)
}

// bindPlace is bind for the events of one pause on one channel.
func bindPlace(s events.Subject, data any) (any, error) {
	switch v := data.(type) {
	case events.Question:
		if v.Channel != s.Channel {
			return nil, otherChannel()
		}
		return v, names(s, v.Agent, v.Task, v.Version, "question")
	case events.DeliveryReport:
		return v, names(s, v.Agent, v.Task, v.Version, "receipt", "report")
	case events.Verdict:
		return v, names(s, v.Agent, v.Task, v.Version, "verdict")
	case events.Answer:
		var err error
		if v.Responder, err = onChannel(v.Responder, s.Channel); err != nil {
			return nil, err
		}
		return v, names(s, v.Agent, v.Task, v.Version, "answer")
	case events.ApprovalAnswer:
		var err error
		if v.Responder, err = onChannel(v.Responder, s.Channel); err != nil {
			return nil, err
		}
		return v, names(s, v.Agent, v.Task, v.Version, "approval")
	}
	return nil, errOtherType
}

// onChannel says for a responder without a channel on which one the answer came.
func onChannel(r events.Responder, c events.Channel) (events.Responder, error) {
	if r.Channel != "" && r.Channel != c {
		return r, otherChannel()
	}
	r.Channel = c
	return r, nil
}

func otherChannel() error {
	return &events.Invalid{Field: "channel", Problem: "is not the subject's", Fix: "name the same in both"}
}

// names compares what a payload names with its subject. A version is compared only if the subject has one.
func names(s events.Subject, agent events.Agent, task events.Task, v events.Version, families ...string) error {
	same := &events.Invalid{Problem: "is not the subject's", Fix: "name the same in both"}
	for _, f := range families {
		if f != s.Family {
			continue
		}
		switch {
		case agent != s.Agent:
			same.Field = "agent"
		case task != s.Task:
			same.Field = "task"
		case v != s.Version:
			same.Field = "version"
		default:
			return nil
		}
		return same
	}
	return errOtherType
}
