package channels_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats.go/jetstream"
)

// emptied fails the test unless the stream of questions has nothing left: every question was acknowledged.
func emptied(t *testing.T, b *bus.Bus) {
	t.Helper()
	synctest.Wait()
	if m, err := b.Last(t.Context(), bus.Questions, string(b.Space())+".question.>"); err == nil {
		t.Errorf("question of %s is not acknowledged", m.Subject.Task)
	}
}

func states(reports chan events.DeliveryReport) []events.Reach {
	var got []events.Reach
	for len(reports) > 0 {
		got = append(got, (<-reports).Receipt.State)
	}
	return got
}

func same(t *testing.T, got []events.Reach, want ...events.Reach) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("reported %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("reported %v, want %v", got, want)
		}
	}
}

func TestCourier(t *testing.T) {
	t.Run("accepted_is_reported_and_acknowledged", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){accepted("m-1")}}
		startCourier(t, b, p)
		ask(t, b, question())
		got := channeltest.Next(t, br.Reports)
		if got.Receipt.State != events.ReachAccepted || got.Receipt.ProviderID != "m-1" || got.Delivery != "01K9-7-ana" || got.Receipt.Seq == 0 || got.Receipt.Attempt != 1 {
			t.Errorf("reported %+v", got)
		}
		emptied(t, b)
	}))
	t.Run("transient_comes_again_after_the_backoff_and_says_so_once", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		busy := failing(channels.Fault(channels.Transient, "provider_5xx", errBroken))
		p := &provider{script: []func(events.Question) (events.Receipt, error){busy, busy, accepted("m-1")}}
		startCourier(t, b, p)
		ask(t, b, question())
		first, second := channeltest.Next(t, br.Reports), channeltest.Next(t, br.Reports)
		if first.Receipt.State != events.Attempted || first.Receipt.Code != "provider_5xx" || second.Receipt.State != events.ReachAccepted {
			t.Errorf("reported %+v, %+v", first.Receipt, second.Receipt)
		}
		if second.Receipt.Seq <= first.Receipt.Seq || second.Receipt.Attempt != 3 {
			t.Errorf("the later receipt is no later: %+v, %+v", first.Receipt, second.Receipt)
		}
		waited(t, p, 5*time.Second, 20*time.Second)
		if p.keys[0] != p.keys[2] {
			t.Errorf("the idempotency key changed: %v", p.keys)
		}
		emptied(t, b)
	}))
	t.Run("another_failure_is_reported_again", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){
			failing(channels.Fault(channels.Transient, "provider_5xx", nil)),
			failing(channels.Fault(channels.Transient, "rate_limited", nil)), accepted("m-1"),
		}}
		startCourier(t, b, p)
		ask(t, b, question())
		time.Sleep(10 * time.Minute)
		same(t, states(br.Reports), events.Attempted, events.Held, events.ReachAccepted)
	}))
	t.Run("time_up_is_undelivered", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Transient, "provider_5xx", nil))}}
		startCourier(t, b, p)
		q := question()
		q.Content.NotAfter = time.Now().Add(time.Minute)
		ask(t, b, q)
		time.Sleep(2 * time.Hour)
		same(t, states(br.Reports), events.Attempted, events.NotDelivered)
		attempts := p.times()
		if last := attempts[len(attempts)-1]; last.After(q.Content.NotAfter) || last.Before(q.Content.NotAfter.Add(-11*time.Second)) {
			t.Errorf("the last of %d attempts was at %s, the time is up at %s", len(attempts), last, q.Content.NotAfter)
		}
		emptied(t, b)
	}))
	t.Run("too_late_makes_no_attempt", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){accepted("m-1")}}
		q := question()
		q.Content.NotAfter = time.Now()
		ask(t, b, q)
		startCourier(t, b, p)
		if got := channeltest.Next(t, br.Reports); got.Receipt.State != events.NotDelivered || got.Receipt.Code != channels.CodeDeadline || len(p.times()) != 0 {
			t.Errorf("reported %+v after %d attempts", got.Receipt, len(p.times()))
		}
	}))
	for name, class := range map[string]channels.Class{"permanent": channels.Permanent, "config": channels.Misconfigured, "content": channels.Content} {
		t.Run(name+"_is_undelivered_at_once", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
			p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(class, "gone", nil))}}
			startCourier(t, b, p)
			ask(t, b, question())
			if got := channeltest.Next(t, br.Reports); got.Receipt.State != events.NotDelivered || got.Receipt.Code != "gone" {
				t.Errorf("reported %+v", got.Receipt)
			}
			emptied(t, b)
			if len(p.times()) != 1 {
				t.Errorf("%d attempts", len(p.times()))
			}
		}))
	}
	t.Run("a_success_without_evidence_is_none", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){accepted(""), accepted("m-1")}}
		startCourier(t, b, p)
		ask(t, b, question())
		if got := channeltest.Next(t, br.Reports); got.Receipt.State != events.Attempted || got.Receipt.Code != channels.CodeNoEvidence {
			t.Errorf("reported %+v", got.Receipt)
		}
		if got := channeltest.Next(t, br.Reports); got.Receipt.State != events.ReachAccepted {
			t.Errorf("reported %+v", got.Receipt)
		}
	}))
}

