package events_test

import (
	"reflect"

	"github.com/clarify-broker/clarify/events"
)

// document is one JSON document that has a schema: which Go type it is and what examples of it look like.
type document struct {
	name     string
	of       reflect.Type
	reveal   bool
	examples []any
}

func doc[T any](name string, examples ...T) document {
	d := document{name: name, of: reflect.TypeFor[T]()}
	for _, e := range examples {
		d.examples = append(d.examples, e)
	}
	return d
}

func (d document) revealed() document {
	d.reveal = true
	return d
}

func documents() []document {
	return append([]document{
		doc("candidate.proposed.v1", storyCandidate(), smallestCandidate()).revealed(),
		doc("cancel.requested.v1", storyEvents()["cancel.requested.v1"].(events.CancelRequest)),
		doc("task.v1", storyAsk(), storyState(events.ApprovalAsked), storyState(events.Escalated), storyState(events.Stopped), storyState(events.Done)).revealed(),
		doc("task.refused.v1", storyRefusal()),
		doc("timer.due.v1", storyEvents()["timer.due.v1"].(events.Timer)),
		doc("question.v1", storyShown(events.PhaseAsk), storyShown(events.PhaseClose)),
		doc("delivery.reported.v1", storyEvents()["delivery.reported.v1"].(events.DeliveryReport)),
		doc("answer.submitted.v1", storyAnswer(), storyCancel(), storyTyped()).revealed(),
		doc("approval.submitted.v1", storyApproved()),
		doc("verdict.given.v1", storyVerdict()),
		doc("audit.recorded.v1", storyRecord()),
	}, replies()...)
}

// replies are the requests and replies, which are not events.
func replies() []document {
	refused := storyRefusal()
	return []document{
		doc("claim.request.v1", events.ClaimRequest{
			Agent: storyAgent, Task: storyTask, Version: 7, Nonce: storyClaim().Nonce, Worker: "worker-3",
			Recheck: map[string]events.Secret{"record.status": events.SecretOf("active")},
		}).revealed(),
		doc("claim.reply.v1", events.ClaimReply{Granted: &events.Grant{
			Version: 7, Step: "update-record", Tool: storyAnswered().Tool, Arguments: storyAnswered().Arguments, Action: storyAnswered().Action(),
			Fence: 1187, Until: storyTime(24),
		}}, events.ClaimReply{Refused: &refused}).revealed(),
		doc("effect.report.v1", events.EffectReport{
			Agent: storyAgent, Task: storyTask, Version: 7, Nonce: storyClaim().Nonce, Fence: 1187, Action: storyAnswered().Action(),
			Status: events.EffectDone, Result: storyEffect().Result,
		}).revealed(),
		doc("effect.reply.v1", events.EffectReply{Kind: events.Done}),
		doc("state.request.v1", events.StateRequest{Candidate: "t-42:update-record:1"}),
		doc("state.reply.v1", events.StateReply{View: new(storyView())}).revealed(),
		doc("question.reply.v1", events.QuestionReply{Question: new(storyShown(events.PhaseAsk)), Pause: storyPauseView(), Kind: events.Released, Current: 7}),
		doc("list.request.v1", events.ListRequest{Agent: storyAgent, Waiting: true}),
		doc("list.reply.v1", events.ListReply{Items: []events.ListItem{{
			Agent: storyAgent, Task: storyTask, Version: 7, Kind: events.Released, Step: "update-record", Tool: "crm.update_record", At: storyTime(21),
			Pause: storyPauseView(),
		}}}),
		doc("operator.request.v1", events.OperatorRequest{Agent: storyAgent, Task: storyTask, Version: 7, By: "luis", Reason: "Called off by phone."}),
		doc("operator.reply.v1", events.OperatorReply{View: new(storyView())}),
		doc("health.reply.v1", events.Health{
			Instance: "b1", Started: storyTime(0), Policy: storyPolicy(), Server: "2.15.3", Sync: "always", Waiting: 3, Tasks: 41,
		}),
	}
}

func smallestCandidate() events.Candidate {
	return events.Candidate{
		Agent: storyAgent, Task: "t-43", Version: 1, Step: "search", Tool: events.Tool{Name: "crm.search"},
		Arguments: events.Arguments{"query": events.SecretOf("Juan")},
	}
}

func storyCancel() events.Answer {
	a := storyAnswer()
	a.Values, a.Cancel, a.Note = nil, true, "I will call them first."
	return a
}

func storyTyped() events.Answer {
	a := storyAnswer()
	a.Values = []events.Given{{Field: "amount", Value: events.NewSecret(events.Raw("9007199254740993"))}}
	return a
}
