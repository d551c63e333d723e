package inbox

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// Lister lists tasks as an operator sees them: without values.
type Lister interface {
	List(ctx context.Context, r events.ListRequest) (events.ListReply, error)
}

// Parts are what the inbox works with.
type Parts struct {
	Desk     *channels.Desk    // of the inbox's own channel
	Linked   []*channels.Desk  // of channels whose messages carry links to this inbox
	Keys     *channels.Keyring // checks the tokens of links; nil: there are none
	Lister   Lister            // nil: there is no list, only pages of questions
	Identify Identify
	Log      *slog.Logger // slog.Default when nil
}

// Inbox is the web page, and the adapter of its channel.
type Inbox struct {
	Parts
	config Config
	pages  *template.Template
	style  asset
	desks  map[events.Channel]*channels.Desk
	now    func() time.Time
}

// New makes an inbox. Parts.Desk and Parts.Identify are required.
func New(c Config, p Parts) (*Inbox, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if p.Desk == nil || p.Identify == nil {
		return nil, errors.New("inbox: needs a desk to hand answers in at, and a way to identify visitors")
	}
	if p.Desk.Channel() != c.name() {
		return nil, errors.New("inbox: its desk is of another channel")
	}
	if p.Log == nil {
		p.Log = slog.Default()
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	in := &Inbox{Parts: p, config: c, pages: pages, style: stylesheet(), now: time.Now, desks: map[events.Channel]*channels.Desk{}}
	for _, d := range p.Linked {
		in.desks[d.Channel()] = d
	}
	in.desks[c.name()] = p.Desk
	return in, nil
}

// Name is the channel's name.
func (in *Inbox) Name() events.Channel { return in.config.name() }

// Deliver accepts: the page of a question is there as long as the question is. Nothing claims that somebody looked.
func (in *Inbox) Deliver(_ context.Context, q events.Question) (events.Receipt, error) {
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID, At: in.now().UTC()}, nil
}

// Update accepts: a page shows what became of its question whenever it is looked at.
func (in *Inbox) Update(_ context.Context, q events.Question) (events.Receipt, error) {
	return events.Receipt{State: events.ReachAccepted, ProviderID: q.Delivery.ID, At: in.now().UTC()}, nil
}

// Handler serves the pages under Config.Base, which is part of the paths it expects. Nothing in it is logged that a request
// carries: its paths may be tokens.
func (in *Inbox) Handler() http.Handler {
	mux := http.NewServeMux()
	base := in.config.Base
	mux.HandleFunc("GET "+base+"/{$}", in.list)
	mux.HandleFunc("GET "+base+"/style.css", in.style.serve)
	mux.HandleFunc("GET "+base+"/q/{token}", in.look)
	mux.HandleFunc("POST "+base+"/q/{token}", in.answer)
	mux.HandleFunc("GET "+base+"/q/{agent}/{task}/{version}", in.look)
	mux.HandleFunc("POST "+base+"/q/{agent}/{task}/{version}", in.answer)
	mux.HandleFunc(base+"/", in.lost)
	if base != "" {
		mux.Handle("GET "+base, http.RedirectHandler(base+"/", http.StatusSeeOther))
	}
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(in.foreign))
	return guarded(origin.Handler(mux))
}

// guarded sets what every response carries.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // a path may be a token
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("X-Robots-Tag", "noindex, nofollow")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// foreign answers a form that another site sent, or a browser that does not say which.
func (in *Inbox) foreign(w http.ResponseWriter, r *http.Request) {
	in.message(w, r, http.StatusForbidden, "foreign")
}

func (in *Inbox) lost(w http.ResponseWriter, r *http.Request) {
	in.message(w, r, http.StatusNotFound, "lost")
}
