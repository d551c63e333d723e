package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// listenBuffer is how many messages wait for a slow hearer before they are dropped, as core messages may be.
const listenBuffer = 8192

// Listen hears events, or bare wake-ups (Envelope is zero), on a subject pattern until the context ends, then returns nil.
// Messages can be missed; what cannot be read is dropped.
func (b *Bus) Listen(ctx context.Context, pattern string, hear func(Message)) error {
	s, err := b.Subscribe(ctx, pattern)
	if err != nil {
		return err
	}
	return s.Hear(ctx, hear)
}

// Subscription is a subscription that the server knows of, so that nothing said from now on is missed by reading state
// between Subscribe and Hear.
type Subscription struct {
	bus      *Bus
	sub      *nats.Subscription
	messages chan *nats.Msg
	closed   chan struct{}
	denied   chan struct{} // the server may say so after Subscribe
	forget   func()
}

// Subscribe returns when the server knows of the subscription. Hear must follow: it ends the subscription.
func (b *Bus) Subscribe(ctx context.Context, pattern string) (*Subscription, error) {
	s := &Subscription{bus: b, messages: make(chan *nats.Msg, listenBuffer), closed: make(chan struct{}), denied: make(chan struct{})}
	s.forget = b.denials.watch(pattern, func() { close(s.denied) })
	var err error
	if s.sub, err = b.nc.ChanSubscribe(pattern, s.messages); err != nil {
		s.forget()
		return nil, fmt.Errorf("listen: %w", sendError(err))
	}
	s.sub.SetClosedHandler(func(string) { close(s.closed) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		s.end()
		return nil, fmt.Errorf("listen: %w", sendError(err))
	}
	return s, nil
}

func (s *Subscription) end() {
	s.forget()
	_ = s.sub.Unsubscribe()
}

// Hear calls hear for each message, one after the other, until the context ends.
func (s *Subscription) Hear(ctx context.Context, hear func(Message)) error {
	defer s.end()
	for {
		select {
		case j, ok := <-s.messages:
			if !ok {
				return fmt.Errorf("listen: %w", nats.ErrConnectionClosed)
			}
			m := s.bus.heard(j)
			if m.Problem != nil {
				s.bus.log.WarnContext(ctx, "unreadable message heard", "family", m.Subject.Family)
				continue
			}
			hear(m)
		case <-s.denied:
			return fmt.Errorf("listen: %w", ErrDenied)
		case <-s.closed:
			return fmt.Errorf("listen: %w", nats.ErrConnectionClosed)
		case <-ctx.Done():
			return nil
		}
	}
}
