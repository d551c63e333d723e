package integration_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/nats-io/nats.go"
)

// TestKinds has every kind of transition and every reason to refuse arise from what agents, executors, people and operators
// can send, and the audit of it all verified.
func TestKinds(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		c := newCast(t)
		scenes := map[string]func(*cast){
			"proceeds": proceeds, "fails": fails, "answered": answered, "refused": refusedAnswers, "denied": deniedApproval,
			"silent": silent, "bounced": bounced, "held": held, "handed": handed, "unattended": nobodyThere, "closed": closed,
			"rechecked": rechecked, "called": calledOff, "newer": newerCandidates, "doubt": doubt, "frozen": frozen, "bad": badInput,
		}
		for _, name := range slices.Sorted(maps.Keys(scenes)) {
			c.scene = name
			scenes[name](c)
			synctest.Wait()
			if n := len(c.asked); n > 0 {
				t.Errorf("%s leaves %d questions", name, n)
			}
		}
		records := readAudit(t.Context(), t, c.bus, readLog(t.Context(), t, c.bus).end)
		want(t, events.Kinds(), c.kinds(records))
		want(t, events.Reasons(), c.reasons)
	})
}

func proceeds(c *cast) {
	if err := <-c.do(c.t.Context(), candidate(c.task(), "docs.render", events.Arguments{})); err != nil {
		c.t.Error(err)
	}
}

func fails(c *cast) {
	broken := errors.New("out of paper")
	_, err := c.gate.Do(c.t.Context(), candidate(c.task(), "docs.render", events.Arguments{}), func(context.Context, events.Grant) (any, error) {
		return nil, broken
	})
	if !errors.Is(err, broken) {
		c.t.Errorf("failed with %v", err)
	}
}

// answered has an answer wait for releases to go on.
func answered(c *cast) {
	done := c.do(c.t.Context(), juans(c.task()))
	q := c.question()
	synctest.Wait()
	c.freeze(events.FreezeReleases)
	synctest.Wait()
	if v := c.hand(answerTo(q, "ana", "c-207")); !v.Accepted || v.Kind != events.Answered {
		c.t.Errorf("frozen, and the verdict is %+v", v)
	}
	c.freeze(events.ThawReleases)
	if err := <-done; err != nil {
		c.t.Error(err)
	}
}

func refusedAnswers(c *cast) {
	first := c.do(c.t.Context(), juans(c.task()))
	old := c.question()
	done := c.do(c.t.Context(), juans(c.task()))
	<-first
	q := c.question()
	unknown, empty, other := answerTo(q, "ana", "c-207"), answerTo(q, "ana", "c-207"), answerTo(q, "ana", "c-207")
	unknown.Task, empty.Values, other.Values[0].Field = c.task("unknown"), nil, "phone"
	for _, a := range []events.Answer{unknown, empty, other, answerTo(old, "ana", "c-207"), answerTo(q, "ana", "c-999"), answerTo(q, "ana", "c-207"), answerTo(q, "ben", "c-101")} {
		c.hand(a)
	}
	c.approve(approvalOf(q, "ana", events.Granted)) // too late, and of the wrong kind all the same
	if err := <-done; err != nil {
		c.t.Error(err)
	}
}

func deniedApproval(c *cast) {
	done := c.do(c.t.Context(), candidate(c.task(), "mail.send", events.Arguments{"to": events.SecretOf("ana@example.org")}))
	q := c.question()
	c.approve(approvalOf(q, "eve", events.Granted))
	c.approve(approvalOf(q, "ben", events.NotGranted))
	if _, is := errors.AsType[*gate.Denied](<-done); !is {
		c.t.Error("not denied")
	}
}

// silent is an approval that nobody answers: reminded once, then timed out.
func silent(c *cast) {
	done := c.do(c.t.Context(), candidate(c.task(), "mail.send", events.Arguments{"to": events.SecretOf("ana@example.org")}))
	c.question()
	if q := c.question(); q.Phase != events.PhaseRemind {
		c.t.Errorf("asked again for %s", q.Phase)
	}
	if _, is := errors.AsType[*gate.TimedOut](<-done); !is {
		c.t.Error("not timed out")
	}
}

// bounced is an approval that neither channel takes.
func bounced(c *cast) {
	c.refuses.Store(true)
	defer c.refuses.Store(false)
	err := <-c.do(c.t.Context(), candidate(c.task(), "mail.send", events.Arguments{"to": events.SecretOf("ana@example.org")}))
	if _, is := errors.AsType[*gate.Undelivered](err); !is {
		c.t.Errorf("not undelivered: %v", err)
	}
}

// held is a question that the policy keeps open past its deadline; an operator ends it.
func held(c *cast) {
	ticket := c.submit(candidate(c.task(), "docs.review", events.Arguments{}))
	c.question()
	c.question()
	time.Sleep(15 * time.Minute)
	if v := c.view(c.task()); v.Kind != events.Overdue {
		c.t.Errorf("past its deadline it is %q", v.Kind)
	}
	c.operate(events.VerbCancel, c.task(), events.OperatorRequest{Reason: "the meeting is over"})
	if _, err := c.gate.Wait(c.t.Context(), ticket); err == nil {
		c.t.Error("not cancelled")
	}
}

// handed is a case that its owner ends.
func handed(c *cast) {
	done := c.do(c.t.Context(), candidate(c.task(), "bank.pay", events.Arguments{"amount": events.SecretOf(500)}))
	a := answerTo(withField(c.question()), "ana", "")
	a.Values, a.Handover = nil, events.EndIt
	c.hand(a)
	if _, is := errors.AsType[*gate.Stopped](<-done); !is {
		c.t.Error("not stopped")
	}
}

