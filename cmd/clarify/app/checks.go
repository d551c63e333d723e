package app

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// Loopback refuses an address that others than this machine can reach, and what is no address. Of names only localhost is
// taken, since any other may mean another machine tomorrow.
func Loopback(address string) error {
	if err := checkListen(address); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return errors.New("is not on loopback; write it like 127.0.0.1:8420")
}

// checkURLs checks what NATS connects to: one URL, or several with commas between them. They may hold a password, so that
// the problem does not repeat them.
func checkURLs(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("is not the URL of a NATS server; write it like nats://host:4222")
		}
	}
	return nil
}

// checkFiles reports the files that the configuration names and that cannot be used, at the place that names them.
func (c Config) checkFiles(r *reader) {
	type named struct{ path, file string }
	files := []named{{"policy", c.Policy}, {"nats.creds", c.NATS.Creds}}
	for i, w := range c.Channels.Webhook {
		at := fmt.Sprintf("channels.webhook[%d]", i)
		files = append(files, named{at + ".secret_file", w.SecretFile}, named{at + ".ca_file", w.CAFile})
	}
	for _, n := range files {
		if n.file == "" {
			continue
		}
		if err := readable(n.file); err != nil {
			r.at(n.path, "%s: %s", n.file, err)
		}
	}
	if c.AuditKeyFile == "" {
		return
	}
	if _, err := readKey(c.AuditKeyFile); err != nil {
		r.at("audit_key_file", "%s: %s", c.AuditKeyFile, err)
	}
}

// readable opens a file for reading, and says in few words why it cannot.
func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return plainPathError(err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder")
	}
	return errors.Join(err, f.Close())
}

// plainPathError leaves out the file's name, which stands before it.
func plainPathError(err error) error {
	if p, is := errors.AsType[*fs.PathError](err); is {
		return p.Err
	}
	return err
}

// leastKey is how long an audit key must be, in bytes.
const leastKey = 16

// readKey reads the audit's key.
func readKey(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, plainPathError(err)
	}
	key := strings.TrimSpace(string(text))
	if len(key) < leastKey {
		return nil, fmt.Errorf("holds %d bytes, and a key has at least %d; `openssl rand -hex 32` makes one", len(key), leastKey)
	}
	return []byte(key), nil
}

// Warnings are what was probably not meant: channels that are not configured, which may still run in another process, and
// people whom nobody is. p is the policy file; nil without one. The file's own warnings are not among them.
func (c Config) Warnings(p *policy.Policy) []Problem {
	known := c.Channels.names()
	missing := "is no channel of this configuration (there are " + listed(known) + "); nobody is reached there unless it runs elsewhere"
	var out []Problem
	for i, who := range c.People {
		for _, channel := range slices.Sorted(maps.Keys(who.Addresses)) {
			if !slices.Contains(known, channel) {
				out = append(out, c.problem(fmt.Sprintf("people[%d].addresses.%s", i, channel), "%q %s", channel, missing))
			}
		}
	}
	if p == nil {
		return out
	}
	for _, m := range p.Mentions() {
		at := Problem{File: m.At.File, Line: m.At.Line, Column: m.At.Column, Path: m.At.Path}
		switch {
		case m.Channel != "" && !slices.Contains(known, m.Channel):
			at.Text = fmt.Sprintf("%q %s", m.Channel, missing)
		case m.Who != "" && !c.somebody(m):
			at.Text = fmt.Sprintf("%q is nobody in people", m.Who)
		default:
			continue
		}
		out = append(out, at)
	}
	return out
}

// somebody reports that a policy names one of the people, or one who is not known before there is a task. Without people
// only channels say who is who.
func (c Config) somebody(m policy.Mention) bool {
	inRoute := strings.HasSuffix(m.At.Path, ".who")
	if len(c.People) == 0 || m.Who == broker.Anyone || m.Who == "requester" || m.Who == "owner" && inRoute {
		return true
	}
	role, isRole := strings.CutPrefix(m.Who, "role:")
	return slices.ContainsFunc(c.People, func(p broker.Person) bool {
		return p.ID == m.Who || isRole && slices.Contains(p.Roles, role)
	})
}

// names lists the channels that are configured.
func (c Channels) names() []string {
	var out []string
	name := func(given events.Channel, standard string) {
		if given != "" {
			standard = string(given)
		}
		out = append(out, standard)
	}
	if c.Inbox != nil {
		name(c.Inbox.Channel, "inbox")
	}
	if c.CLI != nil {
		name(cliName, "")
	}
	for _, w := range c.Webhook {
		name(w.Channel, "webhook")
	}
	return out
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// problem is a problem at a path of the file that the configuration was read from.
func (c Config) problem(path, format string, args ...any) Problem {
	r := &reader{file: c.source.file, places: c.source.places}
	r.at(path, format, args...)
	return r.problems[0]
}

// PortProblem says which line of the configuration chose a port that is taken.
func (c Config) PortProblem(taken *PortTaken) error {
	path := "nats.embedded.port"
	if taken.HTTP {
		path = "channels.inbox.listen"
	}
	return Problems{c.problem(path, "%s; choose another, or stop what runs there", taken)}
}
