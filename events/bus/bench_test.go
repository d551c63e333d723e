package bus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// BenchmarkFloor is what the disk can do: 4 KiB written and synced, one after the other. Nothing that is durable by itself
// can be faster.
func BenchmarkFloor(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4<<10)
	for b.Loop() {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// big is a state of about 4 KiB, the size of the floor's block.
func big(task events.Task) events.State {
	s := state(task, 1, events.Asked)
	s.Note = strings.Repeat("x", 3<<10)
	return s
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			w := newWorld(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						e := w.entry(big(events.Task(fmt.Sprintf("t-%d", n))), 0)
						if _, err := w.Append(b.Context(), e); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func BenchmarkAppendAll(b *testing.B) {
	for _, size := range []int{16, 64} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			w := newWorld(b)
			n := 0
			for b.Loop() {
				entries := make([]bus.Entry, size)
				for i := range entries {
					n++
					entries[i] = w.entry(big(events.Task(fmt.Sprintf("t-%d", n))), 0)
				}
				if _, err := w.AppendAll(b.Context(), entries); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkConsume is the way of candidates through a queue: stored, handed out, acknowledged.
func BenchmarkConsume(b *testing.B) {
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			w := newWorld(b)
			for i := range b.N {
				if _, err := w.js.PublishMsg(b.Context(), w.raw(b, i)); err != nil {
					b.Fatal(err)
				}
			}
			done := make(chan struct{}, b.N)
			b.ResetTimer()
			w.consume(b, bus.Consumer{Stream: bus.Candidates, Name: "intake", Workers: workers}, func(context.Context, bus.Message) error {
				done <- struct{}{}
				return nil
			})
			for range b.N {
				<-done
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func (w world) raw(t testing.TB, i int) *nats.Msg {
	t.Helper()
	task := events.Task(fmt.Sprintf("t-%d", i))
	body, err := events.Seal(events.Envelope{Source: "/test", Data: candidate(task)})
	if err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg(w.Space().Candidate(agent, task))
	m.Header.Set("Content-Type", events.ContentType)
	m.Data = body
	return m
}
