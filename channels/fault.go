package channels

import (
	"context"
	"errors"
	"time"
)

// Class is what an attempt's failure means for the next one. Its zero value is invalid.
type Class uint8

// The classes of failures.
const (
	Transient     Class = iota + 1 // certainly not accepted; the same request may work later
	Ambiguous                      // may have been accepted: find out, or rely on the idempotency key
	Content                        // certainly not accepted because of this rendering
	Permanent                      // this target can never work as it is configured
	Misconfigured                  // the adapter itself is misconfigured: an operator must act
)

func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Ambiguous:
		return "ambiguous"
	case Content:
		return "content"
	case Permanent:
		return "permanent"
	case Misconfigured:
		return "config"
	}
	return "invalid"
}

// Codes of failures that any channel can have. They are stable and few, so that they can label a metric; an adapter adds
// its provider's own.
const (
	CodeRateLimited  = "rate_limited"
	CodeProvider     = "provider_5xx"
	CodeBeforeSend   = "network_before_send"
	CodeAfterSend    = "network_after_send"
	CodeTimeout      = "timeout_after_send"
	CodeAuth         = "auth_invalid"
	CodeNoTarget     = "target_not_found"
	CodeTooLong      = "too_long"
	CodeBadFormat    = "bad_format"
	CodeNoEvidence   = "no_evidence" // the provider said yes without saying what it took
	CodeDeadline     = "deadline"    // the question's time was up before anybody was reached
	CodeUnclassified = "internal"
)

// Error is why an attempt failed.
type Error struct {
	Class      Class
	Code       string        // stable and machine-readable
	RetryAfter time.Duration // the provider's own wish, 0 when it has none
	Tries      int           // transient faults only: this many attempts in all, then it counts as permanent; 0 is no limit
	Err        error         // for a programme that wants the cause
}

// Error names the class and the code. It leaves the cause out: providers' errors quote URLs, addresses and bodies.
func (e *Error) Error() string { return e.Class.String() + " " + e.Code }

func (e *Error) Unwrap() error { return e.Err }

// Fault makes an [*Error] without a wish of the provider's.
func Fault(c Class, code string, err error) *Error { return &Error{Class: c, Code: code, Err: err} }

// ClassOf returns the class of an attempt's error. An error that says nothing of itself is ambiguous, since the message
// may have left the process.
func ClassOf(err error) Class { return faultOf(err).Class }

// faultOf returns what is known of an attempt's error.
func faultOf(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok && f.Class >= Transient && f.Class <= Misconfigured {
		return f
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{Class: Ambiguous, Code: CodeTimeout, Err: err}
	}
	return &Error{Class: Ambiguous, Code: CodeUnclassified, Err: err}
}
