package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
)

const served = `
nats: {embedded: {dir: data, port: 0}}
policy: policy.yaml
channels:
  inbox: {listen: "127.0.0.1:0"}
  cli:
`

// site is a folder with a configuration and the policy it names.
func site(t *testing.T) (config, policyFile string) {
	t.Helper()
	dir := t.TempDir()
	config, policyFile = filepath.Join(dir, "clarify.yaml"), filepath.Join(dir, "policy.yaml")
	check(t, os.WriteFile(config, []byte(served), 0o600))
	check(t, os.WriteFile(policyFile, []byte(asked), 0o600))
	return config, policyFile
}

func start(t *testing.T, config string, log *slog.Logger) *app.Server {
	t.Helper()
	c, err := app.ReadConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := app.ReadPolicy(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.Start(t.Context(), c, p, log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func health(t *testing.T, s *app.Server) events.Health {
	t.Helper()
	var h events.Health
	check(t, s.Bus.Ask(t.Context(), s.Bus.Space().Operator(events.VerbHealth), events.OperatorRequest{}, &h))
	return h
}

// TestStart serves the page and the broker, and starts again on its data with the same key.
func TestStart(t *testing.T) {
	t.Parallel()
	config, _ := site(t)
	s := start(t, config, slog.New(slog.DiscardHandler))
	if h := health(t, s); h.Policy.Name != "roles" {
		t.Errorf("health: %+v", h)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Inbox, nil)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "<html") {
		t.Errorf("the inbox answers %d: %.200s", resp.StatusCode, body)
	}
	key := filepath.Join(filepath.Dir(config), "data", "audit.key")
	before, err := os.ReadFile(key)
	check(t, err)
	check(t, s.Stop())

	s = start(t, config, slog.New(slog.DiscardHandler))
	health(t, s)
	check(t, s.Stop())
	after, err := os.ReadFile(key)
	check(t, err)
	if len(before) < 32 || string(before) != string(after) {
		t.Error("the audit key is another after a restart")
	}
}

// TestServe_reloads_the_policy: a good file becomes the broker's policy, a bad one leaves it with the one it has.
func TestServe_reloads_the_policy(t *testing.T) {
	t.Parallel()
	config, file := site(t)
	heard := make(heardLines, 100)
	s := start(t, config, slog.New(heard))
	ctx, cancel := context.WithCancel(t.Context())
	hup, ended := make(chan os.Signal), make(chan error, 1)
	go func() { ended <- s.Serve(ctx, file, hup) }()

	check(t, os.WriteFile(file, []byte(strings.Replace(asked, "name: roles", "name: changed", 1)), 0o600))
	hup <- os.Interrupt
	heard.until("policy active")
	if h := health(t, s); h.Policy.Name != "changed" {
		t.Errorf("after a reload: %+v", h.Policy)
	}
	check(t, os.WriteFile(file, []byte("kind: nothing"), 0o600))
	hup <- os.Interrupt
	heard.until("policy not read again, the one before stays active")
	if h := health(t, s); h.Policy.Name != "changed" {
		t.Errorf("after a bad reload: %+v", h.Policy)
	}
	cancel()
	check(t, <-ended)
	check(t, s.Stop())
}

// heardLines is a log that a test can wait on.
type heardLines chan string

func (h heardLines) Enabled(context.Context, slog.Level) bool { return true }
func (h heardLines) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h heardLines) WithGroup(string) slog.Handler            { return h }
func (h heardLines) Handle(_ context.Context, r slog.Record) error {
	select {
	case h <- r.Message:
	default: // a test that waits reads faster than this
	}
	return nil
}

func (h heardLines) until(message string) {
	for line := range h {
		if line == message {
			return
		}
	}
}

// TestStart_stops_what_it_started: a start that fails half way leaves nothing behind, so the same folder starts again.
func TestStart_stops_what_it_started(t *testing.T) {
	t.Parallel()
	config, file := site(t)
	first := start(t, config, slog.New(slog.DiscardHandler))
	c, err := app.ReadConfig(config)
	check(t, err)
	p, _, err := app.ReadPolicy(file)
	check(t, err)
	c.NATS.Embedded.Dir = filepath.Join(t.TempDir(), "other")
	c.Channels.Inbox.Listen = strings.TrimSuffix(strings.TrimPrefix(first.Inbox, "http://"), "/")
	if _, err = app.Start(t.Context(), c, p, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("two inboxes on one port")
	}
	check(t, first.Stop())
	again, err := app.Start(t.Context(), c, p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	check(t, again.Stop())
}

// TestStart_follows_its_file: on a server of its own the policy file counts at a start, whatever was pushed before.
func TestStart_follows_its_file(t *testing.T) {
	t.Parallel()
	config, file := site(t)
	s := start(t, config, slog.New(slog.DiscardHandler))
	_, err := s.Bus.PutPolicy(t.Context(), []byte(strings.Replace(asked, "name: roles", "name: pushed", 1)))
	check(t, err)
	check(t, s.Stop())
	check(t, os.WriteFile(file, []byte(strings.Replace(asked, "name: roles", "name: edited", 1)), 0o600))

	s = start(t, config, slog.New(slog.DiscardHandler))
	if h := health(t, s); h.Policy.Name != "edited" {
		t.Errorf("it decides by %s, want the file", h.Policy.Name)
	}
	text, _, err := s.Bus.Policy(t.Context())
	check(t, err)
	if !strings.Contains(string(text), "name: edited") {
		t.Errorf("the active policy is not the file:\n%s", text)
	}
	check(t, s.Stop())
}

// TestReadConfig_key_without_a_value: a channel is turned on by its name alone.
func TestReadConfig_key_without_a_value(t *testing.T) {
	t.Parallel()
	config, _ := site(t)
	c, err := app.ReadConfig(config)
	check(t, err)
	if c.Channels.CLI == nil {
		t.Error("`cli:` does not turn the command line on")
	}
}
