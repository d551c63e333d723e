package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/clarify-broker/clarify/channels/inbox"
	"github.com/clarify-broker/clarify/policy"
)

// urlFile is where a server that `clarify dev` started can be reached, so that other commands in the same folder need no
// flags.
const urlFile = "nats.url"

// DevOptions are the choices of `clarify dev`.
type DevOptions struct {
	Dir       string // where the data is kept, and how other commands find the server
	Ephemeral bool   // forget everything at the end
	Port      int    // of nats-server; 0 lets the system choose
	HTTP      string // where the inbox listens; port 0 lets the system choose
	Policy    string // a file; the demo's policy when empty
}

// DevRuns means that another dev has the folder.
type DevRuns struct{ PID string }

func (e *DevRuns) Error() string {
	return "dev already runs in this folder (pid " + cmp.Or(e.PID, "unknown") + ")"
}

// StartDev starts a server for one developer: everything on loopback, without logins, its data kept in a folder.
func StartDev(ctx context.Context, o DevOptions, log *slog.Logger) (*Server, error) {
	if err := Loopback(o.HTTP); err != nil {
		return nil, fmt.Errorf("the inbox has no login in dev, and %s %w", o.HTTP, err)
	}
	p, text, err := devPolicy(o.Policy)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err := lockDev(o.Dir)
	if err != nil {
		return nil, err
	}
	data := o.Dir
	if o.Ephemeral {
		data = ""
	}
	c := Config{
		NATS: NATS{Embedded: &Embedded{Dir: data, Port: &o.Port}},
		Channels: Channels{CLI: &CLI{}, Inbox: &Inbox{
			Listen: o.HTTP, Config: inbox.Config{Zone: "Local"},
		}},
	}
	s := &Server{Policy: p, parts: newStack(), log: log}
	s.parts.push("folder", unlock)
	if err := s.startDev(ctx, c, o.Dir, text); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func devPolicy(file string) (*policy.Policy, []byte, error) {
	if file != "" {
		return ReadPolicy(file)
	}
	text := policy.DemoText()
	p, err := policy.Parse("demo", text)
	return p, text, err
}

// startDev makes the policy the active one whatever was active before: a developer who names a file means it.
func (s *Server) startDev(ctx context.Context, c Config, dir string, text []byte) error {
	if err := s.open(ctx, c); err != nil {
		return err
	}
	if _, err := s.Bus.PutPolicy(ctx, text); err != nil {
		return err
	}
	if err := s.work(ctx, c); err != nil {
		return err
	}
	file := filepath.Join(dir, urlFile)
	if err := os.WriteFile(file, []byte(s.URL+"\n"), 0o600); err != nil {
		return fmt.Errorf("write where the server is: %w", err)
	}
	s.parts.push(urlFile, func() error { return os.Remove(file) })
	return nil
}

// FindURL reads where a server that was started in a folder can be reached. The error is [os.ErrNotExist] when none runs
// there.
func FindURL(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, urlFile))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}
