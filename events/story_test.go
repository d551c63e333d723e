package events_test

import (
	"slices"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// The story that examples and golden events tell: an agent is about to change a phone number and does not know which of
// three people called Juan is meant. Ana asked for it, and Ana answers.

const (
	storyAgent    = events.Agent("crm-bot")
	storyTask     = events.Task("t-42")
	storyQuestion = events.QuestionID("01JDZ4V8M9Q2W3E4R5T6Y7V8X9")
	storyClick    = events.SubmissionID("01JDZ4VBXK7N3M2P5Q8R9S0T1V")
)

func storyTime(minute int) time.Time { return time.Date(2026, 12, 1, 14, minute, 0, 0, time.UTC) }

func storyCandidate() events.Candidate {
	juan := func(id, label string) events.Alternative {
		return events.Alternative{Arguments: events.Arguments{"customer_id": events.SecretOf(id)}, Label: label, Weight: 1}
	}
	return events.Candidate{
		Agent: storyAgent, Task: storyTask, ID: "t-42:update-record:1", Version: 7, Step: "update-record",
		Tool: events.Tool{
			Name: "crm.update_record", Server: "mcp://crm",
			Annotations: &events.Annotations{ReadOnly: new(false), Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)},
			InputSchema: events.Raw(`{"type":"object","properties":{"customer_id":{"type":"string"}},"required":["customer_id"]}`),
		},
		Arguments: events.Arguments{"name": events.SecretOf("Juan"), "phone": events.SecretOf("+34 600 000 000")},
		Evidence: events.Evidence{
			Provenance: map[string]events.Provenance{"phone": {From: events.FromUser}, "name": {From: events.FromUser}},
			Missing:    []events.Missing{{Field: "customer_id", Question: "Which Juan should be updated?"}},
			Candidates: []events.Alternative{juan("c-101", "Juan Pérez, Lima"), juan("c-207", "Juan Gómez, Quito"), juan("c-311", "Juan Ruiz, Madrid")},
			State:      map[string]events.Secret{"record.status": events.SecretOf("active")},
		},
		Setting: events.Setting{
			Requester: &events.Requester{ID: "ana", Name: "Ana"},
			Context:   "The customer asked to change their phone number.",
			Attended:  new(true), Lang: "es",
		},
	}
}

func storyAnswered() events.Candidate {
	c := storyCandidate()
	c.Arguments["customer_id"] = events.SecretOf("c-311")
	c.Provenance["customer_id"] = events.Provenance{From: events.FromUser}
	c.Missing, c.Candidates = nil, nil
	return c
}

func storyPolicy() events.PolicyRef {
	return events.PolicyRef{Name: "crm", Version: "3", Digest: "sha256:" + "9f2c7d5be0a1346889bcdef0123456789f2c7d5be0a1346889bcdef012345678"}
}

func storyBasis(rule, reason string, c events.Candidate) events.Basis {
	return events.Basis{Rule: rule, Reason: reason, Policy: storyPolicy(), Action: c.Action(), Traits: events.Traits{Consequence: "high", Reversible: true, Idempotent: true}}
}

func storyPlan() events.Plan {
	return events.Plan{
		Route: []events.RouteStep{
			{Targets: []events.RouteTarget{{Channel: "slack", Who: "requester"}}},
			{Targets: []events.RouteTarget{{Channel: "email", Who: "requester"}}, After: events.Duration(10 * time.Minute)},
		},
		Deadline: events.Duration(30 * time.Minute), Cap: events.Duration(24 * time.Hour), Remind: events.Duration(15 * time.Minute),
		AfterDeadline: events.DeadlineStop,
	}
}

func storyField() events.Field {
	return events.Field{
		Name: "customer_id", Role: events.RoleIdentity, Prompt: "¿Qué Juan hay que actualizar?",
		Options: []events.Option{
			{ID: "o1", Label: "Juan Pérez, Lima", Value: events.SecretOf("c-101")},
			{ID: "o2", Label: "Juan Gómez, Quito", Value: events.SecretOf("c-207")},
			{ID: "o3", Label: "Juan Ruiz, Madrid", Value: events.SecretOf("c-311")},
			{ID: events.NoneOfThese, Label: "Ninguno de estos"},
		},
		Changes: "objective", Sources: []string{"required", "declared", "candidates"},
	}
}

func storyResponder() events.Responder {
	return events.Responder{Person: "ana", Channel: "slack", Subject: "T0H2:U061F7AUR", Name: "Ana", Assurance: events.Platform}
}

func storyDelivery() events.Delivery {
	return events.Delivery{
		ID: "01JDZ4V8M9Q2W3E4R5T6Y7V8X9-0-slack-ana", Target: events.RouteTarget{Channel: "slack", Who: "requester"},
		To: []events.Person{{ID: "ana", Name: "Ana", Addresses: map[string]string{"slack": "U061F7AUR"}}},
		Receipt: events.Receipt{
			State: events.ReachAccepted, Attempt: 1, Seq: 1, ProviderID: "1764597720.000200", At: storyTime(2),
			Ref: map[string]string{"channel": "D024BE91L", "ts": "1764597720.000200"},
		},
	}
}

func storyPause() *events.Pause {
	return &events.Pause{
		Question: storyQuestion, Kind: events.Clarification, Version: 7, Step: "update-record", Status: events.PauseWaiting,
		Fields: []events.Field{storyField()}, Responders: []string{"ana"}, Action: storyCandidate().Action(),
		Clock:      events.Clock{Opened: storyTime(1), Cap: storyTime(1).Add(24 * time.Hour)},
		Delivering: events.Delivering{Plan: storyPlan(), Next: 1, Stepped: storyTime(1)},
	}
}

