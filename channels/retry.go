package channels

import (
	"time"

	"github.com/clarify-broker/clarify/events"
)

// lastAttempt is how long before a question's time is up its last attempt is made.
const lastAttempt = 10 * time.Second

// backoff is the wait after so many failed attempts: 5 s, 20 s, 1 min, 3 min, then 5 min each. jitter, from -1 to 1, moves
// it by up to a fifth, so that the retries of one outage do not come together.
func backoff(failed int, jitter float64) time.Duration {
	steps := []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute, 5 * time.Minute}
	step := steps[min(max(failed, 1), len(steps))-1]
	return step + time.Duration(jitter*float64(step)/5)
}

// retry is what is known when an attempt may have to be made again.
type retry struct {
	fault    *Error
	failed   int       // attempts made, this one included
	notAfter time.Time // zero: no limit
	jitter   float64
}

// wait is how long until the next attempt; 0 means that there is none, and the target is undelivered.
func (r retry) wait(now time.Time) time.Duration {
	switch r.fault.Class {
	case Content, Permanent, Misconfigured:
		return 0
	case Transient, Ambiguous:
	}
	if r.fault.Tries > 0 && r.failed >= r.fault.Tries {
		return 0
	}
	next := max(r.fault.RetryAfter, backoff(r.failed, r.jitter))
	if r.notAfter.IsZero() {
		return next
	}
	left := r.notAfter.Sub(now)
	switch {
	case next < left:
		return next
	case r.fault.RetryAfter < left-lastAttempt:
		return max(left-lastAttempt, 0) // one more, just in time
	}
	return 0
}

// reach is what a failed attempt that will be made again says of its target.
func (e *Error) reach() events.Reach {
	if e.Code == CodeRateLimited {
		return events.Held
	}
	return events.Attempted
}
