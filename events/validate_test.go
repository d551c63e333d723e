package events_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

type validated interface{ Validate() error }

// changed is a value of the story with one thing wrong.
func changed[T validated](v T, f func(*T)) validated {
	f(&v)
	return v
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 4097)
	candidate := func(f func(*events.Candidate)) validated { return changed(storyCandidate(), f) }
	answer := func(f func(*events.Answer)) validated { return changed(storyAnswer(), f) }
	approval := func(f func(*events.ApprovalAnswer)) validated { return changed(storyApproved(), f) }
	cancel := func(f func(*events.CancelRequest)) validated {
		return changed(events.CancelRequest{Agent: "a", Task: "t", Version: 1}, f)
	}
	report := func(f func(*events.DeliveryReport)) validated {
		return changed(storyEvents()["delivery.reported.v1"].(events.DeliveryReport), f)
	}
	for name, test := range map[string]struct {
		value validated
		field string // "" if it is fine
	}{
		"candidate":                    {candidate(func(*events.Candidate) {}), ""},
		"candidate/least":              {smallestCandidate(), ""},
		"candidate/agent":              {candidate(func(c *events.Candidate) { c.Agent = "a.b" }), "agent"},
		"candidate/task":               {candidate(func(c *events.Candidate) { c.Task = ">" }), "task"},
		"candidate/version":            {candidate(func(c *events.Candidate) { c.Version = 0 }), "version"},
		"candidate/step":               {candidate(func(c *events.Candidate) { c.Step = "" }), "step"},
		"candidate/long_step":          {candidate(func(c *events.Candidate) { c.Step = strings.Repeat("é", 129) }), "step"},
		"candidate/longest_step":       {candidate(func(c *events.Candidate) { c.Step = strings.Repeat("é", 128) }), ""},
		"candidate/broken_step":        {candidate(func(c *events.Candidate) { c.Step = "\xff" }), "step"},
		"candidate/long_id":            {candidate(func(c *events.Candidate) { c.ID = long }), "id"},
		"candidate/tool":               {candidate(func(c *events.Candidate) { c.Tool.Name = "" }), "tool.name"},
		"candidate/long_tool":          {candidate(func(c *events.Candidate) { c.Tool.Name = long }), "tool.name"},
		"candidate/long_server":        {candidate(func(c *events.Candidate) { c.Tool.Server = long }), "tool.server"},
		"candidate/schema":             {candidate(func(c *events.Candidate) { c.Tool.InputSchema = events.Raw("{") }), "tool.input_schema"},
		"candidate/no_arguments":       {candidate(func(c *events.Candidate) { c.Arguments = nil }), "arguments"},
		"candidate/empty_arguments":    {candidate(func(c *events.Candidate) { c.Arguments = events.Arguments{} }), ""},
		"candidate/broken_argument":    {candidate(func(c *events.Candidate) { c.Arguments["x"] = events.NewSecret(events.Raw("{" + canary)) }), "arguments"},
		"candidate/argument_twice":     {candidate(func(c *events.Candidate) { c.Arguments["x"] = events.NewSecret(events.Raw(`{"a":1,"a":2}`)) }), "arguments"},
		"candidate/broken_name":        {candidate(func(c *events.Candidate) { c.Arguments["\xff"] = events.SecretOf(1) }), "arguments"},
		"candidate/broken_fact":        {candidate(func(c *events.Candidate) { c.State["x"] = events.NewSecret(events.Raw(canary)) }), "state"},
		"candidate/context":            {candidate(func(c *events.Candidate) { c.Context = long }), "context"},
		"candidate/lang":               {candidate(func(c *events.Candidate) { c.Lang = long }), "lang"},
		"candidate/missing":            {candidate(func(c *events.Candidate) { c.Missing[0].Field = "" }), "missing"},
		"candidate/long_missing":       {candidate(func(c *events.Candidate) { c.Missing[0].Question = long }), "missing"},
		"candidate/origin":             {candidate(func(c *events.Candidate) { c.Provenance["phone"] = events.Provenance{From: canary} }), "provenance"},
		"candidate/no_alternative":     {candidate(func(c *events.Candidate) { c.Candidates[0].Arguments = nil }), "candidates"},
		"candidate/broken_alternative": {candidate(func(c *events.Candidate) { c.Candidates[0].Arguments["x"] = events.NewSecret(events.Raw(canary)) }), "candidates"},
		"candidate/long_label":         {candidate(func(c *events.Candidate) { c.Candidates[0].Label = long }), "candidates"},
		"candidate/negative_weight":    {candidate(func(c *events.Candidate) { c.Candidates[0].Weight = -1 }), "candidates"},
		"cancel":                       {cancel(func(*events.CancelRequest) {}), ""},
		"cancel/agent":                 {cancel(func(c *events.CancelRequest) { c.Agent = "" }), "agent"},
		"cancel/task":                  {cancel(func(c *events.CancelRequest) { c.Task = "" }), "task"},
		"cancel/version":               {cancel(func(c *events.CancelRequest) { c.Version = 0 }), "version"},
		"cancel/reason":                {cancel(func(c *events.CancelRequest) { c.Reason = long }), "reason"},
		"answer":                       {answer(func(*events.Answer) {}), ""},
		"answer/cancel":                {storyCancel(), ""},
		"answer/agent":                 {answer(func(a *events.Answer) { a.Agent = "*" }), "agent"},
		"answer/task":                  {answer(func(a *events.Answer) { a.Task = "a b" }), "task"},
		"answer/version":               {answer(func(a *events.Answer) { a.Version = 0 }), "version"},
		"answer/submission":            {answer(func(a *events.Answer) { a.Submission = "t:7" }), "submission"},
		"answer/too_many":              {answer(func(a *events.Answer) { a.Values = make([]events.Given, 4) }), "values"},
		"answer/no_field":              {answer(func(a *events.Answer) { a.Values[0].Field = "" }), "values"},
		"answer/neither":               {answer(func(a *events.Answer) { a.Values[0].Option = "" }), "values"},
		"answer/both":                  {answer(func(a *events.Answer) { a.Values[0].Value = events.SecretOf(canary) }), "values"},
		"answer/null_is_a_value":       {answer(func(a *events.Answer) { a.Values[0] = events.Given{Field: "f", Value: events.SecretOf(nil)} }), ""},
		"answer/handover":              {answer(func(a *events.Answer) { a.Handover = "approve" }), "handover"},
		"answer/hand_back":             {answer(func(a *events.Answer) { a.Handover = events.HandBack }), ""},
		"answer/note":                  {answer(func(a *events.Answer) { a.Note = long }), "note"},
		"approval":                     {approval(func(*events.ApprovalAnswer) {}), ""},
		"approval/denied":              {approval(func(a *events.ApprovalAnswer) { a.Verdict = events.NotGranted }), ""},
		"approval/nothing_said":        {approval(func(a *events.ApprovalAnswer) { a.Verdict = "" }), "verdict"},
		"approval/yes":                 {approval(func(a *events.ApprovalAnswer) { a.Verdict = "yes" }), "verdict"},
		"approval/no_action":           {approval(func(a *events.ApprovalAnswer) { a.Action = "" }), "action"},
		"approval/submission":          {approval(func(a *events.ApprovalAnswer) { a.Submission = "" }), "submission"},
		"approval/note":                {approval(func(a *events.ApprovalAnswer) { a.Note = long }), "note"},
		"report":                       {report(func(*events.DeliveryReport) {}), ""},
		"report/nothing_said":          {report(func(r *events.DeliveryReport) { r.Receipt.State = "" }), "receipt.state"},
		"report/unknown":               {report(func(r *events.DeliveryReport) { r.Receipt.State = "sent" }), "receipt.state"},
		"report/accepted_by_whom":      {report(func(r *events.DeliveryReport) { r.Receipt.ProviderID = "" }), "receipt.provider_id"},
		"report/undelivered_by_nobody": {report(func(r *events.DeliveryReport) { r.Receipt = events.Receipt{State: events.NotDelivered} }), ""},
		"report/delivery":              {report(func(r *events.DeliveryReport) { r.Delivery = "" }), "delivery"},
		"report/long_delivery":         {report(func(r *events.DeliveryReport) { r.Delivery = long }), "delivery"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.value.Validate()
			if test.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			inv, ok := errors.AsType[*events.Invalid](err)
			if !ok || inv.Field != test.field || inv.Fix == "" {
				t.Fatalf("got %v, want it to blame %s", err, test.field)
			}
			if strings.Contains(err.Error(), long) || strings.Contains(err.Error(), canary) {
				t.Errorf("quotes a value: %.200s", err)
			}
		})
	}
}

