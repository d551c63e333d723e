package broker

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/clarify-broker/clarify/events/bus"
)

func TestFreeze(t *testing.T) {
	checked := false
	begin := func() *freeze {
		return &freeze{log: slog.New(slog.DiscardHandler), checked: func() bool { return checked }}
	}
	t.Run("frozen_until_both_are_known", func(t *testing.T) {
		f := begin()
		if f.why() == "" {
			t.Fatal("releases before anything is known")
		}
		f.hear(bus.Freeze{})
		if f.why() == "" {
			t.Fatal("releases before the log was compared with the audit")
		}
		checked = true
		if why := f.why(); why != "" {
			t.Fatal(why)
		}
	})
	t.Run("an_old_thaw_does_not_end_an_alarm", func(t *testing.T) {
		f := begin()
		f.raise(errors.New("lost"))
		f.hear(bus.Freeze{By: "an operator, last week"})
		if f.why() == "" {
			t.Fatal("the alarm is gone")
		}
		f.hear(bus.Freeze{By: "an operator, now"})
		if why := f.why(); why != "" {
			t.Fatal(why)
		}
	})
	t.Run("an_operator_freezes_and_thaws", func(t *testing.T) {
		f := begin()
		f.hear(bus.Freeze{Reason: "incident"})
		if f.why() != "incident" {
			t.Fatal(f.why())
		}
		f.hear(bus.Freeze{})
		if why := f.why(); why != "" {
			t.Fatal(why)
		}
	})
}
