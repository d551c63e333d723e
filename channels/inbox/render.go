package inbox

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

//go:embed pages.html
var pagesText string

//go:embed style.css
var styleText []byte

// asset is a file whose path names its content, so that it may be kept for ever.
type asset struct {
	body []byte
	tag  string
}

func stylesheet() asset {
	sum := sha256.Sum256(styleText)
	return asset{styleText, hex.EncodeToString(sum[:6])}
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	if r.URL.Query().Get("v") == a.tag {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.body)
}

func parsePages() (*template.Template, error) {
	pages, err := template.New("pages").Funcs(template.FuncMap{
		"pair": func(f frame, field fieldView) map[string]any { return map[string]any{"Frame": f, "Field": field} },
		"short": func(d events.Digest) string {
			_, hexed, _ := strings.Cut(string(d), ":")
			return hexed[:min(len(hexed), 12)]
		},
	}).Parse(pagesText)
	if err != nil {
		return nil, fmt.Errorf("parse the inbox's pages: %w", err)
	}
	return pages, nil
}

// frame is what every page has.
type frame struct {
	words
	Base  string
	Style string
	Title string
	Home  bool // the visitor may see the list
	Langs []langLink
	Body  any
}

type langLink struct {
	Tag, Name string
	Href      string
}

// T is Say, short for templates.
func (f frame) T(key string, pairs ...string) string { return f.Say(key, pairs...) }

func (in *Inbox) frame(r *http.Request) frame {
	f := frame{words: in.words(r), Base: in.config.Base, Style: in.style.tag}
	for _, l := range []langLink{{Tag: "en", Name: "English"}, {Tag: "es", Name: "Español"}} {
		l.Href = "?" + url.Values{"lang": {l.Tag}}.Encode()
		f.Langs = append(f.Langs, l)
	}
	return f
}

func (in *Inbox) words(r *http.Request) words { return inWords(in.speak(r), in.config.zone()) }

// show writes a question's page.
func (in *Inbox) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	f := in.frame(r)
	p := v.page(f.words, in.config.Base, in.now())
	f.Title, f.Body, f.Home = p.Title, p, in.Lister != nil && !v.visit.bearer()
	in.write(w, status, "question", f)
}

// message writes a page that says one thing.
func (in *Inbox) message(w http.ResponseWriter, r *http.Request, status int, key string) {
	f := in.frame(r)
	f.Title, f.Body = f.Say("message."+key+".title"), f.Say("message."+key)
	in.write(w, status, "message", f)
}

// write renders before it sends, so that a page is whole or not there.
func (in *Inbox) write(w http.ResponseWriter, status int, name string, f frame) {
	var page bytes.Buffer
	if err := in.pages.ExecuteTemplate(&page, name, f); err != nil {
		in.Log.Error("page not rendered", "page", name, "error", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// listPage is what waits.
type listPage struct {
	Count string
	More  string
	Items []itemView
}

type itemView struct {
	Path, Title, Kind, Badge string
	Agent, Task, Tool        string
	Since, Until             *moment
}

// list shows what waits.
func (in *Inbox) list(w http.ResponseWriter, r *http.Request) {
	if _, err := in.Identify(r); err != nil {
		in.turnAway(w, r, ErrStranger)
		return
	}
	if in.Lister == nil {
		in.lost(w, r)
		return
	}
	reply, err := in.Lister.List(r.Context(), events.ListRequest{Waiting: true})
	if err != nil {
		in.Log.Error("list not read", "channel", in.Name(), "error", err)
		in.message(w, r, http.StatusServiceUnavailable, "down")
		return
	}
	f := in.frame(r)
	f.Title, f.Body = f.Say("page.inbox"), listOf(f.words, in.config.Base, reply, in.now())
	in.write(w, http.StatusOK, "list", f)
}

func listOf(w words, base string, reply events.ListReply, now time.Time) listPage {
	var p listPage
	for _, item := range reply.Items {
		if item.Pause != nil && item.Pause.Status == events.PauseWaiting {
			p.Items = append(p.Items, itemOf(w, base, item, now))
		}
	}
	switch n := len(p.Items) + reply.More; n {
	case 0:
		p.Count = w.Say("page.none")
	case 1:
		p.Count = w.Say("page.one")
	default:
		p.Count = w.Say("page.many", "n", strconv.Itoa(n))
	}
	if reply.More > 0 {
		p.More = w.Say("page.more", "n", strconv.Itoa(reply.More))
	}
	return p
}

func itemOf(w words, base string, item events.ListItem, now time.Time) itemView {
	q := events.Question{Kind: item.Pause.Kind, Content: events.Content{Tool: item.Tool, Fields: item.Pause.Fields}}
	v := view{reply: events.QuestionReply{Pause: item.Pause}}
	return itemView{
		Path:  fmt.Sprintf("%s/q/%s/%s/%d", base, item.Agent, item.Task, item.Pause.Version),
		Title: title(w, q),
		Kind:  w.Say("kind." + string(item.Pause.Kind)), Badge: w.Say("badge." + string(item.Pause.Status)),
		Agent: string(item.Agent), Task: string(item.Task), Tool: channels.Plain(item.Tool),
		Since: &moment{item.At.UTC().Format(time.RFC3339), w.At(item.At, now)}, Until: v.deadline(w, now),
	}
}
