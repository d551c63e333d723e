package webhook

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/channels/channeltest"
)

const (
	secretNew = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretOld = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// receiver is an endpoint's owner: it keeps what it was sent and does as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	does     http.HandlerFunc
	requests []*http.Request
	bodies   [][]byte
	taken    map[string]bool // by webhook-id
}

func startReceiver(t *testing.T, does http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{does: does, taken: map[string]bool{}}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.serve))
	r.Config.ErrorLog = nil
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.requests, r.bodies = append(r.requests, q), append(r.bodies, body)
	does := r.does
	r.mu.Unlock()
	does(w, q)
}

func (r *receiver) take(q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[q.Header.Get("webhook-id")] = true
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// endpoint asks the receiver, trusting its certificate and its loopback address.
func endpoint(t *testing.T, r *receiver, secrets ...string) *Endpoint {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(secrets) == 0 {
		secrets = []string{secretNew}
	}
	e, err := New(Config{URL: r.URL + "/hooks/key-in-the-path", Secrets: secrets, CAFile: ca, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Provider {
		r := startReceiver(t, nil)
		return channeltest.Provider{
			Adapter:  endpoint(t, r),
			Requests: r.count,
			Copies:   func() int { return len(r.taken) },
			Secrets:  []string{secretNew, "key-in-the-path", r.URL},
			Behave: func(b channeltest.Behaviour) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.does = r.behaviour(b)
			},
		}
	})
}

func (r *receiver) behaviour(b channeltest.Behaviour) http.HandlerFunc {
	switch b {
	case channeltest.Busy:
		return status(http.StatusServiceUnavailable, "Retry-After", "7")
	case channeltest.HangsUp:
		return func(_ http.ResponseWriter, q *http.Request) {
			r.take(q)
			panic(http.ErrAbortHandler)
		}
	case channeltest.SaysNothing:
		return status(http.StatusFound, "Location", r.URL+"/elsewhere")
	case channeltest.TooLarge:
		return status(http.StatusRequestEntityTooLarge)
	case channeltest.Gone:
		return status(http.StatusGone)
	case channeltest.Denies:
		return status(http.StatusUnauthorized)
	}
	return func(w http.ResponseWriter, q *http.Request) {
		r.take(q)
		w.WriteHeader(http.StatusNoContent)
	}
}
