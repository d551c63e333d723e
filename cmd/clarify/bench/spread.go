package bench

import (
	"slices"
	"time"
)

// Millis is a time in milliseconds, as programs that draw and compare read it.
type Millis float64

func millis(d time.Duration) Millis { return Millis(float64(d) / float64(time.Millisecond)) }

// Duration is the same time for people and for reckoning.
func (m Millis) Duration() time.Duration {
	return time.Duration(float64(m) * float64(time.Millisecond))
}

// Spread is the median and the 99th percentile of some durations.
type Spread struct {
	P50 Millis `json:"p50_ms"`
	P99 Millis `json:"p99_ms"`
}

func spread(d []time.Duration) Spread {
	if len(d) == 0 {
		return Spread{}
	}
	slices.Sort(d)
	return Spread{P50: millis(d[len(d)/2]), P99: millis(d[len(d)*99/100])}
}
