package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/google/go-cmp/cmp"
)

// TestRace has three brokers decide at once what several people, agents and executors want at once of the same tasks.
func TestRace(t *testing.T) {
	t.Run("guarded", func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) {
			r := newRace(t, direct)
			r.go60(t, true)
			l := readLog(t.Context(), t, r.bus)
			for _, v := range append(l.violations(r.ran), r.untrue(l)...) {
				t.Error(v)
			}
			if len(l.accepted) < raceTasks/2 || len(r.ran) < raceTasks/3 {
				t.Errorf("%d answers were accepted and %d effects happened: there was no race", len(l.accepted), len(r.ran))
			}
			records := readAudit(t.Context(), t, r.bus, l.end)
			if want := l.transitions + len(l.refused); len(records) != want {
				t.Errorf("%d records of %d transitions and %d refusals", len(records), l.transitions, len(l.refused))
			}
		})
	})
	// Without the guard the same race ends badly: what the test finds otherwise is the guard's doing.
	t.Run("unguarded", func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) {
			r := newRace(t, unguarded)
			r.go60(t, false)
			l := readLog(t.Context(), t, r.bus)
			found := l.violations(r.ran)
			t.Logf("%d violations, such as %q", len(found), found[:min(3, len(found))])
			if len(found) == 0 {
				t.Error("the guard was taken off, and nothing was found wrong")
			}
		})
	})
}