// TestCandidateFromGo: what a Go program puts together by hand is refused or has a digest; nothing panics.
func TestCandidateFromGo(t *testing.T) {
	c := storyCandidate()
	c.Arguments["result"] = events.SecretOf("broken \xff text")
	c.Missing[0].Question, c.Tool.Description = "\xff", "\xff"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if got := c.Arguments["result"].RevealString(); got != "broken \ufffd text" {
		t.Errorf("got %q", got)
	}
	if c.Content() == storyCandidate().Content() || c.Action() == storyCandidate().Action() {
		t.Error("another candidate's digests")
	}
}

// TestUnattended: only an agent that says so is unattended.
func TestUnattended(t *testing.T) {
	got := []bool{events.Setting{}.Unattended(), events.Setting{Attended: new(true)}.Unattended(), events.Setting{Attended: new(false)}.Unattended()}
	if diff := cmp.Diff([]bool{false, false, true}, got); diff != "" {
		t.Error(diff)
	}
}

// TestKindOf is of each decision; what is none has no kind.
func TestKindOf(t *testing.T) {
	all := map[events.DecisionKind]events.Decision{
		events.KindAsk: events.Ask{}, events.KindProceed: events.Proceed{}, events.KindApprove: events.Approve{},
		events.KindStop: events.Stop{}, events.KindEscalate: events.Escalate{}, events.KindReconcile: events.Reconcile{},
	}
	for want, d := range all {
		if got := events.KindOf(d); got != want {
			t.Errorf("%T is %s", d, got)
		}
	}
	if _, ok := any(events.Decided{}).(events.Decision); ok {
		t.Error("what holds a decision is one")
	}
	defer func() {
		if recover() == nil {
			t.Error("no decision has a kind")
		}
	}()
	events.KindOf(nil)
}
