package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// Config is one endpoint that is asked by webhook.
type Config struct {
	Channel events.Channel `json:"channel"` // the channel's name; webhook when empty
	URL     string         `json:"url"`
	Secrets []string       `json:"secrets,omitempty"` // whsec_…, newest first: all of them sign and all of them check
	// SecretFile holds secrets, one a line, in place of Secrets.
	SecretFile string          `json:"secret_file,omitzero"`
	AllowHosts []string        `json:"allow_hosts,omitempty"` // when given, the URL's host must be one of them
	CAFile     string          `json:"ca_file,omitzero"`      // PEM roots in place of the system's
	Timeout    events.Duration `json:"timeout,omitzero"`      // of one attempt; 10 s when 0
	// AllowPrivate also lets the URL be plain http, and resolve to loopback, private or otherwise special addresses. It is
	// for tests and for endpoints inside one's own network: whoever controls the name then reaches that network.
	AllowPrivate bool `json:"allow_private,omitzero"`
}

// Validate checks everything but the contents of files.
func (c Config) Validate() error {
	if _, err := events.ParseChannel(string(c.name())); err != nil {
		return err
	}
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return errors.New("webhook.url: is missing; give the https URL that is asked")
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("webhook.url: is not an absolute URL; write it like https://hooks.example.com/clarify")
	case u.Scheme != "https" && (u.Scheme != "http" || !c.AllowPrivate):
		return errors.New("webhook.url: is not https; http needs allow_private: true")
	case u.User != nil || u.Fragment != "":
		return errors.New("webhook.url: carries a user or a fragment; remove it, messages are signed instead")
	case len(c.AllowHosts) > 0 && !slices.ContainsFunc(c.AllowHosts, func(h string) bool { return strings.EqualFold(h, u.Hostname()) }):
		return errors.New("webhook.url: its host is not one of allow_hosts")
	case (len(c.Secrets) == 0) == (c.SecretFile == ""):
		return errors.New("webhook.secrets: give either secrets or secret_file; `openssl rand -base64 32` after whsec_ makes one")
	case c.Timeout != 0 && (time.Duration(c.Timeout) < time.Second || time.Duration(c.Timeout) > time.Minute):
		return errors.New("webhook.timeout: use 1s to 1m, or leave it out for 10s")
	}
	_, err = parseSecrets(c.Secrets)
	return err
}

func (c Config) name() events.Channel {
	if c.Channel == "" {
		return "webhook"
	}
	return c.Channel
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return 10 * time.Second
	}
	return time.Duration(c.Timeout)
}

// keys reads the secrets from where the configuration says.
func (c Config) keys() ([][]byte, error) {
	if c.SecretFile == "" {
		return parseSecrets(c.Secrets)
	}
	text, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("webhook.secret_file: %w", err)
	}
	lines := strings.Fields(string(text))
	if len(lines) == 0 {
		return nil, errors.New("webhook.secret_file: is empty; put one whsec_… secret a line")
	}
	return parseSecrets(lines)
}

func (c Config) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("webhook.ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("webhook.ca_file: holds no PEM certificate")
	}
	return pool, nil
}
