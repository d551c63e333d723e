package channels_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

func answer(id events.SubmissionID) events.Answer {
	return events.Answer{
		Agent: "crm-bot", Task: "t-42", Version: 7, Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Submission: id,
		Responder: events.Responder{Channel: "elsewhere", Subject: "U1", Assurance: events.Platform}, Values: []events.Given{{Field: "customer_id", Option: "c-207"}},
	}
}

func accept(s channeltest.Submitted) *events.Verdict { return s.Verdict() }

func startDesk(t *testing.T, b *bus.Bus) *channels.Desk {
	t.Helper()
	d := channels.NewDesk(b, "chat", 0)
	channeltest.Background(t, d.Run)
	return d
}

func TestDesk(t *testing.T) {
	t.Run("returns_the_verdict", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{Verdict: accept})
		got, err := startDesk(t, b).Submit(t.Context(), answer("s-1"))
		if err != nil || !got.Accepted || got.Submission != "s-1" {
			t.Fatalf("got %+v, %v", got, err)
		}
		a := channeltest.Next(t, br.Answers).Envelope.Data.(events.Answer)
		if a.Responder.Channel != "chat" || a.ReceivedAt.IsZero() {
			t.Errorf("published %+v", a)
		}
	}))
	t.Run("an_approval_goes_to_its_own_subject", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{Verdict: accept})
		a := answer("s-1")
		got, err := startDesk(t, b).SubmitApproval(t.Context(), events.ApprovalAnswer{
			Agent: a.Agent, Task: a.Task, Version: a.Version,
			Question: a.Question, Submission: a.Submission, Responder: a.Responder, Verdict: events.Granted, Action: "sha256:00",
		})
		if m := channeltest.Next(t, br.Answers); err != nil || !got.Accepted || m.Subject.Family != "approval" {
			t.Fatalf("got %+v, %v on %s", got, err, m.Subject.Family)
		}
	}))
	t.Run("a_refusal_is_a_verdict", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{Verdict: func(s channeltest.Submitted) *events.Verdict { return s.Refuse(events.NotAnOption) }})
		got, err := startDesk(t, b).Submit(t.Context(), answer("s-1"))
		if err != nil || got.Accepted || got.Refusal.Reason != events.NotAnOption || !got.Open {
			t.Fatalf("got %+v, %v", got, err)
		}
	}))
	t.Run("each_gets_their_own", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{Verdict: accept})
		d := startDesk(t, b)
		var all sync.WaitGroup
		for _, id := range []events.SubmissionID{"s-1", "s-2", "s-3", "s-3"} {
			all.Go(func() {
				if got, err := d.Submit(t.Context(), answer(id)); err != nil || got.Submission != id {
					t.Errorf("%s: got %+v, %v", id, got, err)
				}
			})
		}
		all.Wait()
	}))
	t.Run("another_task's_verdict_is_not_taken", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{Verdict: func(s channeltest.Submitted) *events.Verdict {
			other := s.Verdict()
			other.Task = "t-43"
			return other
		}})
		if _, err := startDesk(t, b).Submit(t.Context(), answer("s-1")); !errors.Is(err, channels.ErrPending) {
			t.Fatalf("got %v", err)
		}
	}))
	t.Run("a_verdict_that_was_not_heard_is_asked_for", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{State: func(r events.StateRequest) events.QuestionReply {
			return events.QuestionReply{Verdict: &events.Verdict{Agent: "crm-bot", Task: "t-42", Version: r.Version, Submission: r.Submission, Accepted: true}}
		}})
		if got, err := startDesk(t, b).Submit(t.Context(), answer("s-1")); err != nil || !got.Accepted {
			t.Fatalf("got %+v, %v", got, err)
		}
	}))
	t.Run("another_submission's_verdict_is_not_taken", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{State: func(r events.StateRequest) events.QuestionReply {
			return events.QuestionReply{Verdict: &events.Verdict{Agent: "crm-bot", Task: "t-42", Version: r.Version, Submission: "s-2", Accepted: true}}
		}})
		if _, err := startDesk(t, b).Submit(t.Context(), answer("s-1")); !errors.Is(err, channels.ErrPending) {
			t.Fatalf("got %v", err)
		}
	}))
	t.Run("without_a_verdict_it_is_pending_and_stored", bubbleAlone(func(t *testing.T, b *bus.Bus) {
		got, err := startDesk(t, b).Submit(t.Context(), answer("s-1"))
		if !errors.Is(err, channels.ErrPending) || got != (events.Verdict{}) {
			t.Fatalf("got %+v, %v", got, err)
		}
		stored(t, b)
	}))
	t.Run("who_leaves_early_is_told_pending", bubbleAlone(func(t *testing.T, b *bus.Bus) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := startDesk(t, b).Submit(ctx, answer("s-1")); !errors.Is(err, channels.ErrPending) {
			t.Fatalf("got %v", err)
		}
		stored(t, b)
	}))
	t.Run("what_is_no_answer_is_not_stored", bubbleAlone(func(t *testing.T, b *bus.Bus) {
		bad := answer("s-1")
		bad.Values = []events.Given{{Field: "customer_id"}}
		_, err := startDesk(t, b).Submit(t.Context(), bad)
		if _, ok := errors.AsType[*events.Invalid](err); !ok {
			t.Fatalf("got %v", err)
		}
		if _, err := b.Last(t.Context(), bus.Answers, string(b.Space())+".answer.>"); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}))
}

func stored(t *testing.T, b *bus.Bus) {
	t.Helper()
	m, err := b.Last(t.Context(), bus.Answers, string(b.Space())+".answer.>")
	if err != nil || m.Envelope.Data.(events.Answer).Submission != "s-1" {
		t.Errorf("stored %+v, %v", m.Envelope.Data, err)
	}
}

func TestDeskLooks(t *testing.T) {
	t.Run("on_its_own_channel", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		var version atomic.Uint64
		br.Says(channeltest.Script{State: func(r events.StateRequest) events.QuestionReply {
			version.Store(uint64(r.Version))
			return events.QuestionReply{Current: 9}
		}})
		got, err := channels.NewDesk(b, "chat", 0).Look(t.Context(), events.Place{Channel: "mail", Agent: "crm-bot", Task: "t-42", Version: 7})
		if err != nil || got.Current != 9 || version.Load() != 7 {
			t.Fatalf("got %+v, %v, asked for %d", got, err, version.Load())
		}
	}))
	t.Run("nobody_there", bubbleAlone(func(t *testing.T, b *bus.Bus) {
		if _, err := channels.NewDesk(b, "chat", 0).Look(t.Context(), events.Place{Agent: "crm-bot", Task: "t-42", Version: 7}); !errors.Is(err, bus.ErrNobody) {
			t.Fatalf("got %v", err)
		}
	}))
}