func TestUnguard(t *testing.T) {
	const frame = "HPUB clarify.task.a.b.asked _INBOX.1 106 111\r\n" +
		"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 7\r\nA: b\r\nNats-Expected-Last-Subject-Sequence-Subject: x\r\n\r\nhello\r\n"
	const want = "HPUB clarify.task.a.b.asked _INBOX.1 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n"
	if size := frameSize([]byte(frame)); size != len(frame) {
		t.Fatalf("a frame of %d bytes is taken for %d", len(frame), size)
	}
	if diff := cmp.Diff(want, string(unguard([]byte(frame)))); diff != "" {
		t.Error(diff)
	}
	for _, other := range []string{"PING\r\n", "PUB a 2\r\nhi\r\n", "HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"} {
		if got := string(unguard([]byte(other))); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}

const raceTasks = 40

// go60 has every task live at once. Without the guard there is no saying how a task ends, only that it does.
func (r *race) go60(t *testing.T, guarded bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	for i := range raceTasks {
		r.waiting[task(i)] = make(chan events.Question, 64)
	}
	r.run("questions", func(ctx context.Context) error {
		for {
			select {
			case q := <-r.asked:
				r.waiting[q.Task] <- q
			case <-ctx.Done():
				return nil
			}
		}
	})
	var all sync.WaitGroup
	for i := range raceTasks {
		all.Go(func() {
			for _, err := range r.live(ctx, i) {
				if guarded && !fair(err) {
					t.Errorf("%s ended with %v", task(i), err)
				}
			}
		})
	}
	all.Wait()
}

func task(i int) events.Task { return events.Task("t" + strconv.Itoa(i)) }

// fair reports that a call may end so in a race: it ran, or another won.
func fair(err error) bool {
	var superseded *gate.Superseded
	var cancelled *gate.Cancelled
	var denied *gate.Denied
	var refused *gate.Refused
	return err == nil || errors.As(err, &superseded) || errors.As(err, &cancelled) || errors.As(err, &denied) ||
		errors.As(err, &refused) && slices.Contains([]events.Reason{events.Busy, events.StaleVersion, events.NotPending}, refused.Why)
}

// live is one task: three executors propose and run the same candidate, and at its question everybody does everything.
func (r *race) live(ctx context.Context, i int) (ends []error) {
	c := raceCandidate(i)
	ended := make(chan error)
	pending := 0
	do := func(c events.Candidate) {
		for _, g := range r.gates {
			pending++
			go func() {
				_, err := g.Do(ctx, c, r.tool)
				ended <- err
			}()
		}
	}
	do(c)
	var storms sync.WaitGroup
	var seen []events.Question
	for pending > 0 {
		select {
		case err := <-ended:
			pending--
			ends = append(ends, err)
		case q := <-r.waiting[c.Task]:
			if slices.ContainsFunc(seen, func(s events.Question) bool { return s.Question == q.Question }) {
				continue // on another channel
			}
			seen = append(seen, q)
			storms.Go(func() { r.storm(q) })
			switch {
			case i%5 == 2 && len(seen) == 1:
				newer := c
				newer.ID += "-newer"
				do(newer)
			case i%5 == 3:
				for _, g := range r.gates[:2] {
					pending++
					go func() {
						ended <- g.Cancel(ctx, gate.Ticket{Task: c.Task, Candidate: c.ID, Version: 1}, "changed my mind")
					}()
				}
			}
		}
	}
	storms.Wait()
	for _, q := range seen {
		r.storm(q) // too late
	}
	return ends
}

func raceCandidate(i int) events.Candidate {
	var c events.Candidate
	switch i % 5 {
	case 1:
		c = candidate(task(i), "docs.review", events.Arguments{})
	case 4:
		c = candidate(task(i), "mail.send", events.Arguments{"to": events.SecretOf("ana@example.org")})
	default:
		c = juans(task(i))
	}
	c.ID, c.Step = string(task(i))+"-first", string(task(i))
	return c
}

// storm has people submit everything at once that can be submitted to a question, each of it twice.
func (r *race) storm(q events.Question) {
	var all sync.WaitGroup
	answer := func(desk *channels.Desk, a events.Answer) {
		all.Go(func() { r.hand(func(ctx context.Context) (events.Verdict, error) { return desk.Submit(ctx, a) }) })
	}
	approve := func(desk *channels.Desk, a events.ApprovalAnswer) {
		all.Go(func() {
			r.hand(func(ctx context.Context) (events.Verdict, error) { return desk.SubmitApproval(ctx, a) })
		})
	}
	if q.Kind == events.Approval {
		approve(r.desk, approvalOf(q, "ana", events.Granted))
		approve(r.desk, approvalOf(q, "ben", events.NotGranted))
		approve(r.pager, approvalOf(q, "ana", events.Granted))
		approve(r.desk, approvalOf(q, "eve", events.Granted)) // not allowed
		other := approvalOf(q, "ben", events.Granted)
		other.Action = "sha256:" + events.Digest(strings.Repeat("0", 64))
		approve(r.desk, other)
		wrong := approvalOf(q, "ana", events.Granted)
		answer(r.desk, events.Answer{
			Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question, Submission: events.NewSubmissionID(),
			Responder: wrong.Responder, Values: []events.Given{{Field: "to", Value: events.SecretOf("eve@example.org")}},
		})
	} else {
		options := q.Content.Fields[0].Options
		for j, who := range []string{"ana", "ben", "ana"} {
			answer(r.desk, answerTo(q, who, options[j%len(options)].ID))
		}
		answer(r.pager, answerTo(q, "ana", options[0].ID))
		answer(r.desk, answerTo(q, "ben", "c-999"))
		for _, v := range []events.Version{q.Version - 1, q.Version + 7} {
			if a := answerTo(q, "ben", options[0].ID); v > 0 {
				a.Version = v
				answer(r.desk, a)
			}
		}
		approve(r.desk, approvalOf(q, "ana", events.Granted)) // wrong kind
	}
	all.Wait()
}

func approvalOf(q events.Question, who string, said events.ApprovalVerdict) events.ApprovalAnswer {
	return events.ApprovalAnswer{
		Agent: q.Agent, Task: q.Task, Version: q.Version, Question: q.Question, Submission: events.NewSubmissionID(),
		Responder: events.Responder{Subject: who, Name: who, Assurance: events.Platform}, Verdict: said, Action: q.Content.Action,
	}
}

// taskLog is what the log holds, as far as the race is about it. Keys are a task and a version, or a task and a submission.
type taskLog struct {
	end         uint64 // sequence of the last message that counts
	transitions int
	accepted    map[string]map[string]bool // submissions by version
	by          map[string]bool            // submissions that were accepted
	released    map[string]int             // by version
	claimed     map[string]map[string]bool // nonces by version
	done        map[string]int             // by version
	refused     map[string]events.Reason   // by submission or candidate: the first
}

func readLog(ctx context.Context, t *testing.T, b *bus.Bus) taskLog {
	t.Helper()
	l := taskLog{
		accepted: map[string]map[string]bool{}, by: map[string]bool{}, released: map[string]int{},
		claimed: map[string]map[string]bool{}, done: map[string]int{}, refused: map[string]events.Reason{},
	}
	end, enough := logEnd(ctx, t, b), errors.New("enough")
	filters := []string{b.Space().Task("*", "*", "*"), string(b.Space()) + ".refused.*.*.*"}
	err := b.Tail(ctx, bus.Tasks, 1, filters, func(_ context.Context, m bus.Message) error {
		switch v := m.Envelope.Data.(type) {
		case events.State:
			l.state(v)
			l.end = m.Seq
		case events.Refusal:
			if id := string(v.Task) + " " + v.ID; l.refused[id] == "" {
				l.refused[id], l.end = v.Reason, m.Seq
			}
		default:
			t.Errorf("message %d: %v", m.Seq, m.Problem)
		}
		if m.Seq >= end {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return l
}

func (l *taskLog) state(s events.State) {
	l.transitions++
	for _, a := range s.Accepted {
		put(l.accepted, at(s.Task, a.Version), string(a.Submission))
		l.by[string(s.Task)+" "+string(a.Submission)] = true
	}
	switch s.Kind {
	case events.Released:
		l.released[at(s.Task, s.Release.Version)]++
	case events.Claimed:
		put(l.claimed, at(s.Task, s.Release.Version), s.Claim.Nonce)
	case events.Done:
		l.done[at(s.Task, s.Release.Version)]++
	default:
	}
}

func put(m map[string]map[string]bool, key, value string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][value] = true
}

// violations are the places where more happened than may happen once.
func (l *taskLog) violations(ran map[string]int) []string {
	var found []string
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for v, all := range l.accepted {
		if len(all) > 1 {
			bad("%s: %d answers were accepted", v, len(all))
		}
	}
	for v, n := range l.released {
		if n > 1 {
			bad("%s: released %d times", v, n)
		}
	}
	for v, all := range l.claimed {
		if len(all) > 1 {
			bad("%s: %d executors have the claim", v, len(all))
		}
	}
	for v, n := range ran {
		switch {
		case n > 1:
			bad("%s: %d effects", v, n)
		case l.done[v] != 1:
			bad("%s: an effect, and %d outcomes", v, l.done[v])
		}
	}
	return found
}

// untrue are the submissions that were told nothing, or more than one thing, or something else than the log says.
func (r *race) untrue(l taskLog) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for id, said := range r.told {
		want := string(l.refused[id])
		switch {
		case l.by[id] && want != "":
			found = append(found, id+": is accepted and refused as "+want)
			continue
		case l.by[id]:
			want = "accepted"
		}
		if len(said) != 1 || !said[want] {
			found = append(found, fmt.Sprintf("%s: was told %v, the log says %q", id, said, want))
		}
	}
	return found
}
