package integration_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/nats-io/nats.go/jetstream"
)

// TestFull fills the store until new candidates are refused, and shows that what was under way is still answered and run.
func TestFull(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorldOn(t, embedded.Options{Dir: t.TempDir(), MaxStore: 1 << 30})
		under := w.do(t.Context(), juans("under-way"))
		q := w.question()
		w.fill(730 << 20)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		err := <-w.do(t.Context(), juans("late"))
		if r, is := errors.AsType[*gate.Refused](err); !is || r.Why != events.TooLarge {
			t.Fatalf("a candidate ended with %v", err)
		}
		if v := w.answer(q, "ana", "c-207"); !v.Accepted {
			t.Fatalf("refused %+v", v.Refusal)
		}
		if err := <-under; err != nil {
			t.Fatal(err)
		}
		w.wantEffects(1)
	})
}

// fill has another stream of the server hold so many bytes.
func (w *world) fill(n int) {
	w.t.Helper()
	nc, err := w.server.Connect()
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := js.CreateStream(w.t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}); err != nil {
		w.t.Fatal(err)
	}
	text := make([]byte, 900<<10)
	for i := 0; i < n; i += len(text) {
		if _, err := js.Publish(w.t.Context(), "other", text); err != nil {
			w.t.Fatal(err)
		}
	}
}
