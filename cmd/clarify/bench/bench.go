// Package bench measures whole clarification cycles, in a closed loop and over public subjects only: candidate, pause,
// answer, release, claim, outcome. What the disk and the server can do at all is measured in the same run, and every figure
// is given as a ratio to it.
package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/gate"
)

// Policy asks one question of the bench's own tool on the bench's own channel.
//
//go:embed policy.yaml
var Policy []byte

const (
	agent   = events.Agent("bench")
	channel = events.Channel("bench")
)

// Plan is how much is measured.
type Plan struct {
	Concurrency []int         // cycles under way at once, one level after the other
	Each        time.Duration // how long new cycles are started at each level
}

// Validate refuses a plan that would measure nothing.
func (p Plan) Validate() error {
	if len(p.Concurrency) == 0 {
		return errors.New("concurrency: is empty; give numbers from 1, such as 1,16,128")
	}
	for _, c := range p.Concurrency {
		if c < 1 {
			return fmt.Errorf("concurrency: is %d; use 1 or more", c)
		}
	}
	if p.Each <= 0 {
		return fmt.Errorf("each: is %s; use a time such as 10s", p.Each)
	}
	return nil
}

// Level is what was measured at one concurrency.
type Level struct {
	Concurrency int     `json:"concurrency"`
	Cycles      int     `json:"cycles"`
	Effects     int64   `json:"effects"`
	Elapsed     float64 `json:"elapsed_s"`
	PerSecond   float64 `json:"cycles_per_second"`
	Release     Spread  `json:"answer_to_release"` // from before the answer is published until a waiter hears of the release
	Pause       Spread  `json:"candidate_to_question"`
	Cycle       Spread  `json:"cycle"`
}

// bench is one agent, one channel and all who wait for either.
type bench struct {
	bus     *bus.Bus
	gate    *gate.Gate
	desk    *channels.Desk
	run     string // in every task's id, so that runs and levels do not meet
	levels  int
	asked   sync.Map
	freed   sync.Map
	effects atomic.Int64
}

// Run measures every level, warm-up first. A cycle that does not end as it should is an error, not a slow cycle.
func Run(ctx context.Context, b *bus.Bus, p Plan, each func(Level)) error {
	g, err := gate.New(b, agent)
	if err != nil {
		return err
	}
	defer g.Close()
	m := &bench{bus: b, gate: g, desk: channels.NewDesk(b, channel, 30*time.Second), run: events.NewID()}
	ctx, cancel := context.WithCancelCause(ctx)
	var around sync.WaitGroup
	for name, part := range map[string]func(context.Context) error{"desk": m.desk.Run, "questions": m.questions, "releases": m.releases} {
		around.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	defer around.Wait()
	defer cancel(nil)
	if _, err := m.level(ctx, 1, 500*time.Millisecond); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	for _, c := range p.Concurrency {
		l, err := m.level(ctx, c, p.Each)
		if err != nil {
			return fmt.Errorf("at concurrency %d: %w", c, err)
		}
		each(l)
	}
	return nil
}

// level runs cycles until the time is over, and waits for those under way.
func (m *bench) level(ctx context.Context, concurrency int, d time.Duration) (Level, error) {
	m.levels++
	before, start := m.effects.Load(), time.Now()
	var all sync.WaitGroup
	laps := make([][]lap, concurrency)
	failures := make([]error, concurrency)
	for w := range concurrency {
		all.Go(func() {
			for n := 0; time.Since(start) < d && ctx.Err() == nil; n++ {
				l, err := m.cycle(ctx, events.Task(fmt.Sprintf("%s-%d-%d-%d", m.run, m.levels, w, n)))
				if err != nil {
					failures[w] = err
					return
				}
				laps[w] = append(laps[w], l)
			}
		})
	}
	all.Wait()
	out := Level{Concurrency: concurrency, Elapsed: time.Since(start).Seconds(), Effects: m.effects.Load() - before}
	var pauses, releases, cycles []time.Duration
	for _, own := range laps {
		for _, l := range own {
			pauses, releases, cycles = append(pauses, l.pause), append(releases, l.release), append(cycles, l.whole)
		}
	}
	out.Cycles = len(cycles)
	out.Pause, out.Release, out.Cycle = spread(pauses), spread(releases), spread(cycles)
	out.PerSecond = float64(out.Cycles) / out.Elapsed
	if err := errors.Join(append(failures, context.Cause(ctx))...); err != nil {
		return out, err
	}
	if out.Effects != int64(out.Cycles) {
		return out, fmt.Errorf("%d effects of %d cycles", out.Effects, out.Cycles)
	}
	return out, nil
}