func TestCourierFallsBack(t *testing.T) {
	t.Run("too_large_is_made_compact_once", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Content, "too_long", nil))}}
		startCourier(t, b, compacting{p, func() (events.Receipt, error) { return accepted("m-small")(events.Question{}) }})
		ask(t, b, question())
		if got := channeltest.Next(t, br.Reports); got.Receipt.ProviderID != "m-small" {
			t.Errorf("reported %+v", got.Receipt)
		}
	}))
	t.Run("an_unknown_outcome_is_looked_up", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Ambiguous, "timeout_after_send", nil))}}
		startCourier(t, b, reconciling{p, func() (events.Receipt, error) { return accepted("m-found")(events.Question{}) }})
		ask(t, b, question())
		if got := channeltest.Next(t, br.Reports); got.Receipt.ProviderID != "m-found" {
			t.Errorf("reported %+v", got.Receipt)
		}
		if len(p.times()) != 1 {
			t.Errorf("%d attempts", len(p.times()))
		}
	}))
	t.Run("while_nobody_can_tell_nothing_is_sent_again", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		looks := 0
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Ambiguous, "timeout_after_send", nil)), accepted("m-2")}}
		startCourier(t, b, reconciling{p, func() (events.Receipt, error) {
			if looks++; looks < 3 {
				return events.Receipt{}, channels.Fault(channels.Transient, "provider_5xx", nil)
			}
			return events.Receipt{}, channels.ErrAbsent
		}})
		ask(t, b, question())
		time.Sleep(10 * time.Minute)
		if len(p.times()) != 2 || looks != 3 {
			t.Errorf("%d attempts, %d looks", len(p.times()), looks)
		}
	}))
	t.Run("without_a_broker_the_receipt_is_stored", bubbleAlone(func(t *testing.T, b *bus.Bus) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){accepted("m-1")}}
		startCourier(t, b, p)
		ask(t, b, question())
		time.Sleep(time.Minute)
		m, err := b.Last(t.Context(), bus.Answers, string(b.Space())+".receipt.>")
		if err != nil {
			t.Fatal(err)
		}
		if rep := m.Envelope.Data.(events.DeliveryReport); rep.Receipt.ProviderID != "m-1" || len(p.times()) != 1 {
			t.Errorf("stored %+v after %d attempts", rep.Receipt, len(p.times()))
		}
		emptied(t, b)
	}))
	t.Run("a_receipt_that_cannot_be_stored_is_kept", func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) {
			server := bustest.Server(t, embedded.Options{})
			b := bustest.Open(t, server, bus.Options{})
			apply(t, b)
			deleteAnswers(t, server)
			p := &provider{script: []func(events.Question) (events.Receipt, error){accepted("m-1"), accepted("m-2")}}
			startCourier(t, b, p)
			ask(t, b, question())
			time.Sleep(10 * time.Minute)
			apply(t, b)
			time.Sleep(10 * time.Minute)
			m, err := b.Last(t.Context(), bus.Answers, string(b.Space())+".receipt.>")
			if err != nil {
				t.Fatal(err)
			}
			if rep := m.Envelope.Data.(events.DeliveryReport); rep.Receipt.ProviderID != "m-1" || len(p.times()) != 1 {
				t.Errorf("stored %+v after %d attempts", rep.Receipt, len(p.times()))
			}
		})
	})
	t.Run("a_question_that_ended_meanwhile_is_not_asked", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{State: func(events.StateRequest) events.QuestionReply {
			return events.QuestionReply{Kind: events.Released, Pause: &events.PauseView{Version: 7, Status: events.PauseAnswered}}
		}})
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Transient, "provider_5xx", nil)), accepted("m-1")}}
		startCourier(t, b, p)
		ask(t, b, question())
		time.Sleep(10 * time.Minute)
		if len(p.times()) != 1 {
			t.Errorf("%d attempts", len(p.times()))
		}
		emptied(t, b)
	}))
}

