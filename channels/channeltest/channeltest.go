// Package channeltest is what every adapter must pass: one attempt, success only with evidence, failures by class, copies
// that are updated, and nothing said twice or leaked. An adapter's test starts the adapter on a fake of its provider and
// calls [Run].
package channeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// Behaviour is what a fake provider does with every request from now on.
type Behaviour string

// What a fake provider can do.
const (
	Accepts     Behaviour = "accepts"      // takes the message and says so
	Busy        Behaviour = "busy"         // takes nothing and wishes to be asked again after RetryAfter
	HangsUp     Behaviour = "hangs_up"     // takes the message and closes the connection without an answer
	SaysNothing Behaviour = "says_nothing" // answers as if all were well, without saying what it took
	TooLarge    Behaviour = "too_large"    // takes nothing: this rendering is too much for it
	Gone        Behaviour = "gone"         // takes nothing: this target will never be there
	Denies      Behaviour = "denies"       // takes nothing: the credentials are wrong
)

// RetryAfter is what a Busy provider asks for.
const RetryAfter = 7 * time.Second

// Provider is an adapter on a fake provider.
type Provider struct {
	Adapter     channels.Adapter
	Behave      func(Behaviour)
	Requests    func() int  // to send or change a message, that the provider has got so far
	Copies      func() int  // messages of one question that people see now; nil when the provider cannot tell
	Unsupported []Behaviour // what this provider cannot do
	Secrets     []string    // of the configuration: nothing an adapter returns may contain them
	Target      events.Delivery
}

// canary stands in every untrusted text of the question; no error may repeat it.
const canary = "canary-7f3a"

// Question is a question as the suite asks it, to p's target: with every kind of text, and none of it harmless.
func Question(p Provider, phase events.Phase) events.Question {
	hostile := canary + ` <b>&amp;"'</b> <!channel> *x* _y_ [l](http://example.com) ` + "\u202e\u0000\r\nBcc: x@example.com\r\n"
	q := events.Question{
		Agent: "crm-bot", Task: "t-42", Version: 7, Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Kind: events.Clarification, Phase: phase,
		Channel: p.Adapter.Name(), Delivery: p.Target,
		Content: events.Content{
			Lang: "es", Step: hostile, Tool: "crm.update_record", Action: events.Digest("sha256:" + strings.Repeat("0f", 32)),
			Fields: []events.Field{{
				Name: "customer_id", Role: events.RoleIdentity, Prompt: hostile,
				Options:  []events.Option{{ID: "c-101", Label: hostile, Hint: hostile}, {ID: "c-207", Label: hostile}},
				FreeText: &events.FreeText{MaxRunes: 64},
			}},
			Shown: []events.Shown{{Name: "phone", Value: hostile}}, AgentSays: hostile, Requester: hostile, Reason: hostile,
			Assumptions: []events.Shown{{Name: "region", Value: hostile}},
			NotAfter:    time.Now().Add(time.Hour), AfterDeadline: events.DeadlineStop,
		},
	}
	q.Delivery.Target.Channel = p.Adapter.Name()
	if q.Delivery.ID == "" {
		q.Delivery.ID = "01K9ZZZZZZZZZZZZZZZZZZZZZZ-7-0"
	}
	if phase == events.PhaseClose {
		q.Closed = &events.Closed{
			Status: events.PauseAnswered, Kind: events.Released,
			By: &events.Responder{Name: hostile, Subject: "ana"}, At: time.Now().UTC(),
		}
	}
	return q
}

// clause is one part of the contract.
type clause struct {
	name  string
	needs Behaviour // of the provider
	holds func(*testing.T, Provider)
}

func contract() []clause {
	fail := func(b Behaviour, want ...channels.Class) func(*testing.T, Provider) {
		return func(t *testing.T, p Provider) { fails(t, p, b, want...) }
	}
	return []clause{
		{"name", Accepts, named},
		{"accepted_with_evidence", Accepts, acceptedWithEvidence},
		{"no_evidence_is_no_success", SaysNothing, fail(SaysNothing)},
		{"busy_is_transient", Busy, busy},
		{"hanging_up_is_never_final", HangsUp, fail(HangsUp, channels.Ambiguous, channels.Transient)},
		{"too_large_is_content", TooLarge, fail(TooLarge, channels.Content)},
		{"gone_is_permanent", Gone, fail(Gone, channels.Permanent)},
		{"denied_is_config", Denies, fail(Denies, channels.Misconfigured)},
		{"after_hanging_up_one_copy", HangsUp, oneCopy},
		{"ended_context_ends_the_attempt", Accepts, endedContext},
	}
}

// ofUpdaters are the clauses for adapters that change what they have sent.
func ofUpdaters() []clause {
	return []clause{
		{"closing_updates", Accepts, closing},
		{"busy_refuses_a_closing", Busy, busyClosing},
	}
}

// Run holds an adapter against its contract. start makes a new adapter and a new fake provider each time. Clauses about
// what a provider cannot do by what it says of itself do not apply to it.
func Run(t *testing.T, start func(t *testing.T) Provider) {
	p := start(t)
	if slices.Contains(p.Unsupported, Accepts) {
		t.Fatal("a provider that never accepts is none")
	}
	clauses := contract()
	if _, ok := p.Adapter.(channels.Updater); ok {
		clauses = append(clauses, ofUpdaters()...)
	} else {
		t.Log("this adapter is no channels.Updater: what it sent stays as it is")
	}
	for _, c := range clauses {
		if slices.Contains(p.Unsupported, c.needs) {
			t.Logf("%s does not apply: this provider never %s", c.name, c.needs)
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.holds(t, start(t)) })
	}
}

