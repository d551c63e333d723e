package integration_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// When a process is killed: just before it does something that others can see, or just after.
const (
	before = "before"
	after  = "after"
)

// kill says at which crossing of which point who is killed, by SIGKILL.
type kill struct {
	By    string   `json:"by"`    // the role whose process crosses the point
	Point string   `json:"point"` // see pointOf; "tool" and "effect" are crossed by the roles executor and tool
	When  string   `json:"when"`
	Nth   int      `json:"nth"`
	Who   []string `json:"who"` // roles
}

func (k kill) String() string {
	name := fmt.Sprintf("%s_%s_%s", k.By, k.When, k.Point)
	if k.Nth > 1 {
		name += "_" + strconv.Itoa(k.Nth)
	}
	if !slices.Equal(k.Who, []string{k.By}) {
		name += "_kills_" + strings.Join(k.Who, "_")
	}
	return name
}

// trap kills at one crossing. What it looks at is outside of the product: what a process writes to its connection, and
// what the test's own tool does.
type trap struct {
	*kill
	dir string

	mu        sync.Mutex
	crossings int
	inboxes   map[string]string // where a request wants its reply, to the request's family
	pings     int
	pongs     int
	ponged    *sync.Cond
}

func newTrap(s script) *trap {
	t := &trap{kill: s.Kill, dir: s.Dir, inboxes: map[string]string{}}
	if s.Kill != nil && s.Kill.By != s.Role {
		t.kill = nil
	}
	t.ponged = sync.NewCond(&t.mu)
	return t
}

// hits counts a crossing and reports that it is the one.
func (t *trap) hits(point string) bool {
	if t.kill == nil || point != t.Point {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crossings++
	return t.crossings == t.Nth
}

// spring leaves word that it came to this, and kills. It returns only in a process that is not among the killed.
func (t *trap) spring() {
	if err := os.WriteFile(firedFile(t.dir, *t.kill), nil, 0o600); err != nil {
		panic(err)
	}
	self := false
	for _, role := range t.Who {
		text, err := os.ReadFile(pidFile(t.dir, role))
		if os.IsNotExist(err) { // it has not started yet, or is the tool
			self = self || role == t.By
			continue
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			panic(err)
		}
		if pid == os.Getpid() {
			self = true
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	if self {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// around does something that is a point.
func (t *trap) around(point string, do func() error) error {
	hit := t.hits(point)
	if hit && t.When == before {
		t.spring()
	}
	err := do()
	if hit && t.When == after {
		t.spring()
	}
	return err
}

func firedFile(dir string, k kill) string { return filepath.Join(dir, "fired-"+k.String()) }
func pidFile(dir, role string) string     { return filepath.Join(dir, role+".pid") }

// Dial connects through the trap. It is a [nats.CustomDialer].
func (t *trap) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.pings, t.pongs = 0, 0
	t.mu.Unlock()
	return &sender{Conn: newPumped(conn, t.heard), out: t.out}, nil
}

// out passes a frame on, unless this is where the process is killed. After means that the server has the frame and nothing
// has been written behind it: its PONG to a PING behind the frame shows the one, and that this does not return the other.
func (t *trap) out(frame []byte, send func([]byte) error) error {
	frame = hasten(frame)
	hit := t.hits(t.pointOf(frame))
	if string(frame) == "PING\r\n" {
		t.mu.Lock()
		t.pings++
		t.mu.Unlock()
	}
	switch {
	case !hit:
		return send(frame)
	case t.When == before:
		t.spring()
		return send(frame)
	}
	t.mu.Lock()
	t.pings++
	t.mu.Unlock()
	if err := send(append(frame, "PING\r\n"...)); err != nil {
		return err
	}
	t.mu.Lock()
	for t.pongs < t.pings {
		t.ponged.Wait()
	}
	t.mu.Unlock()
	t.spring()
	return nil
}

// heard notes where requests want their replies.
func (t *trap) heard(frame []byte) {
	words, _ := control(frame)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case words[0] == "PONG":
		t.pongs++
		t.ponged.Broadcast()
	case (words[0] == "MSG" && len(words) == 5 || words[0] == "HMSG" && len(words) == 6) && strings.HasPrefix(words[1], "clarify."):
		t.inboxes[words[3]] = strings.Split(words[1], ".")[1]
	}
}

// pointOf names what a frame does: task.<kind>, refused, timer, audit, question, verdict, candidate, cancel, claim, effect,
// answer, approval and report by the family of its subject, ack.<consumer>, and reply.<family of the request>.
func (t *trap) pointOf(frame []byte) string {
	words, body := control(frame)
	if words[0] != "PUB" && words[0] != "HPUB" {
		return ""
	}
	t.mu.Lock()
	family, isReply := t.inboxes[words[1]]
	t.mu.Unlock()
	tokens := strings.Split(words[1], ".")
	switch {
	case tokens[0] == "$JS" && tokens[1] == "ACK" && strings.HasPrefix(string(body), "+ACK"):
		return "ack." + tokens[consumerToken(len(tokens))]
	case isReply:
		return "reply." + family
	case tokens[0] != "clarify":
		return ""
	case tokens[1] == "task":
		return "task." + tokens[4]
	}
	return tokens[1]
}

// consumerToken is where a consumer's name stands among the tokens of an acknowledgement's subject, which has a domain and an
// account before it if it has more than nine.
func consumerToken(n int) int {
	if n > 9 {
		return 5
	}
	return 3
}
