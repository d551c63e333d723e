package bus_test

import (
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

func TestPlan(t *testing.T) {
	t.Run("everything_missing", func(t *testing.T) {
		b := bustest.Open(t, bustest.Server(t, embedded.Options{}), bus.Options{})
		plan, err := b.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := "+ CLARIFY_CANDIDATES\n+ CLARIFY_TASKS\n+ CLARIFY_QUESTIONS\n+ CLARIFY_ANSWERS\n+ CLARIFY_AUDIT\n" +
			"+ KV_CLARIFY_POLICY\n+ CLARIFY_ADVISORIES\n"
		if diff := cmp.Diff(want, plan.String()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("applied_leaves_nothing", func(t *testing.T) {
		w := newWorld(t)
		if plan, err := w.Plan(t.Context()); err != nil || len(plan) != 0 {
			t.Errorf("plan %v, error %v", plan, err)
		}
	})
	t.Run("drift", func(t *testing.T) {
		w := newWorld(t)
		drift(t, w, "CLARIFY_ANSWERS", func(c *jetstream.StreamConfig) { c.MaxBytes, c.MaxMsgSize = 1<<20, -1 })
		drift(t, w, "CLARIFY_TASKS", func(c *jetstream.StreamConfig) { c.RePublish = nil })
		plan, err := w.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := "~ CLARIFY_TASKS republish: unset -> map[dest:clarify.wake.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}} " +
			"headers_only:true src:clarify.task.*.*.*]\n" +
			"~ CLARIFY_ANSWERS max_bytes: 1048576 -> 268435456\n~ CLARIFY_ANSWERS max_msg_size: -1 -> 65536\n"
		if diff := cmp.Diff(want, plan.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func drift(t *testing.T, w world, stream string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := w.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	change(&c)
	if _, err := w.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestApply(t *testing.T) {
	w := newWorld(t)
	seq := w.append(t, state("t-1", 1, "asked"), 0)
	drift(t, w, "CLARIFY_TASKS", func(c *jetstream.StreamConfig) {
		c.MaxConsumers = 7
		c.Metadata = map[string]string{"owner": "ops"}
	})
	for range 2 {
		if err := w.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if plan, err := w.Plan(t.Context()); err != nil || len(plan) != 0 {
		t.Errorf("plan %v, error %v", plan, err)
	}
	if got, err := w.LastSeq(t.Context(), bus.Tasks); err != nil || got != seq {
		t.Errorf("the log ends with %d (%v), want %d", got, err, seq)
	}
	s, err := w.js.Stream(t.Context(), "CLARIFY_TASKS")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config.Metadata["owner"]; got != "ops" {
		t.Errorf("metadata that is not Clarify's became %q", got)
	}
}

func TestApply_settings_that_protect(t *testing.T) {
	w := newWorld(t)
	t.Run("log_refuses_deletion", func(t *testing.T) {
		s, err := w.js.Stream(t.Context(), "CLARIFY_TASKS")
		if err != nil {
			t.Fatal(err)
		}
		seq := w.append(t, state("t-1", 1, "asked"), 0)
		if err := s.DeleteMsg(t.Context(), seq); err == nil {
			t.Error("a message of the log was deleted")
		}
	})
	t.Run("audit_refuses_purge", func(t *testing.T) {
		s, err := w.js.Stream(t.Context(), "CLARIFY_AUDIT")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context()); err == nil {
			t.Error("the audit was purged")
		}
	})
	t.Run("synced_where_it_must_be", func(t *testing.T) {
		for name, want := range map[string]jetstream.PersistModeType{
			"CLARIFY_CANDIDATES": jetstream.AsyncPersistMode, "CLARIFY_QUESTIONS": jetstream.AsyncPersistMode,
			"CLARIFY_TASKS": jetstream.DefaultPersistMode, "CLARIFY_ANSWERS": jetstream.DefaultPersistMode,
			"CLARIFY_AUDIT": jetstream.DefaultPersistMode,
		} {
			s, err := w.js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.CachedInfo().Config.PersistMode; got != want {
				t.Errorf("%s persists %s, want %s", name, got, want)
			}
		}
	})
}

func TestOpen_another_space(t *testing.T) {
	s := bustest.Server(t, embedded.Options{})
	one, two := bustest.Open(t, s, bus.Options{}), bustest.Open(t, s, bus.Options{Space: "staging"})
	for _, b := range []*bus.Bus{one, two} {
		if err := b.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if plan, err := b.Plan(t.Context()); err != nil || len(plan) != 0 {
			t.Errorf("plan %v, error %v", plan, err)
		}
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, space := range []string{"Staging", "a.b", "*", strings.Repeat("x", 65)} {
		if _, err := bus.Open(t.Context(), nc, bus.Options{Space: events.Space(space)}); err == nil {
			t.Errorf("space %q was accepted", space)
		}
	}
}
