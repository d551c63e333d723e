package bus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/google/go-cmp/cmp"
)

func TestPolicy(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		if _, _, err := w.Policy(t.Context()); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if _, err := w.PutPolicy(t.Context(), nil); err == nil {
			t.Error("an empty policy was put")
		}
		type put struct {
			Text string
			Rev  uint64
		}
		var heard []put
		watch := func() (stop func() error) {
			return start(t, func(ctx context.Context) error {
				return w.WatchPolicy(ctx, func(text []byte, rev uint64) { heard = append(heard, put{string(text), rev}) })
			})
		}
		stop := watch()
		synctest.Wait()
		for _, text := range []string{"one", "two"} {
			if _, err := w.PutPolicy(t.Context(), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		text, rev, err := w.Policy(t.Context())
		if err != nil || string(text) != "two" || rev != 2 {
			t.Errorf("got %q at %d, %v", text, rev, err)
		}
		watch()
		synctest.Wait()
		if diff := cmp.Diff([]put{{"one", 1}, {"two", 2}, {"two", 2}}, heard); diff != "" {
			t.Error(diff)
		}
	})
}
