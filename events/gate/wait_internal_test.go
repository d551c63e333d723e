package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

var deadline = time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)

func viewed(kind events.Kind) events.View {
	v := events.View{
		Agent: "crm-bot", Task: "t-42", Version: 7, Kind: kind, Candidate: "c1",
		Why: events.Basis{Rule: "r1", Reason: "Because."},
	}
	v.By, v.Note = "ana", "a note"
	v.Pause = &events.PauseView{Question: "01K9", Kind: events.Clarification, Version: 7, Status: events.PauseWaiting, Deadline: deadline}
	if kind == events.Released {
		v.Release = &events.Release{Version: 7, Action: "sha256:00"}
	}
	return v
}

func TestJudge_every_kind(t *testing.T) {
	c := Case{Task: "t-42", Version: 7, Question: "01K9", Rule: "r1", Reason: "Because.", By: "ana", Note: "a note"}
	wait := func() (stage, error) { return undecided, nil }
	end := func(err error) func() (stage, error) { return func() (stage, error) { return 0, err } }
	want := map[events.Kind]func() (stage, error){
		events.Asked: wait, events.ApprovalAsked: wait, events.Escalated: wait, events.Reached: wait, events.Rerouted: wait,
		events.Reminded: wait, events.Overdue: wait, events.Answered: wait,
		events.Released: func() (stage, error) { return released, nil }, events.Claimed: func() (stage, error) { return claimed, nil },
		events.Done: func() (stage, error) { return reported, nil }, events.Failed: func() (stage, error) { return reported, nil },
		events.Reconciled: func() (stage, error) { return reported, nil },
		events.Stopped:    end(&Stopped{c}), events.Conflicted: end(&Conflict{c}), events.Denied: end(&Denied{c}),
		events.Cancelled: end(&Cancelled{c}), events.TimedOut: end(&TimedOut{Case: c, Deadline: deadline}),
		events.Undelivered: end(&Undelivered{c}), events.Superseded: end(&Superseded{c}), events.InDoubt: end(&InDoubt{Case: c}),
	}
	for _, kind := range events.Kinds() {
		expect, ok := want[kind]
		if !ok {
			t.Errorf("%s: no expectation, and a kind without one must not release", kind)
			continue
		}
		v := viewed(kind)
		got, err := judge(events.StateReply{View: &v}, Ticket{Task: "t-42", Candidate: "c1", Version: 7})
		wantStage, wantErr := expect()
		if diff := cmp.Diff(wantErr, err); got != wantStage || diff != "" {
			t.Errorf("%s: got stage %d, want %d; %s", kind, got, wantStage, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	other := viewed(events.Released)
	other.Candidate = "c2"
	unknown, bare, lookup := viewed("granted"), viewed(events.Released), viewed(events.Asked)
	bare.Release = nil
	lookup.Lookup, lookup.Pause.Fields = "crm.search", []events.Field{{Name: "customer_id"}}
	for name, tt := range map[string]struct {
		reply   events.StateReply
		version events.Version
		stage   stage
		err     string
	}{
		"nothing_known_yet":       {stage: undecided, version: 7},
		"log_not_there_yet":       {reply: events.StateReply{View: &other}, version: 8, stage: undecided},
		"newer_candidate":         {reply: events.StateReply{View: &other}, version: 7, err: "*gate.Superseded"},
		"candidate_refused":       {reply: events.StateReply{Refused: &events.Refusal{Of: "candidate", Reason: events.Busy}}, version: 7, err: "*gate.Refused"},
		"unknown_kind":            {reply: events.StateReply{View: &unknown}, version: 7, err: "*errors.errorString"},
		"released_without_digest": {reply: events.StateReply{View: &bare}, version: 7, err: "*errors.errorString"},
		"lookup":                  {reply: events.StateReply{View: &lookup}, version: 7, err: "*gate.LookUp"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := judge(tt.reply, Ticket{Task: "t-42", Candidate: "c1", Version: tt.version})
			if kind := fmt.Sprintf("%T", err); got != tt.stage || (err != nil || tt.err != "") && kind != tt.err {
				t.Errorf("got stage %d and %s, want %d and %s", got, kind, tt.stage, tt.err)
			}
		})
	}
}

func TestStillWaiting_tells_clarification_approval_and_escalation_apart(t *testing.T) {
	for kind, want := range map[events.PauseKind]string{
		events.Clarification: "*gate.Waiting clarification", events.Approval: "*gate.Waiting approval", events.Escalation: "*gate.Escalated ",
	} {
		v := viewed(events.Reached)
		v.Pause.Kind = kind
		err := stillWaiting(v, Ticket{}, nil)
		got := fmt.Sprintf("%T ", err)
		if w, ok := err.(*Waiting); ok {
			got += string(w.Kind)
		}
		if got != want {
			t.Errorf("%s: got %s", kind, got)
		}
	}
}

func TestRecorded(t *testing.T) {
	v := viewed(events.Done)
	if _, err := recorded(v); err == nil {
		t.Error("a state without an outcome was taken for one")
	}
	for _, status := range []events.EffectStatus{events.EffectRunning, "", "finished"} {
		v.Effect = &events.Effect{Status: status}
		if _, err := recorded(v); err == nil {
			t.Errorf("status %q was taken for an outcome", status)
		}
	}
}

func TestPace_grows_and_keeps_its_bounds(t *testing.T) {
	p := newPace(time.Second, 30*time.Second)
	for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		mid := time.Duration(seconds) * time.Second
		if d := p.delay(); d < mid*4/5 || d > mid*6/5 {
			t.Errorf("delay %s is not within a fifth of %s", d, mid)
		}
	}
}

func TestErrors_keep_the_context(t *testing.T) {
	for _, err := range []error{&Waiting{cause: context.DeadlineExceeded}, &Escalated{cause: context.DeadlineExceeded}} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T hides the context's error", err)
		}
	}
}
