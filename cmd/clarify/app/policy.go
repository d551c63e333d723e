package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/policy"
)

// Pushed is the file name that problems of a policy carry that was read from the server.
const Pushed = "the active policy"

// ReadPolicy reads and parses a policy file, and returns its text as well.
func ReadPolicy(file string) (*policy.Policy, []byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the policy: %w", err)
	}
	p, err := policy.Parse(file, text)
	return p, text, err
}

// choosePolicy says what to decide by. On a server of its own the file that a broker was given is meant, and becomes the
// active policy when another one was; on a shared server what was pushed there counts, which all brokers follow.
func (s *Server) choosePolicy(ctx context.Context, c Config) error {
	text, rev, err := s.Bus.Policy(ctx)
	switch {
	case errors.Is(err, bus.ErrNotFound) && s.Policy != nil:
		s.log.Info("policy chosen", "from", "file", "digest", s.Policy.Ref().Digest)
		return nil
	case errors.Is(err, bus.ErrNotFound):
		return errors.New("there is no policy: name a file with policy:, or `clarify policy push <file>`")
	case err != nil:
		return err
	case c.NATS.Embedded != nil && c.Policy != "":
		return s.ownPolicy(ctx, c.Policy, text)
	}
	file := s.Policy
	if s.Policy, err = policy.Parse(Pushed, text); err != nil {
		return err
	}
	if file != nil && file.Ref().Digest != s.Policy.Ref().Digest {
		s.log.Warn("policy file differs from what was pushed to the server, which counts", "file", c.Policy, "file_digest", file.Ref().Digest)
	}
	s.log.Info("policy chosen", "from", "server", "revision", rev, "digest", s.Policy.Ref().Digest)
	return nil
}

// ownPolicy makes the file the active policy of a server that is this process's, unless it is already.
func (s *Server) ownPolicy(ctx context.Context, file string, active []byte) error {
	p, text, err := ReadPolicy(file)
	if err != nil {
		return err
	}
	s.Policy = p
	if !bytes.Equal(text, active) {
		if _, err := s.Bus.PutPolicy(ctx, text); err != nil {
			return err
		}
		s.log.Warn("policy file takes the place of the one that was active", "file", file)
	}
	s.log.Info("policy chosen", "from", "file", "digest", p.Ref().Digest)
	return nil
}

// follow makes every policy that is pushed the broker's. One that does not parse leaves the broker with the one it has.
func (s *Server) follow(b *broker.Broker) func([]byte, uint64) {
	return func(text []byte, rev uint64) {
		p, err := policy.Parse(Pushed, text)
		if err != nil {
			s.log.Error("policy refused, the one before stays active", "revision", rev, "error", err)
			return
		}
		b.Follow(p)
		s.log.Info("policy active", "revision", rev, "digest", p.Ref().Digest)
	}
}

// reload reads the policy file again and makes it the active one of every broker on the server.
func (s *Server) reload(ctx context.Context, file string) {
	if file == "" {
		s.log.Warn("no policy file is configured, nothing is read again")
		return
	}
	_, text, err := ReadPolicy(file)
	if err == nil {
		_, err = s.Bus.PutPolicy(ctx, text)
	}
	if err != nil {
		s.log.Error("policy not read again, the one before stays active", "error", err)
	}
}