func storyAsk() events.State {
	c := storyCandidate()
	return events.State{
		Agent: storyAgent, Task: storyTask, Version: 7, Kind: events.Asked, At: storyTime(1), Cause: c.ID,
		Candidate: c, Content: c.Content(),
		Decision: events.Decided{Decision: events.Ask{
			Why:    storyBasis("identity-open", "More than one record matches and the choice changes who is affected.", c),
			Fields: []events.Field{storyField()}, Plan: storyPlan(),
		}},
		Pause: storyPause(), Asks: events.Asks{Total: 1, Consecutive: 1, PerField: map[string]int{"customer_id": 1}},
	}
}

func storyRelease() events.State {
	s, c := storyAsk(), storyAnswered()
	s.Kind, s.At, s.Cause, s.Candidate = events.Released, storyTime(21), string(storyClick), c
	s.Decision = events.Decided{Decision: events.Proceed{Why: storyBasis("reversible-update", "The record is named and the change can be undone.", c)}}
	s.Pause.Status, s.Pause.Ended, s.Pause.Reached, s.Pause.Deadline = events.PauseAnswered, storyTime(21), storyTime(2), storyTime(32)
	s.Pause.Fields[0].Outcome = events.FieldAnswered
	s.Pause.Deliveries = []events.Delivery{storyDelivery()}
	s.Accepted = []events.Accepted{{
		Version: 7, Question: storyQuestion, Kind: events.Clarification, Submission: storyClick, Responder: storyResponder(),
		Values: []events.Given{{Field: "customer_id", Option: "o3", Value: events.SecretOf("c-311")}}, At: storyTime(21),
	}}
	s.Release = &events.Release{Version: 7, Action: c.Action(), From: events.FromAnswer, Basis: 7, At: storyTime(21)}
	return s
}

func storyApproval() events.State {
	s, c := storyAsk(), storyAnswered()
	s.Candidate, s.Version = c, 8
	s.Decision = events.Decided{Decision: events.Approve{
		Why: storyBasis("two-people", "A change of contact data needs a second person.", c), From: []string{"role:crm-lead"}, Plan: storyPlan(),
	}}
	s.Pause.Kind, s.Pause.Version, s.Pause.Fields, s.Pause.Responders, s.Pause.Action = events.Approval, 8, nil, []string{"luis"}, c.Action()
	return s
}

func storyEscalation() events.State {
	s, c := storyAsk(), storyCandidate()
	s.Decision = events.Decided{Decision: events.Escalate{
		Why: storyBasis("asked-enough", "The same datum was asked for three times.", c), To: "role:crm-lead", Fields: []events.Field{storyField()}, Plan: storyPlan(),
	}}
	s.Pause.Kind, s.Pause.Responders = events.Escalation, []string{"luis"}
	return s
}

func storyClaim() *events.Claim {
	return &events.Claim{Nonce: "01JDZ4VD0M1N2P3Q4R5S6T7V8W", Worker: "worker-3", Fence: 1187, Until: storyTime(24), Count: 1}
}

func storyEffect() *events.Effect {
	return &events.Effect{Status: events.EffectDone, Action: storyAnswered().Action(), Fence: 1187, Result: events.SecretOf(map[string]any{"updated": 1}), At: storyTime(22)}
}

// storyState is the state with which the log would hold a transition of this kind.
func storyState(k events.Kind) events.State {
	waiting := []events.Kind{events.Asked, events.Reached, events.Rerouted, events.Reminded, events.Overdue}
	ended := map[events.Kind]events.PauseStatus{
		events.Cancelled: events.PauseCancelled, events.TimedOut: events.PauseTimedOut, events.Undelivered: events.PauseUndelivered,
		events.Superseded: events.PauseSuperseded, events.Answered: events.PauseAnswered,
	}
	var s events.State
	switch {
	case k == events.ApprovalAsked || k == events.Denied:
		s = storyApproval()
	case k == events.Escalated:
		s = storyEscalation()
	case slices.Contains(waiting, k) || ended[k] != "":
		s = storyAsk()
	default:
		s = storyRelease()
	}
	s.Kind = k
	if status := ended[k]; status != "" {
		s.Pause.Status, s.Pause.Ended = status, storyTime(40)
	}
	storyEnd(&s)
	return s
}

func storyEnd(s *events.State) {
	c := s.Candidate
	switch s.Kind {
	case events.Denied, events.Cancelled:
		s.By, s.Note = "luis", "Not today."
	case events.Stopped:
		s.Decision.Decision, s.Release = events.Stop{Why: storyBasis("frozen-records", "Records under review are not changed.", c)}, nil
	case events.Conflicted:
		s.Decision.Decision, s.Release = events.Reconcile{Why: storyBasis("record-closed", "The record was closed meanwhile.", c)}, nil
	case events.Claimed, events.InDoubt:
		s.Claim = storyClaim()
	case events.Done, events.Failed, events.Reconciled:
		s.Claim, s.Effect = storyClaim(), storyEffect()
	}
	if s.Kind == events.Failed {
		s.Effect.Status, s.Effect.Result, s.Effect.Error = events.EffectFailed, events.Secret{}, "record_locked"
	}
	if s.Kind == events.Reconciled {
		s.Effect.By = "luis"
	}
}
