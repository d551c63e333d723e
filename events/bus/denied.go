package bus

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"

	"github.com/nats-io/nats.go"
)

// denials tells requests that are under way that the server denied their subject. The server says so on the side; the
// request itself would only time out.
type denials struct {
	log    *slog.Logger
	mu     sync.Mutex
	next   int
	waiter map[string]map[int]func()
}

var deniedSubject = regexp.MustCompile(`(?:Publish|Subscription) to "([^"]+)"`)

// watchDenials adds itself to whatever handles the connection's errors.
func watchDenials(nc *nats.Conn, log *slog.Logger) *denials {
	d := &denials{log: log, waiter: map[string]map[int]func(){}}
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			d.tell(err.Error())
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return d
}

func (d *denials) tell(text string) {
	match := deniedSubject.FindStringSubmatch(text)
	if match == nil {
		return
	}
	// What nobody waits for (a lost acknowledgement, a Tell) would pass unseen otherwise.
	d.log.Error("permissions deny a subject", "subject", match[1])
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, hear := range d.waiter[match[1]] {
		hear()
		delete(d.waiter[match[1]], id)
	}
}

// watch calls hear at most once, if the server denies the subject before stop is called.
func (d *denials) watch(subject string, hear func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	id := d.next
	if d.waiter[subject] == nil {
		d.waiter[subject] = map[int]func(){}
	}
	d.waiter[subject][id] = hear
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiter[subject], id)
		if len(d.waiter[subject]) == 0 {
			delete(d.waiter, subject)
		}
	}
}

// unlessDenied returns a context that ends, with ErrDenied as its cause, when the server denies one of the subjects.
func (b *Bus) unlessDenied(ctx context.Context, subjects ...string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := make([]func(), len(subjects))
	for i, s := range subjects {
		stops[i] = b.denials.watch(s, func() { cancel(ErrDenied) })
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}
