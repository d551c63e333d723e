package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

const (
	codeRedirect = "redirect"
	codeGone     = "gone"
	codeAborted  = "aborted"
	codeBlocked  = "blocked_address"
	codeTLS      = "tls_required"
	codeMethod   = "method_not_allowed"

	// A path or name that is not there may be a deployment in progress; three attempts are half a minute.
	triesForAbsent = 3
	maxRetryAfter  = 24 * time.Hour
)

// classify judges an answer by its status: what it proves, or what is wrong and what to do about it.
func classify(status int, header http.Header, body int, now time.Time) (events.Reach, *channels.Error) {
	if strings.EqualFold(header.Get("webhook-delivery"), "abort-message") {
		return "", channels.Fault(channels.Permanent, codeAborted, nil)
	}
	switch {
	case status == http.StatusNoContent, status == http.StatusCreated, status == http.StatusOK && body > 0:
		return events.Delivered, nil
	case status >= 200 && status < 300, status == http.StatusConflict: // 409: it has this webhook-id already
		return events.ReachAccepted, nil
	case status >= 300 && status < 400:
		return "", channels.Fault(channels.Permanent, codeRedirect, nil)
	}
	return "", fault(status, header, now)
}

func fault(status int, header http.Header, now time.Time) *channels.Error {
	switch status {
	case http.StatusGone:
		return channels.Fault(channels.Permanent, codeGone, nil)
	case http.StatusRequestEntityTooLarge:
		return channels.Fault(channels.Content, channels.CodeTooLong, nil)
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return channels.Fault(channels.Content, channels.CodeBadFormat, nil)
	case http.StatusUnauthorized, http.StatusForbidden:
		return channels.Fault(channels.Misconfigured, channels.CodeAuth, nil)
	case http.StatusMethodNotAllowed:
		return channels.Fault(channels.Misconfigured, codeMethod, nil)
	case http.StatusNotFound:
		return &channels.Error{Class: channels.Transient, Code: channels.CodeNoTarget, Tries: triesForAbsent}
	case http.StatusTooManyRequests:
		return &channels.Error{Class: channels.Transient, Code: channels.CodeRateLimited, RetryAfter: retryAfter(header, now)}
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return &channels.Error{Class: channels.Transient, Code: channels.CodeProvider, RetryAfter: retryAfter(header, now)}
	}
	if status >= 500 {
		return &channels.Error{Class: channels.Transient, Code: channels.CodeProvider, RetryAfter: retryAfter(header, now)}
	}
	return channels.Fault(channels.Permanent, channels.CodeBadFormat, nil)
}

// retryAfter reads seconds or an HTTP date (RFC 9110 §10.2.3), at most a day.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

// unanswered judges an attempt that got no answer. The webhook-id is the idempotency key, so that one whose body may have
// arrived can simply be made again.
func unanswered(err error, sent bool) *channels.Error {
	if errors.Is(err, errBlocked) {
		return channels.Fault(channels.Misconfigured, codeBlocked, err)
	}
	if badCertificate(err) {
		return channels.Fault(channels.Misconfigured, codeTLS, err)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return &channels.Error{Class: channels.Transient, Code: channels.CodeNoTarget, Tries: triesForAbsent, Err: err}
	}
	switch {
	case !sent:
		return channels.Fault(channels.Transient, channels.CodeBeforeSend, err)
	case timedOut(err):
		return channels.Fault(channels.Transient, channels.CodeTimeout, err)
	}
	return channels.Fault(channels.Transient, channels.CodeAfterSend, err)
}

func badCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true // it does not speak TLS
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

func timedOut(err error) bool {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}
