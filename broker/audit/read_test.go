package audit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

func TestRead(t *testing.T) {
	b := bustest.Start(t)
	if all := readAll(t, b, Filter{}); len(all) != 0 {
		t.Errorf("an empty audit has %d records", len(all))
	}
	world := realWorld(t, b, 18)
	world.run(80)
	started(t, b, noAlarm(t))
	exactlyOnce(t, b, world.log)
	all := readAll(t, b, Filter{})
	middle := all[len(all)/2]

	for name, tc := range map[string]struct {
		filter Filter
		want   func(events.Record) bool
	}{
		"one_agent": {Filter{Agent: "bot-1"}, func(r events.Record) bool { return r.Agent == "bot-1" }},
		"one_task":  {Filter{Agent: "bot-1", Task: "t-3"}, func(r events.Record) bool { return r.Task == "t-3" }},
		"since":     {Filter{Since: middle.At}, func(r events.Record) bool { return !r.At.Before(middle.At) }},
		"after":     {Filter{After: middle.Seq}, func(r events.Record) bool { return r.Seq > middle.Seq }},
		"kinds": {Filter{Kinds: []events.Kind{events.Asked, events.Released}}, func(r events.Record) bool {
			return r.Transition != nil && (r.Transition.Kind == events.Asked || r.Transition.Kind == events.Released)
		}},
		"kinds_and_refusals": {Filter{Kinds: []events.Kind{events.Asked}, Refused: WithRefusals}, func(r events.Record) bool {
			return r.Refusal != nil || r.Transition.Kind == events.Asked
		}},
		"refusals": {Filter{Refused: OnlyRefusals}, func(r events.Record) bool { return r.Refusal != nil }},
		"nothing":  {Filter{Agent: "nobody"}, func(events.Record) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []uint64
			for _, r := range all {
				if tc.want(r) {
					want = append(want, r.Seq)
				}
			}
			for _, r := range readAll(t, b, tc.filter) {
				got = append(got, r.Seq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("read %v, want %v", got, want)
			}
			if len(want) == 0 && name != "nothing" {
				t.Error("the history has none")
			}
		})
	}

	t.Run("show", func(t *testing.T) {
		got, err := Show(t.Context(), b, "bot-1", "t-3")
		if err != nil || len(got) == 0 || got[0].Task != "t-3" {
			t.Errorf("%d records, %v", len(got), err)
		}
	})

	t.Run("stops_early", func(t *testing.T) {
		var n atomic.Int32
		for range Read(t.Context(), b, Filter{}) {
			if n.Add(1) == 3 {
				break
			}
		}
		if n.Load() != 3 {
			t.Error("read on")
		}
	})

	for name, f := range map[string]Filter{
		"task_without_agent": {Task: "t-3"}, "unknown_kind": {Kinds: []events.Kind{"paused"}}, "unknown_refused": {Refused: "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range Read(t.Context(), b, f) {
				if err == nil {
					t.Error("no error")
				}
			}
		})
	}

	t.Run("the_context_is_over", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var failed error
		for _, err := range Read(ctx, b, Filter{}) {
			failed = err
		}
		if !errors.Is(failed, context.Canceled) {
			t.Errorf("error %v", failed)
		}
	})
}
