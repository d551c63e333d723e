package bus_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
)

// wire is a listener that speaks enough of NATS for one client: it notes the batch of each message it is sent, in order, and
// acknowledges commits.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	sids map[string]string // subject -> subscription

	batches []string
}

func (w *wire) serve() error {
	if _, err := fmt.Fprint(w.conn, `INFO {"version":"2.14.0","jetstream":true,"headers":true,"max_payload":1048576}`+"\r\n"); err != nil {
		return err
	}
	for {
		line, err := w.in.ReadString('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		f := strings.Fields(line)
		switch f[0] {
		case "PING":
			_, err = fmt.Fprint(w.conn, "PONG\r\n")
		case "SUB":
			w.sids[f[1]] = f[2]
		case "PUB": // the question when the server syncs: nobody knows
			if _, err = w.body(f[len(f)-1]); err == nil {
				err = w.reply(f[2], "HMSG", "NATS/1.0 503\r\n\r\n", " 16")
			}
		case "HPUB":
			err = w.message(f)
		}
		if err != nil {
			return err
		}
	}
}

func (w *wire) body(size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return "", err
	}
	body := make([]byte, n+2)
	_, err = io.ReadFull(w.in, body)
	return string(body), err
}

func (w *wire) message(f []string) error {
	body, err := w.body(f[len(f)-1])
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(body, "Nats-Batch-Id: ")
	id, _, _ := strings.Cut(after, "\r\n")
	w.batches = append(w.batches, id)
	if !strings.Contains(body, "Nats-Batch-Commit: 1") {
		return nil
	}
	return w.reply(f[2], "MSG", fmt.Sprintf(`{"stream":"CLARIFY_TASKS","seq":%d,"count":%d}`, len(w.batches), wireBatch), "")
}

func (w *wire) reply(subject, verb, body, header string) error {
	sid, ok := w.sids[subject]
	if !ok {
		return fmt.Errorf("nobody listens on %s", subject)
	}
	_, err := fmt.Fprintf(w.conn, "%s %s %s%s %d\r\n%s\r\n", verb, subject, sid, header, len(body), body)
	return err
}

const wireBatch = 16

// Batches that are sent at once by one connection must not be mixed on the wire: the server takes 50 open ones and refuses
// what is beyond.
func TestAppendAll_contiguous_on_the_wire(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fake := &wire{sids: map[string]string{}}
	served := make(chan error, 1)
	go func() {
		var err error
		if fake.conn, err = l.Accept(); err == nil {
			fake.in = bufio.NewReader(fake.conn)
			err = errors.Join(fake.serve(), fake.conn.Close())
		}
		served <- err
	}()
	nc, err := nats.Connect("nats://"+l.Addr().String(), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := world{Bus: b}
	const batches = 64
	errs := make([]error, batches)
	var wg sync.WaitGroup
	for i := range batches {
		entries := w.batch(i, wireBatch)
		wg.Go(func() { _, errs[i] = b.AppendAll(t.Context(), entries) })
	}
	wg.Wait()
	nc.Close()
	if err := errors.Join(append(errs, <-served, l.Close())...); err != nil {
		t.Fatal(err)
	}
	if got := len(fake.batches); got != batches*wireBatch {
		t.Fatalf("%d messages were sent, want %d", got, batches*wireBatch)
	}
	for i, id := range fake.batches {
		if first := fake.batches[i/wireBatch*wireBatch]; id == "" || id != first {
			t.Fatalf("message %d is of batch %q, among those of %q", i, id, first)
		}
	}
}
