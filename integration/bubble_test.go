package integration_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
)

// TestTime runs hours of deadlines, reminders, leases and restarts in fake time, over a real JetStream.
func TestTime(t *testing.T) {
	for name, story := range map[string]func(*testing.T){
		"deadline_outlives_a_restart":              deadlineRestart,
		"answer_stored_while_no_broker_ran_counts": answerRestart,
		"reminded_once_then_timed_out":             reminded,
		"cap_ends_what_nobody_took":                capped,
		"lease_over_is_in_doubt":                   leaseOver,
		"question_lost_on_its_way_is_asked_again":  lostQuestion,
		"final_task_is_forgotten_after_retention":  forgotten,
	} {
		t.Run(name, func(t *testing.T) { bustest.Bubble(t, story) })
	}
}

func deadlineRestart(t *testing.T) {
	dir, began := t.TempDir(), time.Now()
	w := newWorldIn(t, dir)
	ctx, giveUp := context.WithCancel(t.Context())
	c := juans("t1")
	done := w.do(ctx, c)
	w.question()
	w.wantStill(done, events.Reached, "t1")
	giveUp()
	<-done
	w.stop()
	time.Sleep(4 * time.Minute)
	w = newWorldIn(t, dir)
	_, err := w.gate.Wait(t.Context(), gate.Ticket{Task: "t1", Candidate: c.ID, Version: 1})
	if _, is := errors.AsType[*gate.TimedOut](err); !is {
		t.Fatalf("ended with %v", err)
	}
	if waited := time.Since(began); waited < 10*time.Minute || waited > 10*time.Minute+10*time.Second {
		t.Errorf("timed out after %s, the deadline was 10 m", waited)
	}
}

// answerRestart has a person answer in time while every broker is down until after the deadline.
func answerRestart(t *testing.T) {
	dir := t.TempDir()
	w := newWorldIn(t, dir)
	ctx, giveUp := context.WithCancel(t.Context())
	c := juans("t1")
	done := w.do(ctx, c)
	q := w.question()
	w.wantStill(done, events.Reached, "t1")
	giveUp()
	<-done
	w.stop()

	server := bustest.Server(t, embeddedIn(dir))
	b := bustest.Open(t, server, bus.Options{})
	if _, err := b.Publish(t.Context(), b.Space().Answer(events.Place{Channel: "desk", Agent: q.Agent, Task: q.Task, Version: q.Version}),
		events.Envelope{Source: "/test", Data: answerTo(q, "ana", "c-207")}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Minute)
	if err := server.Shutdown(); err != nil {
		t.Fatal(err)
	}
	w = newWorldIn(t, dir)
	if _, err := w.gate.Wait(t.Context(), gate.Ticket{Task: "t1", Candidate: c.ID, Version: 1}); err != nil {
		t.Fatalf("what was answered in time came to %v", err)
	}
	if v := w.view("t1"); v.Kind != events.Released || v.Release.From != events.FromAnswer {
		t.Fatalf("%s from %+v", v.Kind, v.Release)
	}
}

func reminded(t *testing.T) {
	w := newWorld(t)
	began := time.Now()
	done := w.do(t.Context(), candidate("t1", "mail.send", events.Arguments{"to": events.SecretOf("x")}))
	w.question()
	if q := w.question(); q.Phase != events.PhaseRemind {
		t.Fatalf("phase %q", q.Phase)
	}
	if waited := time.Since(began); waited < 5*time.Minute || waited > 5*time.Minute+5*time.Second {
		t.Errorf("reminded after %s", waited)
	}
	if _, is := errors.AsType[*gate.TimedOut](<-done); !is {
		t.Fatal("not timed out")
	}
	if len(w.asked) != 0 {
		t.Fatal("somebody was told more than once")
	}
	w.wantEffects(0)
}

func capped(t *testing.T) {
	w := newWorld(t)
	began := time.Now()
	c := candidate("t1", "docs.translate", events.Arguments{})
	if _, is := errors.AsType[*gate.Undelivered](<-w.do(t.Context(), c)); !is {
		t.Fatal("not undelivered")
	}
	if waited := time.Since(began); waited < time.Hour || waited > time.Hour+5*time.Second {
		t.Errorf("ended after %s, the cap is 1 h", waited)
	}
	w.wantEffects(0)
}

func leaseOver(t *testing.T) {
	w := newWorld(t)
	ticket, err := w.gate.Submit(t.Context(), candidate("t1", "docs.render", events.Arguments{}))
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.gate.Wait(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	var claim events.ClaimReply
	if err := w.bus.Ask(t.Context(), w.bus.Space().Claim("bot", "t1"),
		events.ClaimRequest{Agent: "bot", Task: "t1", Version: v.Version, Nonce: "n1"}, &claim); err != nil || claim.Granted == nil {
		t.Fatalf("%v, %+v", err, claim)
	}
	_, err = w.gate.Result(t.Context(), ticket)
	if _, is := errors.AsType[*gate.InDoubt](err); !is {
		t.Fatalf("ended with %v", err)
	}
}

func forgotten(t *testing.T) {
	w := newWorld(t)
	c := candidate("t1", "docs.archive", events.Arguments{})
	if err := <-w.do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if w.view("t1").Kind != events.Done {
		t.Fatal(w.view("t1").Kind)
	}
	time.Sleep(2*time.Hour + time.Minute)
	if v := w.view("t1"); v.Kind != "" {
		t.Fatalf("still there, %s", v.Kind)
	}
	if _, err := w.bus.Last(t.Context(), bus.Audit, w.bus.Space().Audit("bot", "t1")); err != nil {
		t.Fatalf("the audit is gone with it: %v", err)
	}
}

// lostQuestion loses a question on its way to its channel, as a power cut can.
func lostQuestion(t *testing.T) {
	w := newWorld(t)
	w.lose(candidate("t1", "docs.translate", events.Arguments{}))
	heard := make(chan bus.Message, 1)
	w.run("channel", func(ctx context.Context) error {
		return w.bus.Consume(ctx, bus.Consumer{Stream: bus.Questions, Name: "channel-nowhere", Filters: []string{w.bus.Space().Questions("nowhere")}},
			func(_ context.Context, m bus.Message) error { heard <- m; return nil })
	})
	select {
	case <-heard:
	case <-time.After(5 * time.Minute):
		t.Fatal("the question was not asked again")
	}
}

// lose proposes, waits until the question is stored, and removes it.
func (w *world) lose(c events.Candidate) {
	w.t.Helper()
	ticket, err := w.gate.Submit(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	subject := w.bus.Space().Question(events.Place{Channel: "nowhere", Agent: "bot", Task: ticket.Task, Version: ticket.Version})
	m, err := w.bus.Last(w.t.Context(), bus.Questions, subject)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.bus.Purge(w.t.Context(), bus.Questions, subject, m.Seq); err != nil {
		w.t.Fatal(err)
	}
}
