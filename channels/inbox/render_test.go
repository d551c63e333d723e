package inbox

import (
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden pages")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update writes it):\n%s", path, diff)
	}
}

// pages are the states of a question's page that people meet.
func pages() map[string]view {
	who, _ := ana(nil)
	bearer := events.Responder{Channel: "email", Subject: "ana@example.com", Assurance: events.Bearer}
	of := func(r events.QuestionReply) view { return view{visit: visitOf(r, who), reply: r} }
	with := func(v view, change func(*view)) view { change(&v); return v }
	refused := func(r events.Reason, open bool) *events.Verdict {
		return &events.Verdict{Version: 7, Current: 7, Open: open, At: noon, Refusal: &events.Refusal{
			Reason: r, At: noon,
			AnsweredBy: &events.Responder{Name: "Luis"}, AnsweredAt: noon.Add(-time.Minute),
		}}
	}
	newer := clarification()
	newer.Pause.Version, newer.Question.Version, newer.Current = 8, 8, 8
	two := clarification()
	two.Question.Content.Fields = append(two.Question.Content.Fields, events.Field{Name: "pin", Prompt: "El PIN de la cuenta", Secret: true, FreeText: &events.FreeText{MaxRunes: 8}},
		events.Field{Name: "country", Prompt: "¿En qué país?", Outcome: events.FieldAnswered})
	unreached := clarification()
	unreached.Pause.Deadline, unreached.Pause.Cap = time.Time{}, time.Time{}
	return map[string]view{
		"ask": of(clarification()),
		"ask_several": with(of(two), func(v *view) {
			v.form = readForm(map[string][]string{"t.pin": {"1234"}, "f.customer_id": {typed}, "t.customer_id": {"c-9"}})
		}),
		"ask_no_deadline": of(unreached),
		"ask_bearer":      with(of(clarification()), func(v *view) { v.visit.who = bearer }),
		"not_an_option": with(of(clarification()), func(v *view) {
			v.verdict = refused(events.NotAnOption, true)
			v.form = readForm(map[string][]string{"f.customer_id": {"c-207"}})
		}),
		"nothing_chosen": with(of(clarification()), func(v *view) { v.lacks = "form.choose" }),
		"saved":          with(of(ended(clarification(), events.Released, events.PauseAnswered)), func(v *view) { v.verdict = &events.Verdict{Accepted: true, Kind: events.Released, At: noon} }),
		"duplicate":      with(of(ended(clarification(), events.Released, events.PauseAnswered)), func(v *view) { v.verdict = refused(events.Duplicate, false) }),
		"pending":        with(of(clarification()), func(v *view) { v.pending = true }),
		"answered":       of(ended(clarification(), events.Released, events.PauseAnswered)),
		"timed_out":      of(ended(clarification(), events.TimedOut, events.PauseTimedOut)),
		"changed":        of(newer),
		"approve":        of(approval()),
		"approve_bearer": with(of(approval()), func(v *view) { v.visit.who = bearer }),
		"denied":         of(ended(approval(), events.Denied, events.PauseAnswered)),
		"escalated":      of(escalation()),
	}
}

func TestPages(t *testing.T) {
	in := newInbox(t, Config{Base: "/inbox"}, Parts{Lister: waiting{}})
	for name, v := range pages() {
		t.Run(name, func(t *testing.T) {
			golden(t, name, rendered(in, "en", 200, v))
			golden(t, name+".es", rendered(in, "es", 200, v))
		})
	}
}

func TestListPage(t *testing.T) {
	pause := func(r events.QuestionReply) *events.PauseView { return r.Pause }
	items := waiting{
		{Agent: "crm-bot", Task: "t-42", Version: 7, Kind: events.Reached, Tool: "crm.update_record", At: noon.Add(-time.Hour), Pause: pause(clarification())},
		{Agent: "bill-bot", Task: "t-43", Version: 2, Kind: events.ApprovalAsked, Tool: "billing.refund", At: noon, Pause: pause(approval())},
		{Agent: "bill-bot", Task: "t-44", Version: 2, Kind: events.Done, Tool: "billing.refund", At: noon},
	}
	in := newInbox(t, Config{Base: "/inbox", Zone: "Europe/Madrid"}, Parts{Lister: items})
	for _, lang := range []string{"en", "es"} {
		r := httptest.NewRequest(http.MethodGet, "/inbox/", nil)
		r.Header.Set("Accept-Language", lang)
		w := httptest.NewRecorder()
		in.Handler().ServeHTTP(w, r)
		golden(t, "list."+lang, w.Body.String())
	}
	empty := httptest.NewRecorder()
	newInbox(t, Config{}, Parts{Lister: waiting{}}).Handler().ServeHTTP(empty, httptest.NewRequest(http.MethodGet, "/", nil))
	if !strings.Contains(empty.Body.String(), "Nothing is waiting.") {
		t.Error(empty.Body.String())
	}
}