// withField lets answerTo name a field of a question that has none.
func withField(q events.Question) events.Question {
	q.Content.Fields = append(q.Content.Fields, events.Field{Name: "none"})
	return q
}

func nobodyThere(c *cast) {
	away := false
	of := juans(c.task())
	of.Attended = &away
	if _, is := errors.AsType[*gate.Stopped](<-c.do(c.t.Context(), of)); !is {
		c.t.Error("not stopped")
	}
}

func closed(c *cast) {
	of := juans(c.task())
	of.State = map[string]events.Secret{"record.status": events.SecretOf("closed")}
	if _, is := errors.AsType[*gate.Conflict](<-c.do(c.t.Context(), of)); !is {
		c.t.Error("no conflict")
	}
}

// rechecked finds the record closed just before it would have run.
func rechecked(c *cast) {
	of := candidate(c.task(), "crm.update_record", events.Arguments{"customer_id": events.SecretOf("c-101")})
	_, err := c.gate.Do(c.t.Context(), of, nothing, gate.Recheck(func(context.Context) (map[string]events.Secret, error) {
		return map[string]events.Secret{"record.status": events.SecretOf("closed")}, nil
	}))
	if _, is := errors.AsType[*gate.Conflict](err); !is {
		c.t.Errorf("no conflict: %v", err)
	}
}

func calledOff(c *cast) {
	of := juans(c.task())
	ticket := c.submit(of)
	q := c.question()
	c.claim(c.task(), "early", nil)
	c.approve(approvalOf(q, "ana", events.Granted))
	if err := c.gate.Cancel(c.t.Context(), ticket, "changed my mind"); err != nil {
		c.t.Error(err)
	}
	c.hand(answerTo(q, "ana", "c-207"))
}

// newerCandidates are refused while an executor has the claim, when they are no newer, and when their id was used.
func newerCandidates(c *cast) {
	of := candidate(c.task(), "docs.render", events.Arguments{})
	c.submit(of)
	g := c.claim(c.task(), "mine", nil)
	c.claim(c.task(), "yours", nil)
	busy, old, changed := of, of, of
	busy.ID, busy.Version = "busy", 2
	old.ID, old.Version = "old", 1
	changed.Version, changed.Context = 1, "another"
	for _, bad := range []events.Candidate{busy, old, changed} {
		c.propose(bad)
	}
	c.report(c.task(), *g, "yours", events.EffectDone)
	other := *g
	other.Action = "sha256:" + events.Digest(strings.Repeat("0", 64))
	c.report(c.task(), other, "mine", events.EffectDone)
	c.report(c.task(), *g, "mine", events.EffectRunning)
	c.report(c.task(), *g, "mine", events.EffectDone)
}

// propose publishes a candidate as it is and lets everything settle.
func (c *cast) propose(of events.Candidate) {
	c.t.Helper()
	of.Agent = "bot"
	_, err := c.bus.Publish(c.t.Context(), c.bus.Space().Candidate("bot", of.Task), events.Envelope{ID: of.ID, Source: "/test", Data: of})
	if err != nil {
		c.t.Fatalf("%s: %v", c.scene, err)
	}
	time.Sleep(time.Second)
}

// doubt is a claim of which nobody hears again, until an operator finds out.
func doubt(c *cast) {
	of := candidate(c.task(), "docs.render", events.Arguments{})
	c.submit(of)
	c.claim(c.task(), "lost", nil)
	time.Sleep(2 * time.Minute)
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	if err := <-c.do(ctx, of); !inDoubt(err) || ctx.Err() != nil {
		c.t.Errorf("whoever does it again is told %v, after %v", err, ctx.Err())
	}
	c.operate(events.VerbReconcile, c.task(), events.OperatorRequest{Outcome: "maybe"})
	c.operate(events.VerbReconcile, c.task(), events.OperatorRequest{Outcome: events.EffectDone, Reason: "it is printed"})
	c.operate(events.VerbReconcile, c.task(), events.OperatorRequest{Outcome: events.EffectDone})
}

// frozen has a candidate that may proceed take the place of one that waits while nothing is released.
func frozen(c *cast) {
	c.submit(candidate(c.task("unclaimed"), "docs.render", events.Arguments{}))
	c.submit(juans(c.task()))
	c.question()
	synctest.Wait()
	c.freeze(events.FreezeReleases)
	synctest.Wait()
	c.claim(c.task("unclaimed"), "any", nil)
	done := c.do(c.t.Context(), candidate(c.task(), "docs.render", events.Arguments{}))
	time.Sleep(10 * time.Second)
	if v := c.view(c.task()); v.Kind != events.Superseded {
		c.t.Errorf("replaced, and it is %q", v.Kind)
	}
	c.freeze(events.ThawReleases)
	if err := <-done; err != nil {
		c.t.Error(err)
	}
}

// badInput is what cannot be read, or has no room.
func badInput(c *cast) {
	c.claim(c.task(), "nothing", nil)
	msg := nats.NewMsg(c.bus.Space().Candidate("bot", c.task()))
	msg.Header.Set("Content-Type", events.ContentType)
	msg.Data = []byte("{")
	if err := c.raw.PublishMsg(msg); err != nil {
		c.t.Fatal(err)
	}
	huge := juans(c.task("huge"))
	huge.ID, huge.Version, huge.Candidates = "huge", 1, nil
	for _, letter := range []string{"a", "b", "c", "d"} {
		huge.Candidates = append(huge.Candidates, events.Alternative{
			Label:     letter,
			Arguments: events.Arguments{"customer_id": events.SecretOf(strings.Repeat(letter, 31_000))},
		})
	}
	c.propose(huge)
	c.question()
	huge.ID, huge.Version = "huge-too", 2 // its options beside those of the question it would replace
	c.propose(huge)
	c.operate(events.VerbCancel, c.task("huge"), events.OperatorRequest{})
}
