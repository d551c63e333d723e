package app

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/broker"
	"github.com/clarify-broker/clarify/channels/inbox"
	"github.com/clarify-broker/clarify/channels/webhook"
	"github.com/clarify-broker/clarify/events"
)

// DefaultPort is where an embedded server takes clients unless it is told otherwise.
const DefaultPort = 4222

// Config is the configuration file of `clarify serve`. Files it names are relative to it.
type Config struct {
	Space         events.Space    `yaml:"space"` // events.DefaultSpace when empty
	NATS          NATS            `yaml:"nats"`
	Policy        string          `yaml:"policy"` // a file; on a shared server what was pushed there comes first
	People        []broker.Person `yaml:"people"`
	Channels      Channels        `yaml:"channels"`
	Lease         events.Duration `yaml:"lease"`           // of a claim; 1 m when 0
	Retention     events.Duration `yaml:"retention"`       // of a final task; 30 d when 0
	AuditKeyFile  string          `yaml:"audit_key_file"`  // made in the data folder of an embedded server when empty
	AllowLazySync bool            `yaml:"allow_lazy_sync"` // take a server that acknowledges before it has synced
	Replicas      int             `yaml:"replicas"`        // of every stream; 1 when 0

	source source
}

// source is the file a configuration was read from, and where its keys stand. It is empty for one that a program made.
type source struct {
	file   string
	places places
}

// NATS says which server carries the events: exactly one of URL and Embedded.
type NATS struct {
	URL      string    `yaml:"url"`
	Creds    string    `yaml:"creds"` // a credentials file, for URL
	Embedded *Embedded `yaml:"embedded"`
}

// Embedded is a server inside the process. It has no logins, so it listens on loopback only.
type Embedded struct {
	Dir  string `yaml:"dir"`  // "" forgets everything at the end
	Port *int   `yaml:"port"` // DefaultPort when absent; 0 lets the system choose
}

// Channels are the ways to reach people.
type Channels struct {
	Inbox   *Inbox           `yaml:"inbox"`
	Webhook []webhook.Config `yaml:"webhook"`
	CLI     *CLI             `yaml:"cli"`
}

// Inbox is the web page, and where webhooks hand their answers in, at /webhook/<channel>/.
type Inbox struct {
	Listen       string `yaml:"listen"`
	inbox.Config `yaml:",inline"`
}

// CLI is the command line as a channel: `clarify ls` shows questions and `clarify answer` answers them.
type CLI struct{}

// ReadConfig reads a configuration file. The error is [Problems] for what is wrong in the file.
func ReadConfig(file string) (Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	return parseConfig(file, text)
}

func parseConfig(file string, text []byte) (Config, error) {
	var c Config
	r := &reader{file: file, places: places{}}
	r.read(text, &c)
	if c.turnOn(r.places); len(r.problems) == 0 {
		c.check(r)
	}
	if len(r.problems) > 0 {
		return Config{}, r.sorted()
	}
	c.source = source{file, r.places}
	c.locate(filepath.Dir(file))
	if c.checkFiles(r); len(r.problems) > 0 {
		return Config{}, r.sorted()
	}
	return c, nil
}

// turnOn makes what a key without a value names: `cli:` alone turns the channel on, and the others then say what they lack.
func (c *Config) turnOn(at places) {
	if c.Channels.CLI == nil && at["channels.cli"] != nil {
		c.Channels.CLI = &CLI{}
	}
	if c.Channels.Inbox == nil && at["channels.inbox"] != nil {
		c.Channels.Inbox = &Inbox{}
	}
	if c.NATS.Embedded == nil && at["nats.embedded"] != nil {
		c.NATS.Embedded = &Embedded{}
	}
}

// locate makes the files that the configuration names relative to it.
func (c *Config) locate(dir string) {
	files := []*string{&c.Policy, &c.AuditKeyFile, &c.NATS.Creds}
	if c.NATS.Embedded != nil {
		files = append(files, &c.NATS.Embedded.Dir)
	}
	for i := range c.Channels.Webhook {
		files = append(files, &c.Channels.Webhook[i].SecretFile, &c.Channels.Webhook[i].CAFile)
	}
	for _, f := range files {
		if *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(dir, *f)
		}
	}
}

