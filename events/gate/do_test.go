package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/google/go-cmp/cmp"
)

// counted is a tool that counts how often it runs.
type counted struct{ runs atomic.Int64 }

func (c *counted) run(_ context.Context, g events.Grant) (any, error) {
	c.runs.Add(1)
	return map[string]string{"updated": g.Arguments["customer_id"].RevealString()}, nil
}

func TestDo_runs_a_released_action_once(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	g := gated(t, b)
	var tool counted
	look := func(context.Context) (map[string]events.Secret, error) {
		return map[string]events.Secret{"record.status": events.SecretOf("active")}, nil
	}
	out, err := g.Do(t.Context(), updateRecord(), tool.run, gate.Recheck(look))
	if err != nil || !out.Ran || tool.runs.Load() != 1 {
		t.Fatalf("ran %d times: %v", tool.runs.Load(), err)
	}
	again, err := g.Do(t.Context(), updateRecord(), tool.run)
	if err != nil || again.Ran || tool.runs.Load() != 1 {
		t.Fatalf("an identical repeat ran the tool: %d times: %v", tool.runs.Load(), err)
	}
	if !again.Result.Equal(out.Result) || out.Result.IsZero() {
		t.Errorf("the repeat got another result")
	}
	h := s.said()
	if len(h.claims) != 1 || h.claims[0].Recheck["record.status"].RevealString() != "active" || h.claims[0].Worker != "w1" {
		t.Errorf("claims: %d, or not with what the tool looked at", len(h.claims))
	}
	want := updateRecord()
	want.Agent = agent
	if len(h.effects) != 1 || h.effects[0].Status != events.EffectDone || h.effects[0].Action != want.Action() {
		t.Errorf("effects: %+v", h.effects)
	}
}

func TestDo_follows_all_pauses(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Asked))
	g := gated(t, b)
	stirred := make(chan struct{})
	go func() {
		defer close(stirred)
		if _, err := g.Submit(t.Context(), updateRecord()); err != nil {
			t.Error(err)
		}
		for _, k := range []events.Kind{
			events.Reached, events.Rerouted, events.Reminded, events.Overdue, events.Answered,
			events.ApprovalAsked, events.Reached, events.Escalated, events.Answered, events.Released,
		} {
			s.move("t-42", k, func(st *events.State) {
				if k == events.Answered {
					st.Candidate.Arguments = events.Arguments{"customer_id": events.SecretOf("c-101")}
				}
			})
		}
	}()
	var tool counted
	out, err := g.Do(t.Context(), updateRecord(), tool.run)
	<-stirred
	if err != nil || tool.runs.Load() != 1 || string(out.Result.Reveal()) != `{"updated":"c-101"}` {
		t.Errorf("ran %d times with %s: %v", tool.runs.Load(), out.Result.Reveal(), err)
	}
}

func TestDo_every_way_not_to_be_released(t *testing.T) {
	for kind, want := range map[events.Kind]error{
		events.Stopped: &gate.Stopped{}, events.Conflicted: &gate.Conflict{}, events.Denied: &gate.Denied{}, events.Cancelled: &gate.Cancelled{},
		events.TimedOut: &gate.TimedOut{}, events.Undelivered: &gate.Undelivered{}, events.Superseded: &gate.Superseded{}, events.InDoubt: &gate.InDoubt{},
	} {
		t.Run(string(kind), func(t *testing.T) {
			b := bustest.Start(t)
			script(t, b, always(kind))
			var tool counted
			out, err := gated(t, b).Do(t.Context(), updateRecord(), tool.run)
			if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", want) || out.Ran || tool.runs.Load() != 0 {
				t.Errorf("got %T and %d runs, want %T and none", err, tool.runs.Load(), want)
			}
		})
	}
}

func TestDo_lost_claim_reply(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	s.change(func() { s.lose["claim"] = 2 })
	var tool counted
	if _, err := gated(t, b).Do(t.Context(), updateRecord(), tool.run); err != nil || tool.runs.Load() != 1 {
		t.Fatalf("ran %d times: %v", tool.runs.Load(), err)
	}
	claims := s.said().claims
	if len(claims) != 3 || claims[0].Nonce == "" || claims[0].Nonce != claims[2].Nonce {
		t.Errorf("%d claims, or not with one nonce", len(claims))
	}
}

func TestDo_lost_outcome_reply(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	s.change(func() { s.lose["effect"] = 2 })
	var tool counted
	if _, err := gated(t, b).Do(t.Context(), updateRecord(), tool.run); err != nil || tool.runs.Load() != 1 {
		t.Fatalf("ran %d times: %v", tool.runs.Load(), err)
	}
	if effects := s.said().effects; len(effects) != 3 {
		t.Errorf("reported %d times", len(effects))
	}
}