// TestPagesSay holds every page against what a person must be able to rely on.
func TestPagesSay(t *testing.T) {
	in := newInbox(t, Config{}, Parts{})
	for name, v := range pages() {
		t.Run(name, func(t *testing.T) {
			page := rendered(in, "en", 200, v)
			open := strings.Contains(page, `<form method="post">`)
			if want := v.open(); open != want {
				t.Errorf("has a form: %t, want %t", open, want)
			}
			if strings.Count(page, "<h1") != 1 {
				t.Errorf("has %d headings of the first level", strings.Count(page, "<h1"))
			}
			for _, never := range []string{"<script", "style=", "onclick", "http://", "https://", "1234", "Saved"} {
				if strings.Contains(page, never) && (never != "Saved" || name != "saved") {
					t.Errorf("contains %q", never)
				}
			}
			if open && (!strings.Contains(page, "What happens next") || !strings.Contains(page, "What silence means")) {
				t.Error("does not say what happens next and what silence means")
			}
			if says := v.reply.Question.Content.AgentSays; says != "" && !strings.Contains(page, "Nobody has checked them.") {
				t.Error("does not label the agent's prose")
			}
			if at, facts := strings.Index(page, `class="says"`), strings.Index(page, `class="facts"`); at >= 0 && at < facts {
				t.Error("shows the agent's prose above the facts")
			}
		})
	}
	if page := rendered(in, "en", 200, pages()["ask"]); strings.Contains(page, " checked>") {
		t.Error("something is chosen beforehand")
	}
}

func TestWordsOfPages(t *testing.T) {
	marks := regexp.MustCompile(`\{[a-z]+\}`)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(english)), slices.Sorted(maps.Keys(spanish))); diff != "" {
		t.Fatal(diff)
	}
	for key, text := range english {
		if spanish[key] == "" || cmp.Diff(marks.FindAllString(text, -1), marks.FindAllString(spanish[key], -1)) != "" {
			t.Errorf("%s: is not translated with the same marks", key)
		}
	}
	for _, m := range regexp.MustCompile(`T "([a-z.]+)"`).FindAllStringSubmatch(pagesText, -1) {
		if english[m[1]] == "" {
			t.Errorf("the pages say %s, which has no words", m[1])
		}
	}
}

// FuzzPage renders hostile text everywhere an agent, a tool or a person can put some, and compares the page's markup with
// that of the same page with harmless text.
func FuzzPage(f *testing.F) {
	for _, s := range []string{`<script>alert(1)</script>`, `" onmouseover="x`, `'><img src=x>`, "\x00\u202e", `{{.}}`, `javascript:alert(1)`, `</textarea>`, "`", `--><!--`, "es"} {
		f.Add(s)
	}
	in := newInbox(f, Config{}, Parts{})
	f.Fuzz(func(t *testing.T, s string) {
		for _, kind := range []events.PauseKind{events.Clarification, events.Approval, events.Escalation} {
			got, want := markup(rendered(in, "en", 200, filled(kind, "x"+s))), markup(rendered(in, "en", 200, filled(kind, "x")))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q changes the markup of a %s:\n%s", s, kind, diff)
			}
		}
	})
}

// filled is a page with the text in every place that is not ours.
func filled(kind events.PauseKind, s string) view {
	r := replyOf(kind, events.Content{
		Lang: "!" + s, Step: s, Tool: s, Action: events.Digest(s), Shown: []events.Shown{{Name: s, Value: s}}, Assumptions: []events.Shown{{Name: s, Value: s}},
		AgentSays: s, Requester: s, Reason: s, Next: s,
		Fields: []events.Field{{Name: s, Prompt: s, Options: []events.Option{{ID: s, Label: s, Hint: s}}, FreeText: &events.FreeText{MaxRunes: 9}}},
	})
	r.Question.Question = events.QuestionID(s)
	v := view{visit: visitOf(r, events.Responder{Assurance: events.Login}), reply: r, form: form{Text: map[string]string{s: s}, Note: s, Do: s}}
	v.verdict = &events.Verdict{Open: true, Refusal: &events.Refusal{Reason: events.Duplicate, Field: s, AnsweredBy: &events.Responder{Name: s}, AnsweredAt: noon}}
	return v
}

var (
	quoted = regexp.MustCompile(`="[^"]*"`)
	tag    = regexp.MustCompile(`<[^>]*>`)
)

// markup is a page's tags and the names of their attributes, in order.
func markup(page string) []string {
	var out []string
	for _, m := range tag.FindAllString(page, -1) {
		out = append(out, quoted.ReplaceAllString(m, "=_"))
	}
	return append(out, strings.Repeat("<", strings.Count(page, "<")), strings.Repeat(">", strings.Count(page, ">")))
}
