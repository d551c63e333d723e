package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// maxResponse is how much of an answer is read, in bytes.
const maxResponse = 64 << 10

// Endpoint asks one URL.
type Endpoint struct {
	name   events.Channel
	url    string
	keys   [][]byte
	client *http.Client
}

// New makes the adapter of a configured endpoint.
func New(c Config) (*Endpoint, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.timeout()}
	if !c.AllowPrivate {
		dialer.Control = publicOnly(special())
	}
	return &Endpoint{name: c.name(), url: c.URL, keys: keys, client: &http.Client{
		Timeout: c.timeout(),
		// A redirect would hand the signed question to somebody else, and makes a GET of a POST.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would dial for us, past the guard
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout:    c.timeout(),
			MaxResponseHeaderBytes: 16 << 10,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        90 * time.Second,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
		},
	}}, nil
}

// Name is the channel's name.
func (e *Endpoint) Name() events.Channel { return e.name }

// Deliver POSTs the question once.
func (e *Endpoint) Deliver(ctx context.Context, q events.Question) (events.Receipt, error) {
	return e.post(ctx, q)
}

// Update POSTs the closing once, as a message of its own.
func (e *Endpoint) Update(ctx context.Context, q events.Question) (events.Receipt, error) {
	return e.post(ctx, q)
}

// Close lets go of idle connections.
func (e *Endpoint) Close() { e.client.CloseIdleConnections() }

func (e *Endpoint) post(ctx context.Context, q events.Question) (events.Receipt, error) {
	id, now := channels.Key(q), time.Now()
	body, err := events.Seal(events.Envelope{ID: id, Source: "/channels/" + string(e.name), Time: now.UTC(), Data: e.thin(q)})
	if err != nil {
		return events.Receipt{}, channels.Fault(channels.Permanent, channels.CodeBadFormat, err)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return events.Receipt{}, channels.Fault(channels.Misconfigured, channels.CodeBadFormat, err)
	}
	r.GetBody = nil // one attempt: the transport must not send the body a second time on its own
	r.Header.Set("Content-Type", events.ContentType+"; charset=utf-8")
	r.Header.Set("User-Agent", "clarify")
	sign(r.Header, e.keys, id, now, body)
	answer, err := e.client.Do(r)
	if err != nil {
		return events.Receipt{}, unanswered(err, sent.Load())
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(answer.Body, maxResponse))
	if err != nil && n == 0 {
		return events.Receipt{}, unanswered(err, true)
	}
	reach, refused := classify(answer.StatusCode, answer.Header, int(n), now)
	if refused != nil {
		refused.Err = errors.Join(refused.Err, fmt.Errorf("status %d", answer.StatusCode))
		return events.Receipt{}, refused
	}
	return events.Receipt{State: reach, ProviderID: id, At: now.UTC()}, nil
}

// thin leaves out what the endpoint has no use for: other channels' addresses of the same people, and our own receipts.
func (e *Endpoint) thin(q events.Question) events.Question {
	q.Delivery.Receipt = events.Receipt{}
	to := q.Delivery.To
	q.Delivery.To = nil
	for _, p := range to {
		if address, ok := p.Addresses[string(e.name)]; ok {
			p.Addresses = map[string]string{string(e.name): address}
		} else {
			p.Addresses = nil
		}
		q.Delivery.To = append(q.Delivery.To, p)
	}
	return q
}
