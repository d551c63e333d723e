package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/google/go-cmp/cmp"
)

const slowTask = events.Task("slow")

// serve answers state requests: what the task's name asks for.
func (w world) serve(t testing.TB, workers int) (stop func() error) {
	t.Helper()
	pattern := w.Space().AgentState("*", "*")
	return start(t, func(ctx context.Context) error {
		return w.Serve(ctx, pattern, "broker", workers, func(ctx context.Context, r bus.Request) (any, error) {
			var req events.StateRequest
			if err := events.Decode(r.Body, 1<<10, &req); err != nil {
				return nil, err
			}
			switch r.Subject.Task {
			case slowTask:
				<-ctx.Done()
				return nil, ctx.Err()
			case "busy":
				time.Sleep(time.Second)
			case "broken":
				return nil, errors.New("a bug that names ana@example.org")
			case "later":
				return nil, fmt.Errorf("append: %w", bus.ErrReread)
			}
			return events.StateReply{View: &events.View{Agent: r.Subject.Agent, Task: r.Subject.Task, Version: req.Version}}, nil
		})
	})
}

func (w world) ask(t testing.TB, task events.Task, request any) (events.StateReply, error) {
	t.Helper()
	var reply events.StateReply
	err := w.Ask(t.Context(), w.Space().AgentState(agent, task), request, &reply)
	return reply, err
}

func TestAsk(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.ask(t, "t-1", events.StateRequest{}); !errors.Is(err, bus.ErrNobody) {
			t.Errorf("nobody serves: got %v, want ErrNobody", err)
		}
		w.serve(t, 4)
		synctest.Wait()
		reply, err := w.ask(t, "t-1", events.StateRequest{Version: 7})
		if err != nil || reply.View == nil || reply.View.Task != "t-1" || reply.View.Version != 7 {
			t.Fatalf("got %+v, %v", reply, err)
		}
		for _, test := range []struct {
			task    events.Task
			request any
			want    bus.Failed
		}{
			{"t-1", map[string]int{"verzion": 1}, bus.Failed{Code: bus.CodeInvalid, Field: "verzion"}},
			{"broken", events.StateRequest{}, bus.Failed{Code: bus.CodeInternal}},
			{"later", events.StateRequest{}, bus.Failed{Code: bus.CodeUnavailable}},
		} {
			_, err := w.ask(t, test.task, test.request)
			failed, ok := errors.AsType[*bus.Failed](err)
			if !ok {
				t.Errorf("%s: got %v, want a Failed", test.task, err)
				continue
			}
			if diff := cmp.Diff(test.want, *failed); diff != "" {
				t.Error(diff)
			}
			if errors.Is(err, bus.ErrNobody) != (failed.Code == bus.CodeUnavailable) {
				t.Errorf("%s: ErrNobody and unavailable must go together", failed.Code)
			}
		}
	})
}

func TestAsk_patience(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.serve(t, 1)
		synctest.Wait()
		if _, err := w.ask(t, slowTask, events.StateRequest{}); !errors.Is(err, bus.ErrNobody) {
			t.Errorf("a broker that is too slow: got %v, want ErrNobody", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Ask(ctx, w.Space().AgentState(agent, slowTask), events.StateRequest{}, &events.StateReply{})
		if !errors.Is(err, bus.ErrNobody) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that is too short: got %v, want ErrNobody and the context's error", err)
		}
		// A broker that stops says so to those it has not answered yet.
		var wg sync.WaitGroup
		wg.Go(func() { _, err = w.ask(t, slowTask, events.StateRequest{}) })
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if failed, ok := errors.AsType[*bus.Failed](err); !ok || failed.Code != bus.CodeUnavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	})
}

func TestServe_workers(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(t, 2)
		synctest.Wait()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := w.ask(t, "busy", events.StateRequest{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := time.Since(begin); got != 3*time.Second {
			t.Errorf("6 requests of 1s took two workers %s, want 3s", got)
		}
	})
}

func TestListen(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		space := w.Space()
		heard := make(chan bus.Message, 8)
		for _, pattern := range []string{space.Wake(agent, "*", "*"), space.Verdict(events.Place{Channel: "slack", Agent: "*", Task: "*"})} {
			if pattern[len(pattern)-1] == '0' { // any version
				pattern = pattern[:len(pattern)-1] + "*"
			}
			start(t, func(ctx context.Context) error {
				return w.Listen(ctx, pattern, func(m bus.Message) { heard <- m })
			})
		}
		synctest.Wait()

		seq := w.append(t, state("t-1", 1, events.Asked), 0)
		m := receive(t, heard)
		if m.Subject.Kind != events.Asked || m.Subject.Task != "t-1" || m.Seq != seq || m.Stored.IsZero() || m.Envelope.Data != nil {
			t.Errorf("the log's wake-up: %+v", m)
		}
		if _, err := w.AppendAll(t.Context(), []bus.Entry{w.entry(state("t-2", 1, events.Asked), 0), w.entry(state("t-3", 1, events.Asked), 0)}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []events.Task{"t-2", "t-3"} {
			if m := receive(t, heard); m.Subject.Task != want {
				t.Errorf("a batch's wake-up is of %s, want %s", m.Subject.Task, want)
			}
		}
		if err := w.Wake(space.Wake(agent, "t-1", "refused")); err != nil {
			t.Fatal(err)
		}
		if m := receive(t, heard); m.Subject.Kind != "refused" || m.Seq != 0 {
			t.Errorf("a broker's wake-up: %+v", m)
		}
		place := events.Place{Channel: "slack", Agent: agent, Task: "t-1", Version: 1}
		verdict := events.Verdict{Agent: agent, Task: "t-1", Version: 1, Accepted: true}
		for _, told := range []events.Verdict{{Agent: agent, Task: "t-9", Version: 1}, verdict} { // the first is not the subject's
			if err := w.Tell(space.Verdict(place), events.Envelope{Data: told}); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := receive(t, heard).Envelope.Data.(events.Verdict); !ok || !got.Accepted {
			t.Errorf("heard %+v", got)
		}
	})
}

// A rejected append must wake nobody.
func TestListen_hears_stored_states_only(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s, err := w.Subscribe(t.Context(), w.Space().Wake("*", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan bus.Message, 8)
		start(t, func(ctx context.Context) error { return s.Hear(ctx, func(m bus.Message) { heard <- m }) })
		if _, err := w.Append(t.Context(), w.entry(state("t-1", 1, events.Asked), 5)); !errors.Is(err, bus.ErrReread) {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(heard) != 0 {
			t.Error("a state that was not stored woke somebody")
		}
	})
}