// check reports what the form of the file cannot show.
func (c Config) check(r *reader) {
	switch {
	case c.NATS.URL != "" && c.NATS.Embedded != nil:
		r.at("nats", "has both url and embedded; keep one")
	case c.NATS.URL == "" && c.NATS.Embedded == nil:
		r.at("nats", "is missing; give url: nats://host:4222, or embedded: {dir: /var/lib/clarify}")
	case c.NATS.Embedded != nil && c.NATS.Embedded.Dir == "":
		r.at("nats.embedded", "has no dir; name the folder to keep the data in")
	case c.NATS.URL != "" && c.AuditKeyFile == "":
		r.at("audit_key_file", "is missing; all brokers of a shared server need the same key: `openssl rand -hex 32` makes one")
	}
	if err := checkURLs(c.NATS.URL); c.NATS.URL != "" && err != nil {
		r.at("nats.url", "%s", err)
	}
	if c.NATS.Embedded != nil {
		checkPort(r, c.NATS.Embedded.Port)
	}
	switch {
	case !slices.Contains([]int{0, 1, 3, 5}, c.Replicas):
		r.at("replicas", "is %d; use 1, 3 or 5", c.Replicas)
	case c.NATS.Embedded != nil && c.Replicas > 1:
		r.at("replicas", "an embedded server keeps one copy; use nats.url for a cluster")
	}
	if c.Lease != 0 && time.Duration(c.Lease) < 5*time.Second {
		r.at("lease", "is shorter than 5s, which no renewal survives")
	}
	c.checkPeople(r)
	c.Channels.check(r)
}

func checkPort(r *reader, port *int) {
	if port != nil && (*port < 0 || *port > 65535) {
		r.at("nats.embedded.port", "is %d; use 1 to 65535, or 0 to let the system choose", *port)
	}
}

func (c Config) checkPeople(r *reader) {
	seen := map[string]bool{}
	for i, p := range c.People {
		at := fmt.Sprintf("people[%d]", i)
		switch {
		case p.ID == "":
			r.at(at, "has no id")
		case p.ID == broker.Anyone || strings.ContainsAny(p.ID, ": "):
			r.at(at+".id", "%q is not a person's id: it may hold neither a colon nor a space, nor be %q", p.ID, broker.Anyone)
		case seen[p.ID]:
			r.at(at+".id", "%q is there already; everybody has one id", p.ID)
		}
		seen[p.ID] = true
	}
}

func (c Channels) check(r *reader) {
	names := map[events.Channel]string{}
	use := func(name, standard events.Channel, path string) {
		name = cmp.Or(name, standard)
		if names[name] != "" {
			r.at(path, "is named %s like %s; give it another name with channel", name, names[name])
		}
		names[name] = path
	}
	if c.Inbox != nil {
		use(c.Inbox.Channel, "inbox", "channels.inbox")
		if err := checkListen(c.Inbox.Listen); err != nil {
			r.at("channels.inbox.listen", "%s", err)
		} else if c.Inbox.Header == "" && Loopback(c.Inbox.Listen) != nil {
			r.at("channels.inbox.listen", "lets other machines in, and nothing says who their people are; "+
				"listen on 127.0.0.1, or put a login proxy before it and name its header and from, the addresses it comes from")
		}
		if err := c.Inbox.Validate(); err != nil {
			r.at("channels.inbox", "%s", strings.TrimPrefix(err.Error(), "inbox."))
		}
	}
	if c.CLI != nil {
		use("cli", "", "channels.cli")
	}
	if c.Inbox == nil && len(c.Webhook) > 0 {
		r.at("channels.webhook", "its answers come in where the inbox listens; add channels.inbox.listen")
	}
	for i, w := range c.Webhook {
		path := fmt.Sprintf("channels.webhook[%d]", i)
		use(w.Channel, "webhook", path)
		if err := w.Validate(); err != nil {
			r.at(path, "%s", strings.TrimPrefix(err.Error(), "webhook."))
		}
	}
}

func checkListen(address string) error {
	if address == "" {
		return errors.New("is missing; write it like 127.0.0.1:8420")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return errors.New("is not an address; write it like 127.0.0.1:8420")
	}
	return nil
}