func TestDo_what_is_granted_is_not_what_was_decided(t *testing.T) {
	for name, tamper := range map[string]func(*events.Grant){
		"other_argument": func(g *events.Grant) {
			g.Arguments = events.Arguments{"customer_id": events.SecretOf("c-999"), "phone": g.Arguments["phone"]}
		},
		"other_argument_and_its_digest": func(g *events.Grant) {
			g.Arguments = events.Arguments{"customer_id": events.SecretOf("c-999")}
			g.Action = events.ActionDigest(agent, "t-42", g.Step, g.Tool, g.Arguments)
		},
		"other_digest": func(g *events.Grant) { g.Action = "sha256:00" },
		"other_step":   func(g *events.Grant) { g.Step = "delete-record" },
		"other_tool":   func(g *events.Grant) { g.Tool.Name = "crm.delete_record" },
		"other_server": func(g *events.Grant) { g.Tool.Server = "mcp://elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t)
			s := script(t, b, always(events.Released))
			s.change(func() { s.tamper = tamper })
			var tool counted
			out, err := gated(t, b).Do(t.Context(), updateRecord(), tool.run)
			if _, ok := errors.AsType[*gate.Mismatch](err); !ok || out.Ran || tool.runs.Load() != 0 {
				t.Fatalf("ran %d times: %v", tool.runs.Load(), err)
			}
			effects := s.said().effects
			if len(effects) != 1 || effects[0].Status != events.EffectFailed || effects[0].Error != "digest_mismatch" {
				t.Errorf("reported %+v", effects)
			}
		})
	}
}

// An edit that changes what would run is a new candidate, whoever decided it.
func TestDo_another_action_than_was_proposed(t *testing.T) {
	for name, edit := range map[string]func(*events.Candidate){
		"other_step":   func(c *events.Candidate) { c.Step = "delete-record" },
		"other_tool":   func(c *events.Candidate) { c.Tool.Name = "crm.delete_record" },
		"other_server": func(c *events.Candidate) { c.Tool.Server = "mcp://elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t)
			s := script(t, b, always(events.Asked))
			g := gated(t, b)
			if _, err := g.Submit(t.Context(), updateRecord()); err != nil {
				t.Fatal(err)
			}
			s.move("t-42", events.Released, func(st *events.State) { edit(&st.Candidate) })
			var tool counted
			_, err := g.Do(t.Context(), updateRecord(), tool.run)
			if _, ok := errors.AsType[*gate.Mismatch](err); !ok || tool.runs.Load() != 0 {
				t.Errorf("ran %d times: %v", tool.runs.Load(), err)
			}
		})
	}
}

func TestDo_tool_fails(t *testing.T) {
	b := bustest.Start(t)
	script(t, b, always(events.Released))
	g := gated(t, b)
	broken := errors.New("crm is down")
	out, err := g.Do(t.Context(), updateRecord(), func(context.Context, events.Grant) (any, error) { return nil, broken })
	if !errors.Is(err, broken) || !out.Ran {
		t.Errorf("got %v", err)
	}
	var tool counted
	_, err = g.Do(t.Context(), updateRecord(), tool.run)
	failed, ok := errors.AsType[*gate.Failed](err)
	if !ok || failed.Detail != "crm is down" || tool.runs.Load() != 0 {
		t.Errorf("a repeat got %v and %d runs", err, tool.runs.Load())
	}
}

func TestDo_result_without_a_form_is_done_all_the_same(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Released))
	out, err := gated(t, b).Do(t.Context(), updateRecord(), func(context.Context, events.Grant) (any, error) { return func() {}, nil })
	if err == nil || !out.Ran {
		t.Errorf("got %v", err)
	}
	if effects := s.said().effects; len(effects) != 1 || effects[0].Status != events.EffectDone {
		t.Errorf("reported %+v", effects)
	}
}

func TestDo_another_worker_has_it(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.Claimed))
	g := gated(t, b)
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		if _, err := g.Submit(t.Context(), updateRecord()); err != nil {
			t.Error(err)
		}
		s.move("t-42", events.Done, func(st *events.State) {
			st.Effect = &events.Effect{Status: events.EffectDone, Result: events.SecretOf("theirs")}
		})
	}()
	var tool counted
	out, err := g.Do(t.Context(), updateRecord(), tool.run)
	<-moved
	if err != nil || out.Ran || tool.runs.Load() != 0 || out.Result.RevealString() != "theirs" {
		t.Errorf("ran %d times: %v", tool.runs.Load(), err)
	}
}

func TestDo_in_doubt_is_claimed_again_only_if_idempotent(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprint(idempotent), func(t *testing.T) {
			b := bustest.Start(t)
			s := script(t, b, always(events.Asked))
			g := gated(t, b)
			if _, err := g.Submit(t.Context(), updateRecord()); err != nil {
				t.Fatal(err)
			}
			s.move("t-42", events.Released, func(st *events.State) {
				st.Decision = events.Decided{Decision: events.Proceed{Why: events.Basis{Traits: events.Traits{Idempotent: idempotent}}}}
			})
			s.move("t-42", events.InDoubt, nil)
			var tool counted
			_, err := g.Do(t.Context(), updateRecord(), tool.run)
			_, doubt := errors.AsType[*gate.InDoubt](err)
			if got, want := tool.runs.Load() == 1, idempotent; got != want || doubt == idempotent {
				t.Errorf("ran: %v, error: %v", got, err)
			}
		})
	}
}

func TestResult_of_a_reconciled_step(t *testing.T) {
	b := bustest.Start(t)
	s := script(t, b, always(events.InDoubt))
	g := gated(t, b)
	ticket, err := g.Submit(t.Context(), updateRecord())
	if err != nil {
		t.Fatal(err)
	}
	s.move("t-42", events.Reconciled, func(st *events.State) {
		st.Effect = &events.Effect{Status: events.EffectDone, By: "ana"}
	})
	out, err := g.Result(t.Context(), ticket)
	if diff := cmp.Diff(gate.Outcome{}, out, cmp.Comparer(events.Secret.Equal)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
