package broker_test

import (
	"os"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

var people = broker.Directory{People: []broker.Person{
	{ID: "ana", Name: "Ana", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ana", "pager": "ana"}},
	{ID: "ben", Name: "Ben", Roles: []string{"lead"}, Addresses: map[string]string{"desk": "ben"}},
	{ID: "eve", Name: "Eve", Addresses: map[string]string{"desk": "eve"}},
}}

// rules are those of testdata/desk.yaml, which reaches every kind of decision.
func rules(t interface{ Fatal(...any) }) broker.Rules {
	text, err := os.ReadFile("testdata/desk.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("testdata/desk.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return broker.Rules{Policy: p, People: people, Lease: time.Minute, Retention: 24 * time.Hour}
}

var start = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// story drives the pure transitions as the log would: what Next says is appended, everything else changes nothing.
type story struct {
	t     interface{ Fatal(...any) }
	rules broker.Rules
	now   time.Time
	snap  broker.Snapshot
	log   []events.State
	calls int
}

func newStory(t interface{ Fatal(...any) }) *story {
	return &story{t: t, rules: rules(t), now: start}
}

func (s *story) moment() broker.Moment {
	s.calls++
	return broker.Moment{
		Now: s.now, Question: events.QuestionID("Q" + events.TokenFor(s.now.Format("150405.000000000"))[:6] + string(rune('A'+s.calls%26)) + string(rune('a'+s.calls/26%26))),
		Cause: "cause-" + s.now.String() + string(rune('A'+s.calls%26)),
	}
}

// take appends what a change wants and returns its refusal, if any.
func (s *story) take(c broker.Change) *events.Refusal {
	if c.Next != nil {
		s.snap = broker.Snapshot{State: *c.Next, Seq: s.snap.Seq + 1}
		s.log = append(s.log, *c.Next)
	}
	return c.Refusal
}

func (s *story) kind() events.Kind { return s.snap.State.Kind }

func candidate(tool string, version events.Version, args events.Arguments) events.Candidate {
	read, write := true, false
	a := events.Annotations{ReadOnly: &write, Destructive: &write, OpenWorld: &write, Idempotent: &write}
	if tool == "crm.find" {
		a.ReadOnly = &read
	}
	c := events.Candidate{
		Agent: "bot", Task: "t1", Version: version, Step: "step", Arguments: args,
		Tool: events.Tool{Name: tool, Server: "mcp://test", Annotations: &a, InputSchema: schemaFor(tool)},
	}
	c.ID = tool + "-" + string(rune('0'+version%10)) + string(rune('0'+version/10%10))
	c.Provenance = map[string]events.Provenance{}
	for name := range args {
		c.Provenance[name] = events.Provenance{From: events.FromUser}
	}
	c.Requester = &events.Requester{ID: "eve", Name: "Eve"}
	return c
}

func schemaFor(tool string) events.Raw {
	fields := map[string]string{"crm.update_record": "customer_id", "docs.render": "format", "docs.publish": "format", "docs.sign": "signer", "mail.send": "to"}
	field, ok := fields[tool]
	if !ok {
		return events.Raw(`{"type":"object"}`)
	}
	return events.Raw(`{"type":"object","properties":{"` + field + `":{"type":"string"},"note":{"type":"string"}},"required":["` + field + `"]}`)
}

// juans is the candidate that could mean three people.
func juans(version events.Version) events.Candidate {
	c := candidate("crm.update_record", version, events.Arguments{"note": events.SecretOf("new phone")})
	c.Missing = []events.Missing{{Field: "customer_id"}}
	for _, id := range []string{"c-101", "c-207", "c-311"} {
		c.Candidates = append(c.Candidates, events.Alternative{Arguments: events.Arguments{"customer_id": events.SecretOf(id)}, Label: "Juan " + id, Weight: 1})
	}
	return c
}

func (s *story) propose(c events.Candidate) *events.Refusal {
	return s.take(s.rules.Propose(s.snap, c, s.moment()))
}

// reach has the first delivery accepted.
func (s *story) reach() {
	p := s.snap.State.Pause
	s.take(s.receipt(report(s.snap.State, p.Deliveries[0].ID, events.ReachAccepted)))
}

// receipt is what a channel says about its own delivery.
func (s *story) receipt(r events.DeliveryReport) broker.Change {
	channel := events.Channel("none")
	for _, d := range s.snap.State.Pause.Deliveries {
		if d.ID == r.Delivery {
			channel = d.Target.Channel
		}
	}
	return s.rules.Report(s.snap, r, channel, s.moment())
}

func report(st events.State, delivery string, reach events.Reach) events.DeliveryReport {
	return events.DeliveryReport{
		Agent: st.Agent, Task: st.Task, Version: st.Pause.Version, Question: st.Pause.Question,
		Delivery: delivery, Receipt: events.Receipt{State: reach, ProviderID: "m1"},
	}
}

// answer is a submission to the current pause.
func (s *story) answer(person, option string) events.Answer {
	p := s.snap.State.Pause
	a := events.Answer{
		Agent: "bot", Task: "t1", Version: p.Version, Question: p.Question, Submission: events.NewSubmissionID(),
		Responder: events.Responder{Channel: "desk", Subject: person, Assurance: events.Platform},
	}
	if len(p.Fields) > 0 {
		a.Values = []events.Given{{Field: p.Fields[0].Name, Option: option}}
	}
	return a
}

func (s *story) submit(a events.Answer) *events.Refusal {
	return s.take(s.rules.Answer(s.snap, a, s.moment()))
}

func (s *story) approval(person string, v events.ApprovalVerdict) events.ApprovalAnswer {
	p := s.snap.State.Pause
	return events.ApprovalAnswer{
		Agent: "bot", Task: "t1", Version: p.Version, Question: p.Question, Submission: events.NewSubmissionID(),
		Responder: events.Responder{Channel: "desk", Subject: person, Assurance: events.Platform}, Verdict: v, Action: p.Action,
	}
}

func (s *story) approve(a events.ApprovalAnswer) *events.Refusal {
	return s.take(s.rules.Approve(s.snap, a, s.moment()))
}

func (s *story) due() { s.take(s.rules.Due(s.snap, s.moment())) }

func (s *story) claim(nonce string) *events.Refusal {
	return s.take(s.rules.Claim(s.snap, events.ClaimRequest{Agent: "bot", Task: "t1", Version: s.snap.State.Version, Nonce: nonce}, s.moment()))
}

func (s *story) effect(nonce string, status events.EffectStatus) *events.Refusal {
	var fence uint64
	var action events.Digest
	if c := s.snap.State.Claim; c != nil {
		fence, action = c.Fence, s.snap.State.Release.Action
	}
	return s.take(s.rules.Effect(s.snap, events.EffectReport{
		Agent: "bot", Task: "t1", Version: s.snap.State.Version, Nonce: nonce,
		Fence: fence, Action: action, Status: status,
	}, s.moment()))
}

func wantKind(t *testing.T, s *story, want events.Kind) {
	t.Helper()
	if s.kind() != want {
		t.Fatalf("the task is %q, want %q", s.kind(), want)
	}
}

func wantReason(t *testing.T, got *events.Refusal, want events.Reason) {
	t.Helper()
	if got == nil || got.Reason != want {
		t.Fatalf("refused as %v, want %q", got, want)
	}
}
