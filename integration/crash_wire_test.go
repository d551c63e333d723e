package integration_test

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// frames cuts one direction of a NATS connection into frames: a control line, with its payload where it has one.
type frames struct{ rest []byte }

// take adds what was read or written and returns the frames that are whole now.
func (f *frames) take(p []byte) [][]byte {
	f.rest = append(f.rest, p...)
	var whole [][]byte
	for n := frameSize(f.rest); n > 0; n = frameSize(f.rest) {
		whole = append(whole, slices.Clone(f.rest[:n]))
		f.rest = f.rest[n:]
	}
	return whole
}

// frameSize is the size of the first frame in b, and 0 while it is not whole.
func frameSize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0
	}
	size := end + 2
	if line := strings.Fields(string(b[:end])); len(line) > 1 && slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, line[0]) {
		payload, err := strconv.Atoi(line[len(line)-1])
		if err != nil {
			panic("a control line without a size: " + line[0])
		}
		size += payload + 2
	}
	if len(b) < size {
		return 0
	}
	return size
}

// control is the words of a frame's control line, and body what follows it without the last line end.
func control(frame []byte) (words []string, body []byte) {
	line, rest, _ := bytes.Cut(frame, []byte("\r\n"))
	return strings.Fields(string(line)), bytes.TrimSuffix(rest, []byte("\r\n"))
}

// sender is a connection whose frames pass through out on their way to the server: it sends each, sends something else, or
// does not come back.
type sender struct {
	net.Conn
	out func(frame []byte, send func([]byte) error) error

	mu   sync.Mutex
	sent frames
}

func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, frame := range s.sent.take(p) {
		if err := s.out(frame, s.send); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (s *sender) send(frame []byte) error {
	_, err := s.Conn.Write(frame)
	return err
}

// pumped is a connection that is read whether or not anybody asks for what comes, so that a writer can wait for the server's
// word. in sees each frame before the reader does.
type pumped struct {
	net.Conn
	in func(frame []byte)

	mu     sync.Mutex
	more   sync.Cond
	buffer bytes.Buffer
	err    error
}

func newPumped(conn net.Conn, in func([]byte)) *pumped {
	p := &pumped{Conn: conn, in: in}
	p.more.L = &p.mu
	go p.pump() // ends with the connection
	return p
}

func (p *pumped) pump() {
	var heard frames
	chunk := make([]byte, 64<<10)
	for {
		n, err := p.Conn.Read(chunk)
		for _, frame := range heard.take(chunk[:n]) {
			p.in(frame)
		}
		p.mu.Lock()
		p.buffer.Write(chunk[:n])
		p.err = err
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pumped) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() == 0 && p.err == nil {
		p.more.Wait()
	}
	if p.buffer.Len() == 0 {
		return 0, p.err
	}
	n, err := p.buffer.Read(b)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

var ackWait = regexp.MustCompile(`"ack_wait":\d{11}`)

// hasten shortens how soon a consumer's messages go to another process when theirs was killed, from half a minute to a
// second: it is the only thing about the product that these tests change, and it changes no byte's place.
func hasten(frame []byte) []byte {
	if words, _ := control(frame); !strings.HasPrefix(words[min(1, len(words)-1)], "$JS.API.CONSUMER.") {
		return frame
	}
	return ackWait.ReplaceAll(frame, []byte(`"ack_wait": 1000000000`))
}