func named(t *testing.T, p Provider) {
	name, again := p.Adapter.Name(), p.Adapter.Name()
	if _, err := events.ParseChannel(string(name)); err != nil || name != again {
		t.Errorf("its name %q, then %q, is no channel's: %v", name, again, err)
	}
}

func busy(t *testing.T, p Provider) {
	err := fails(t, p, Busy, channels.Transient)
	if f, ok := err.(*channels.Error); ok && f.RetryAfter != RetryAfter { //nolint:errorlint // fails has unwrapped it
		t.Errorf("the provider asked for %s, the error says %s", RetryAfter, f.RetryAfter)
	}
}

// within bounds an attempt that should be instant on a fake, so that an adapter that waits fails here.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func acceptedWithEvidence(t *testing.T, p Provider) {
	p.Behave(Accepts)
	receipt, err := p.Adapter.Deliver(within(t), Question(p, events.PhaseAsk))
	if err != nil || !receipt.State.Reached() || receipt.ProviderID == "" {
		t.Fatalf("got %+v, %v", receipt, err)
	}
	if p.Requests() > 1 {
		t.Errorf("one attempt made %d requests", p.Requests())
	}
	clean(t, p, fmt.Sprintf("%+v", receipt), canary)
}

// fails delivers to a provider that does b, and returns the error.
func fails(t *testing.T, p Provider, b Behaviour, want ...channels.Class) error {
	p.Behave(b)
	receipt, err := p.Adapter.Deliver(within(t), Question(p, events.PhaseAsk))
	if err == nil || receipt.State.Reached() {
		t.Fatalf("got %+v, %v", receipt, err)
	}
	f, ok := err.(*channels.Error) //nolint:errorlint // an adapter returns it as it is
	if !ok {
		t.Fatalf("the error is a %T, not a *channels.Error", err)
	}
	if len(want) > 0 && !slices.Contains(want, f.Class) {
		t.Errorf("its class is %s, want %v", f.Class, want)
	}
	if f.Code == "" {
		t.Error("the error has no code")
	}
	if p.Requests() > 1 {
		t.Errorf("one attempt made %d requests", p.Requests())
	}
	clean(t, p, err.Error(), canary)
	return err
}

func clean(t *testing.T, p Provider, text string, also ...string) {
	t.Helper()
	for _, secret := range append(also, p.Secrets...) {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("what the adapter returned contains %q", secret)
		}
	}
}

// oneCopy makes the second attempt as the courier would: after asking the provider, where the adapter can.
func oneCopy(t *testing.T, p Provider) {
	p.Behave(HangsUp)
	q := Question(p, events.PhaseAsk)
	if receipt, err := p.Adapter.Deliver(within(t), q); err == nil {
		t.Fatalf("got %+v", receipt)
	}
	p.Behave(Accepts)
	found := false
	if r, ok := p.Adapter.(channels.Reconciler); ok {
		receipt, err := r.Reconcile(within(t), q)
		if found = err == nil; found && (!receipt.State.Reached() || receipt.ProviderID == "") {
			t.Errorf("found %+v", receipt)
		}
	}
	if !found {
		if _, err := p.Adapter.Deliver(within(t), q); err != nil {
			t.Fatal(err)
		}
	}
	if p.Copies != nil && p.Copies() != 1 {
		t.Errorf("people see %d copies of one question", p.Copies())
	}
}

func endedContext(t *testing.T, p Provider) {
	p.Behave(Accepts)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	receipt, err := p.Adapter.Deliver(ctx, Question(p, events.PhaseAsk))
	switch {
	case err == nil && !slices.Contains(p.Unsupported, Busy): // a provider that is never away needs no context
		t.Errorf("got %+v", receipt)
	case err != nil && (channels.ClassOf(err) == channels.Permanent || channels.ClassOf(err) == channels.Content):
		t.Errorf("an attempt that was called off counts as %s", channels.ClassOf(err))
	}
}

// closing updates a copy twice, as after a crash.
func closing(t *testing.T, p Provider) {
	updater := p.Adapter.(channels.Updater)
	q := delivered(t, p)
	for range 2 {
		before := p.Requests()
		if _, err := updater.Update(within(t), q); err != nil {
			t.Fatal(err)
		}
		if made := p.Requests() - before; made > 1 {
			t.Errorf("one update made %d requests", made)
		}
	}
}

func busyClosing(t *testing.T, p Provider) {
	updater := p.Adapter.(channels.Updater)
	q := delivered(t, p)
	p.Behave(Busy)
	if _, err := updater.Update(within(t), q); err == nil {
		t.Error("an update that a busy provider refused counts as done")
	}
}

// delivered is the closing of a question whose copy is with its target.
func delivered(t *testing.T, p Provider) events.Question {
	t.Helper()
	p.Behave(Accepts)
	receipt, err := p.Adapter.Deliver(within(t), Question(p, events.PhaseAsk))
	if err != nil {
		t.Fatal(err)
	}
	q := Question(p, events.PhaseClose)
	q.Delivery.Receipt = receipt
	return q
}
