package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/inbox"
	"github.com/clarify-broker/clarify/channels/webhook"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
)

// cliName is the channel of the command line.
const cliName events.Channel = "cli"

// shell is the adapter of the command line: a question is there for whoever asks for the list.
type shell struct{}

// Name is cli.
func (shell) Name() events.Channel { return cliName }

// Deliver accepts: `clarify ls` shows the question as long as it waits. Nothing claims that somebody looked.
func (shell) Deliver(_ context.Context, q events.Question) (events.Receipt, error) {
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID, At: time.Now().UTC()}, nil
}

// lister asks the broker for lists, for the inbox.
type lister struct{ bus *bus.Bus }

// listLimit is how long a list waits for a broker that is still reading its log, as one does that has just started.
const listLimit = 3 * time.Second

// List asks the broker, again while it says that it cannot tell yet.
func (l lister) List(ctx context.Context, r events.ListRequest) (reply events.ListReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err = l.bus.Ask(ctx, l.bus.Space().Operator(events.VerbList), r, &reply)
		if busy, is := errors.AsType[*bus.Failed](err); !is || !errors.Is(busy, bus.ErrNobody) {
			return reply, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return reply, err
		}
	}
}

// startChannels starts what brings questions to people, and last of all the pages that let people in.
func (s *Server) startChannels(ctx context.Context, c Config) error {
	var adapters []channels.Adapter
	mux := http.NewServeMux()
	if c.Channels.CLI != nil {
		adapters = append(adapters, shell{})
	}
	for _, w := range c.Channels.Webhook {
		e, err := webhook.New(w)
		if err != nil {
			return err
		}
		adapters = append(adapters, e)
		base := "/webhook/" + string(e.Name())
		mux.Handle("POST "+base+"/", http.StripPrefix(base, e.Answers(s.desk(ctx, e.Name()), s.log)))
	}
	if c.Channels.Inbox != nil {
		page, err := s.page(ctx, c.Channels.Inbox.Config)
		if err != nil {
			return err
		}
		adapters = append(adapters, page)
		mux.Handle("/", page.Handler())
	}
	courier, err := channels.NewCourier(s.Bus, adapters, channels.CourierConfig{}, s.log)
	if err != nil {
		return err
	}
	if len(adapters) > 0 {
		s.parts.launch(ctx, "courier", courier.Run)
	}
	if c.Channels.Inbox == nil {
		return nil
	}
	return s.serve(ctx, c.Channels.Inbox.Listen, mux)
}

func (s *Server) desk(ctx context.Context, name events.Channel) *channels.Desk {
	d := channels.NewDesk(s.Bus, name, 0)
	s.parts.launch(ctx, "desk of "+string(name), d.Run)
	return d
}

func (s *Server) page(ctx context.Context, c inbox.Config) (*inbox.Inbox, error) {
	who, err := c.Visitors()
	if err != nil {
		return nil, err
	}
	name := c.Channel
	if name == "" {
		name = "inbox"
	}
	return inbox.New(c, inbox.Parts{Desk: s.desk(ctx, name), Lister: lister{s.Bus}, Identify: who, Log: s.log})
}

// serve lets people in. Those who are in have ten seconds to be answered when it stops.
func (s *Server) serve(ctx context.Context, address string, h http.Handler) error {
	l, err := listen(ctx, address)
	if taken, is := errors.AsType[*PortTaken](err); is {
		taken.HTTP = true
	}
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	s.Inbox = "http://" + l.Addr().String() + "/"
	s.parts.launch(ctx, "pages", func(ctx context.Context) error {
		closed := make(chan error, 1)
		stop := context.AfterFunc(ctx, func() {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			closed <- srv.Shutdown(grace)
		})
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			stop()
			return err
		}
		return <-closed
	})
	return nil
}
