package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events/bus/embedded"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func run(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStart_locked_folder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := run(t, embedded.Options{Dir: dir})
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if err == nil {
		t.Fatal("two servers have one folder")
	}
	for _, want := range []string{dir, fmt.Sprintf("pid %d", os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	run(t, embedded.Options{Dir: dir})
}

func TestStart_folder(t *testing.T) {
	t.Run("is_private", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "data")
		run(t, embedded.Options{Dir: dir})
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o700 {
			t.Errorf("mode %o, want 700", got)
		}
	})
	t.Run("temporary_is_removed", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		s := run(t, embedded.Options{})
		during, err := os.ReadDir(os.TempDir())
		if err != nil || len(during) != 1 {
			t.Fatalf("%d folders while it runs (%v), want 1", len(during), err)
		}
		if err := s.Shutdown(); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadDir(os.TempDir()); err != nil || len(after) != 0 {
			t.Errorf("%d folders are left (%v)", len(after), err)
		}
	})
	t.Run("cannot_be_made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.Start(t.Context(), embedded.Options{Dir: file}); err == nil {
			t.Error("a file was taken for a folder")
		}
	})
}

func TestStart_listens_only_when_asked(t *testing.T) {
	if url := run(t, embedded.Options{}).URL(); url != "" {
		t.Errorf("it listens on %s", url)
	}
	s := run(t, embedded.Options{Host: "127.0.0.1"})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestStart_port_in_use(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	taken := embedded.Options{Dir: dir, Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	if _, err := embedded.Start(t.Context(), taken); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Fatalf("got %v, want that the address is in use", err)
	}
	run(t, embedded.Options{Dir: dir}) // the failed start has let go of the folder
}

func TestStart_ended_context(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := embedded.Start(ctx, embedded.Options{Dir: t.TempDir()})
	if err == nil { // it was ready at once
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestStart_configure(t *testing.T) {
	s := run(t, embedded.Options{Host: "127.0.0.1", Configure: func(o *server.Options) {
		o.Users = []*server.User{{Username: "broker", Password: "pw"}}
	}})
	if nc, err := nats.Connect(s.URL()); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("without credentials: got %v, want an authorization error", err)
	}
	nc, err := s.Connect(nats.UserInfo("broker", "pw"))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestStart_store_limit(t *testing.T) {
	nc, err := run(t, embedded.Options{MaxStore: 1 << 20}).Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 2 << 20}); err == nil {
		t.Error("a stream may take more than the server's limit")
	}
}

func TestStart_logs_warnings(t *testing.T) {
	var text bytes.Buffer
	s := run(t, embedded.Options{
		Logger:    slog.New(slog.NewTextHandler(&text, nil)),
		Configure: func(o *server.Options) { o.MaxPayload = 16 << 20 }, // the server warns of more than 8 MiB
	})
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "level=WARN") || strings.Contains(text.String(), "level=INFO") {
		t.Errorf("logged: %s", text.String())
	}
}