func apply(t *testing.T, b *bus.Bus) {
	t.Helper()
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// deleteAnswers takes away the stream that receipts are stored in.
func deleteAnswers(t *testing.T, server *embedded.Server) {
	t.Helper()
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "CLARIFY_ANSWERS"); err != nil {
		t.Fatal(err)
	}
}

func TestCourierCloses(t *testing.T) {
	closed := func() events.Question {
		q := question()
		q.Phase, q.Closed = events.PhaseClose, &events.Closed{Status: events.PauseAnswered, Kind: events.Released, At: time.Now()}
		return q
	}
	t.Run("copies_are_updated_and_nothing_is_reported", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{updates: make(chan events.Question, 1)}
		startCourier(t, b, updating{p})
		ask(t, b, closed())
		if q := channeltest.Next(t, p.updates); q.Closed == nil {
			t.Error("nothing says what became of it")
		}
		emptied(t, b)
		same(t, states(br.Reports))
	}))
	t.Run("an_adapter_that_cannot_update_is_left_alone", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{}
		startCourier(t, b, p)
		ask(t, b, closed())
		time.Sleep(time.Second)
		emptied(t, b)
	}))
	t.Run("a_copy_that_arrives_after_the_end_is_updated", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		br.Says(channeltest.Script{
			Report: func(events.DeliveryReport) events.EffectReply { return events.EffectReply{Kind: events.Released} },
			State: func(events.StateRequest) events.QuestionReply {
				return events.QuestionReply{Kind: events.Released, Pause: &events.PauseView{Version: 7, Status: events.PauseAnswered, AnsweredBy: &events.Responder{Name: "Ana"}}}
			},
		})
		p := &provider{updates: make(chan events.Question, 1), script: []func(events.Question) (events.Receipt, error){accepted("m-1")}}
		startCourier(t, b, updating{p})
		ask(t, b, question())
		if q := channeltest.Next(t, p.updates); q.Closed == nil || q.Closed.By.Name != "Ana" || q.Delivery.Receipt.ProviderID != "m-1" {
			t.Errorf("updated %+v", q)
		}
	}))
	t.Run("a_reminder_that_fails_says_nothing_of_the_question", bubble(func(t *testing.T, b *bus.Bus, br *channeltest.Broker) {
		p := &provider{script: []func(events.Question) (events.Receipt, error){failing(channels.Fault(channels.Permanent, "gone", nil))}}
		startCourier(t, b, p)
		q := question()
		q.Phase = events.PhaseRemind
		ask(t, b, q)
		time.Sleep(time.Second)
		emptied(t, b)
		same(t, states(br.Reports))
	}))
}

func TestCourierRefusesTwoOfOneName(t *testing.T) {
	if _, err := channels.NewCourier(nil, []channels.Adapter{&provider{}, &provider{}}, channels.CourierConfig{}, slog.Default()); err == nil {
		t.Error("no error")
	}
}

func TestCourierRunEndsWithItsContext(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Start(t)
		startCourier(t, b, &provider{}, other{})()
	})
}

type other struct{}

func (other) Name() events.Channel { return "other" }
func (other) Deliver(context.Context, events.Question) (events.Receipt, error) {
	return events.Receipt{}, errBroken
}

func waited(t *testing.T, p *provider, want ...time.Duration) {
	t.Helper()
	at := p.times()
	for i, d := range want {
		if got := at[i+1].Sub(at[i]); got < d-d/5 || got > d+d/5+time.Second {
			t.Errorf("attempt %d came after %s, want %s and up to a fifth", i+2, got, d)
		}
	}
}

func bubble(f func(*testing.T, *bus.Bus, *channeltest.Broker)) func(*testing.T) {
	return bubbleAlone(func(t *testing.T, b *bus.Bus) {
		br := channeltest.StartBroker(t, b, channeltest.Script{})
		synctest.Wait() // until it listens
		f(t, b, br)
	})
}

func bubbleAlone(f func(*testing.T, *bus.Bus)) func(*testing.T) {
	return func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) { f(t, bustest.Start(t)) })
	}
}
