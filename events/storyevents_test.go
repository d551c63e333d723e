package events_test

import (
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
)

func storyShown(phase events.Phase) events.Question {
	f := storyField()
	for i := range f.Options {
		f.Options[i].Value = events.Secret{}
	}
	q := events.Question{
		Agent: storyAgent, Task: storyTask, Version: 7, Question: storyQuestion, Kind: events.Clarification, Phase: phase, Channel: "slack",
		Delivery: storyDelivery(),
		Content: events.Content{
			Lang: "es", Step: "update-record", Tool: "crm.update_record", Fields: []events.Field{f},
			Shown:  []events.Shown{{Name: "name", Value: "Juan"}, {Name: "phone", Value: "+34 600 *** ***"}},
			Action: storyCandidate().Action(), AgentSays: "The customer asked to change their phone number.", Requester: "Ana",
			Reason: "More than one record matches and the choice changes who is affected.", Next: "The record is updated at once.",
			Deadline: events.Duration(30 * time.Minute), NotAfter: storyTime(1).Add(24 * time.Hour), AfterDeadline: events.DeadlineStop,
		},
	}
	if phase == events.PhaseAsk {
		q.Delivery.Receipt = events.Receipt{}
	}
	if phase == events.PhaseClose {
		q.Closed = &events.Closed{Status: events.PauseAnswered, Kind: events.Released, By: new(storyResponder()), At: storyTime(21)}
	}
	return q
}

func storyAnswer() events.Answer {
	who := storyResponder()
	who.Person = ""
	return events.Answer{
		Agent: storyAgent, Task: storyTask, Version: 7, Question: storyQuestion, Submission: storyClick, Responder: who,
		Values: []events.Given{{Field: "customer_id", Option: "o3"}}, ReceivedAt: storyTime(20),
	}
}

func storyApproved() events.ApprovalAnswer {
	a := storyAnswer()
	return events.ApprovalAnswer{
		Agent: a.Agent, Task: a.Task, Version: 8, Question: a.Question, Submission: a.Submission, Responder: a.Responder,
		Verdict: events.Granted, Action: storyAnswered().Action(), ReceivedAt: a.ReceivedAt,
	}
}

func storyRefusal() events.Refusal {
	return events.Refusal{
		Agent: storyAgent, Task: storyTask, Version: 7, Current: 7, Of: "answer", ID: "01JDZ4VE2F3G4H5J6K7M8N9P0Q", Reason: events.Duplicate,
		Responder:  &events.Responder{Person: "luis", Channel: "email", Subject: "luis@example.com", Assurance: events.Sender},
		AnsweredBy: new(storyResponder()), AnsweredAt: storyTime(21), At: storyTime(25),
	}
}

func storyVerdict() events.Verdict {
	return events.Verdict{
		Agent: storyAgent, Task: storyTask, Version: 7, Question: storyQuestion, Submission: storyClick, Accepted: true,
		Kind: events.Released, Current: 7, At: storyTime(21),
	}
}

func storyRecord() events.Record {
	s := storyRelease()
	keyed := func(digit string) events.Digest { return events.Digest("hmac-sha256:" + strings.Repeat(digit, 64)) }
	transition := events.Transition{Kind: s.Kind, Decision: events.KindProceed, Action: keyed("a")}
	transition.Candidate, transition.Step, transition.Tool = s.Candidate.ID, keyed("5"), s.Candidate.Tool.Name
	transition.Why = events.WhyRecord{Rule: "reversible-update", Policy: storyPolicy(), Action: keyed("a"), Traits: s.Decision.Basis().Traits}
	transition.Accepted = []events.Approved{{
		Version: 7, Question: storyQuestion, Kind: events.Clarification, Submission: storyClick,
		Values: map[string]events.Digest{"customer_id": keyed("c")}, At: storyTime(21),
	}}
	transition.Accepted[0].Responder.Person = "ana"
	transition.Accepted[0].Responder.Channel = "slack"
	transition.Accepted[0].Responder.Assurance = events.Platform
	transition.Release = &events.Release{Version: 7, Action: keyed("a"), From: events.FromAnswer, Basis: 7, At: storyTime(21)}
	r := events.Record{Seq: 12, Agent: s.Agent, Task: s.Task, Version: s.Version, Cause: s.Cause}
	r.Log, r.High, r.At, r.Transition = 1187, 1190, s.At, &transition
	r.Prev, r.Hash = events.Digest("sha256:"+strings.Repeat("1", 64)), events.Digest("sha256:"+strings.Repeat("2", 64))
	return r
}

// storyEvents has one value for every event type but those of the log.
func storyEvents() map[string]any {
	all := map[string]any{
		"candidate.proposed.v1": storyCandidate(),
		"cancel.requested.v1":   events.CancelRequest{Agent: storyAgent, Task: storyTask, Version: 7, Reason: "The customer called again."},
		"task.refused.v1":       storyRefusal(),
		"timer.due.v1":          events.Timer{Agent: storyAgent, Task: storyTask, Due: storyTime(32)},
		"question.asked.v1":     storyShown(events.PhaseAsk),
		"question.reminded.v1":  storyShown(events.PhaseRemind),
		"question.closed.v1":    storyShown(events.PhaseClose),
		"delivery.reported.v1": events.DeliveryReport{
			Agent: storyAgent, Task: storyTask, Version: 7, Question: storyQuestion, Delivery: storyDelivery().ID, Receipt: storyDelivery().Receipt,
		},
		"answer.submitted.v1":   storyAnswer(),
		"approval.submitted.v1": storyApproved(),
		"verdict.given.v1":      storyVerdict(),
		"audit.recorded.v1":     storyRecord(),
	}
	for _, k := range events.Kinds() {
		all["task."+string(k)+".v1"] = storyState(k)
	}
	return all
}

func storyView() events.View {
	s := storyRelease()
	return events.View{
		Agent: s.Agent, Task: s.Task, Version: s.Version, Seq: 1187, Kind: s.Kind, Candidate: s.Candidate.ID, Step: s.Candidate.Step,
		Action: s.Candidate.Action(), At: s.At, Why: s.Decision.Basis(), ViewEnd: events.ViewEnd{Pause: storyPauseView(), Release: s.Release},
	}
}

func storyPauseView() *events.PauseView {
	return &events.PauseView{
		Question: storyQuestion, Kind: events.Clarification, Version: 7, Status: events.PauseAnswered, Channels: []events.Channel{"slack"},
		Deadline: storyTime(32), AnsweredBy: new(storyResponder()), AnsweredAt: storyTime(21),
	}
}
