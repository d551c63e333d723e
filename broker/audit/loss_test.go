package audit

import (
	"errors"
	"slices"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats.go/jetstream"
)

// ownServer is a bus whose server the test may spoil.
func ownServer(t *testing.T) (*bus.Bus, jetstream.JetStream) {
	t.Helper()
	server := bustest.Server(t, embedded.Options{})
	b := bustest.Open(t, server, bus.Options{})
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return b, js
}

func TestWriterRecordsWhatCannotBeRead(t *testing.T) {
	b, js := ownServer(t)
	world := realWorld(t, b, 15)
	world.run(5)
	for _, subject := range []string{"clarify.task.bot-0.t-9.asked", "clarify.task.bot-0.no!token.asked", "clarify.refused.bot-0.t-9.x"} {
		if _, err := js.Publish(t.Context(), subject, []byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	world.run(5)
	started(t, b, noAlarm(t))
	until(t, b, world.log[len(world.log)-1].Seq)
	var unreadable int
	for _, r := range readAll(t, b, Filter{}) {
		if r.Unreadable != "" {
			unreadable++
		}
	}
	if unreadable != 3 {
		t.Errorf("%d unreadable messages are on record, want 3", unreadable)
	}
}

func TestWriterRaisesLoss(t *testing.T) {
	for name, refill := range map[string]int{"the_log_is_shorter": 10, "the_log_has_grown_again": 90} {
		t.Run(name, func(t *testing.T) {
			b, js := ownServer(t)
			world := realWorld(t, b, 16)
			world.run(60)
			_, stop := started(t, b, noAlarm(t))
			until(t, b, world.log[len(world.log)-1].Seq)
			stop()
			loseLog(t, b, js)
			after := realWorld(t, b, 17)
			after.run(refill) // before anybody has noticed

			_, stop, alarms := raised(t, b)
			if err := <-alarms; !errors.Is(err, ErrLogWentBack) {
				t.Errorf("alarm %v", err)
			}
			after.run(20)
			untilAfter(t, b, uint64(len(world.log))+1, after.log[len(after.log)-1].Seq)
			stop()
			all := readAll(t, b, Filter{})
			if got, want := logs(all[len(world.log)+1:]), sequences(after.log); !slices.Equal(got, want) {
				t.Errorf("recorded after the loss %v, want %v", got, want)
			}
			lossAlone(t, all)
		})
	}
}

// TestWriterRaisesLossWhileItRuns has the log come back shorter under a writer that waits for messages.
func TestWriterRaisesLossWhileItRuns(t *testing.T) {
	b, js := ownServer(t)
	world := realWorld(t, b, 16)
	world.run(30)
	_, _, alarms := raised(t, b)
	until(t, b, world.log[len(world.log)-1].Seq)
	loseLog(t, b, js)
	if err := <-alarms; !errors.Is(err, ErrLogWentBack) {
		t.Errorf("alarm %v", err)
	}
}

func TestAcknowledge(t *testing.T) {
	b, js := ownServer(t)
	world := realWorld(t, b, 16)
	world.run(30)
	w, stop := started(t, b, noAlarm(t))
	until(t, b, world.log[len(world.log)-1].Seq)
	if err := w.Acknowledge(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}
	stop()
	loseLog(t, b, js)
	for _, task := range []events.Task{"t-7", "t-8"} { // until it is acknowledged
		_, stop, alarms := raised(t, b)
		if err := <-alarms; !errors.Is(err, ErrLogWentBack) {
			t.Errorf("alarm %v", err)
		}
		after := realWorld(t, b, 17)
		after.propose(&life{agent: "bot-0", task: task})
		untilAfter(t, b, uint64(len(world.log))+1, after.log[0].Seq)
		stop()
	}
	before := len(readAll(t, b, Filter{}))
	for range 2 {
		if err := w.Acknowledge(t.Context(), "ops"); err != nil {
			t.Fatal(err)
		}
	}
	_, stop, alarms := raised(t, b)
	after := realWorld(t, b, 18)
	after.propose(&life{agent: "bot-0", task: "t-9"})
	untilAfter(t, b, uint64(before), after.log[0].Seq)
	stop()
	if len(alarms) > 0 {
		t.Errorf("alarm %v", <-alarms)
	}
	all := readAll(t, b, Filter{})
	if acknowledged := all[before].Loss; len(all) != before+2 || acknowledged == nil || acknowledged.By != "ops" {
		t.Errorf("%d records, %+v", len(all)-before, acknowledged)
	}
	lossAlone(t, all)
}

// loseLog has the task log come back empty.
func loseLog(t *testing.T, b *bus.Bus, js jetstream.JetStream) {
	t.Helper()
	if err := js.DeleteStream(t.Context(), "CLARIFY_TASKS"); err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// raised starts a writer whose alarms can be waited for.
func raised(t *testing.T, b *bus.Bus) (*Writer, func(), chan error) {
	t.Helper()
	alarms := make(chan error, 9)
	w, stop := started(t, b, func(err error) { alarms <- err })
	return w, stop, alarms
}

func lossAlone(t *testing.T, all []events.Record) {
	t.Helper()
	report := Verify(each(all))
	if len(report.Violations) != 1 || report.Violations[0].Guarantee != 9 || report.Violations[0].Name != "loss" {
		t.Errorf("violations %v, want the loss alone", report.Violations)
	}
}

func logs(all []events.Record) (out []uint64) {
	for _, r := range all {
		out = append(out, r.Log)
	}
	return out
}

func sequences(log []bus.Message) (out []uint64) {
	for _, m := range log {
		out = append(out, m.Seq)
	}
	return out
}
