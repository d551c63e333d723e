package inbox

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Provider {
		return channeltest.Provider{
			Adapter: newInbox(t, Config{}, Parts{}), Behave: func(channeltest.Behaviour) {}, Requests: func() int { return 0 },
			Unsupported: []channeltest.Behaviour{channeltest.Busy, channeltest.HangsUp, channeltest.SaysNothing, channeltest.TooLarge, channeltest.Gone, channeltest.Denies},
		}
	})
}

// site is an inbox on a real bus, whose broker says what the test has it say.
type site struct {
	*testing.T
	inbox  *Inbox
	broker *channeltest.Broker
	reply  events.QuestionReply
}

func siteBubble(f func(*site)) func(*testing.T) {
	return func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) {
			b := bustest.Start(t)
			s := &site{T: t, reply: clarification()}
			s.broker = channeltest.StartBroker(t, b, channeltest.Script{})
			s.verdict(channeltest.Submitted.Verdict)
			own, mail := channels.NewDesk(b, "inbox", 0), channels.NewDesk(b, "email", 0)
			channeltest.Background(t, own.Run)
			channeltest.Background(t, mail.Run)
			synctest.Wait()
			s.inbox = newInbox(t, Config{}, Parts{Desk: own, Linked: []*channels.Desk{mail}, Keys: testKeys(t), Lister: waiting{}})
			f(s)
		})
	}
}

// verdict has the broker judge so, and end the question where the verdict accepts.
func (s *site) verdict(judge func(channeltest.Submitted) *events.Verdict) {
	s.broker.Says(channeltest.Script{
		State: func(events.StateRequest) events.QuestionReply { return s.reply },
		Verdict: func(a channeltest.Submitted) *events.Verdict {
			v := judge(a)
			if v != nil && v.Accepted {
				s.reply = ended(s.reply, events.Released, events.PauseAnswered)
			}
			return v
		},
	})
}

func (s *site) do(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://inbox.example.com"+path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	s.inbox.Handler().ServeHTTP(w, r)
	return w
}

func filledIn(pairs ...string) string {
	v := url.Values{"nonce": {"AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "question": {"01K9ZZZZZZZZZZZZZZZZZZZZZZ"}, "do": {"answer"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func (s *site) want(w *httptest.ResponseRecorder, status int, says string) {
	s.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), says) {
		s.Errorf("got %d, want %d with %q:\n%s", w.Code, status, says, w.Body)
	}
}

const path = "/q/crm-bot/t-42/7"

func TestAnswer(t *testing.T) {
	t.Run("saved_after_the_verdict", siteBubble(func(s *site) {
		w := s.do("POST", path, filledIn("f.customer_id", "c-207"))
		s.want(w, 200, "Saved. The agent may now run the action, once.")
		if strings.Contains(w.Body.String(), `<form method="post">`) {
			s.Error("the page still has a form")
		}
		a := channeltest.Next(s, s.broker.Answers).Envelope.Data.(events.Answer)
		if a.Values[0].Option != "c-207" || a.Responder.Subject != "ana" || a.Version != 7 || a.Question != "01K9ZZZZZZZZZZZZZZZZZZZZZZ" {
			s.Errorf("submitted %+v", a)
		}
	}))
	t.Run("a_typed_value", siteBubble(func(s *site) {
		s.want(s.do("POST", path, filledIn("f.customer_id", typed, "t.customer_id", "c-999")), 200, "Saved.")
		if a := channeltest.Next(s, s.broker.Answers).Envelope.Data.(events.Answer); a.Values[0].Value.RevealString() != "c-999" || a.Values[0].Option != "" {
			s.Errorf("submitted %+v", a.Values)
		}
	}))
	t.Run("none_of_these", siteBubble(func(s *site) {
		s.do("POST", path, filledIn("f.customer_id", events.NoneOfThese))
		if a := channeltest.Next(s, s.broker.Answers).Envelope.Data.(events.Answer); a.Values[0].Option != events.NoneOfThese {
			s.Errorf("submitted %+v", a.Values)
		}
	}))
	t.Run("calling_off", siteBubble(func(s *site) {
		s.do("POST", path, filledIn("do", "cancel", "note", " no longer needed "))
		if a := channeltest.Next(s, s.broker.Answers).Envelope.Data.(events.Answer); !a.Cancel || len(a.Values) != 0 || a.Note != "no longer needed" {
			s.Errorf("submitted %+v", a)
		}
	}))
	t.Run("handing_over", siteBubble(func(s *site) {
		s.reply = escalation()
		s.do("POST", path, filledIn("do", "hand_back", "t.retention", "10 years"))
		if a := channeltest.Next(s, s.broker.Answers).Envelope.Data.(events.Answer); a.Handover != events.HandBack || a.Values[0].Field != "retention" {
			s.Errorf("submitted %+v", a)
		}
	}))
	t.Run("approving_names_the_digest_shown", siteBubble(func(s *site) {
		s.reply = approval()
		s.want(s.do("GET", path, ""), 200, `name="action" value="`+string(digest)+`"`)
		s.do("POST", path, filledIn("do", "approve", "action", string(digest)))
		m := channeltest.Next(s, s.broker.Answers)
		if a := m.Envelope.Data.(events.ApprovalAnswer); a.Verdict != events.Granted || a.Action != digest || m.Subject.Family != "approval" {
			s.Errorf("submitted %+v on %s", a, m.Subject.Family)
		}
	}))
	t.Run("sending_twice_is_one_submission", siteBubble(func(s *site) {
		for _, option := range []string{"c-207", "c-207", "c-101"} {
			s.do("POST", path, filledIn("f.customer_id", option))
		}
		a, b, c := channeltest.Next(s, s.broker.Answers), channeltest.Next(s, s.broker.Answers), channeltest.Next(s, s.broker.Answers)
		if a.Envelope.ID != b.Envelope.ID || a.Envelope.ID == c.Envelope.ID {
			s.Errorf("submissions %s, %s, %s", a.Envelope.ID, b.Envelope.ID, c.Envelope.ID)
		}
	}))
	for reason, c := range map[events.Reason]struct {
		status int
		says   string
	}{
		events.NotAnOption:  {422, "That is not one of the options. The question is still open."},
		events.InvalidValue: {422, "That value does not fit what was asked. The question is still open."},
		events.StaleVersion: {409, "The question has changed since it was shown to you"},
		events.NotAllowed:   {403, "You are not one of the people who may answer this."},
	} {
		t.Run(string(reason), siteBubble(func(s *site) {
			s.verdict(func(a channeltest.Submitted) *events.Verdict { return a.Refuse(reason) })
			w := s.do("POST", path, filledIn("f.customer_id", "c-207"))
			s.want(w, c.status, c.says)
			s.want(w, c.status, `role="alert"`)
			s.want(w, c.status, `value="c-207" checked`)
			if strings.Contains(w.Body.String(), "Saved") {
				s.Error("it says saved")
			}
		}))
	}
	t.Run("somebody_was_first", siteBubble(func(s *site) {
		s.verdict(func(a channeltest.Submitted) *events.Verdict {
			v := a.Refuse(events.Duplicate)
			v.Open, v.Refusal.AnsweredBy, v.Refusal.AnsweredAt, v.Refusal.At = false, &events.Responder{Name: "Luis"}, noon, noon
			s.reply = ended(s.reply, events.Released, events.PauseAnswered)
			return v
		})
		s.want(s.do("POST", path, filledIn("f.customer_id", "c-207")), 409, "Already answered by Luis at 14:18 UTC. Nothing was sent.")
	}))
	t.Run("not_judged_yet", siteBubble(func(s *site) {
		s.verdict(func(channeltest.Submitted) *events.Verdict { return nil })
		w := s.do("POST", path, filledIn("f.customer_id", "c-207"))
		s.want(w, 202, "Received, checking.")
		if strings.Contains(w.Body.String(), "Saved") {
			s.Error("it says saved")
		}
	}))
}

func TestNothingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		send   func(*site) *httptest.ResponseRecorder
		status int
		says   string
	}{
		"get": {func(s *site) *httptest.ResponseRecorder {
			return s.do("GET", path+"?"+filledIn("f.customer_id", "c-207"), "")
		}, 200, "Send answer"},
		"head": {func(s *site) *httptest.ResponseRecorder {
			return s.do("HEAD", path+"?"+filledIn("f.customer_id", "c-207"), "")
		}, 200, ""},
		"options": {func(s *site) *httptest.ResponseRecorder {
			return s.do("OPTIONS", path, filledIn("f.customer_id", "c-207"))
		}, 404, ""},
		"put": {func(s *site) *httptest.ResponseRecorder {
			return s.do("PUT", path, filledIn("f.customer_id", "c-207"), sameOrigin)
		}, 404, ""},
		"link_followed":  {func(s *site) *httptest.ResponseRecorder { return s.do("GET", s.link("email"), "") }, 200, "Send answer"},
		"nothing_chosen": {func(s *site) *httptest.ResponseRecorder { return s.do("POST", path, filledIn()) }, 422, "Nothing was chosen"},
		"both": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("f.customer_id", "c-207", "t.customer_id", "x"))
		}, 422, "keep one of them"},
		"typed_nothing": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("f.customer_id", typed, "t.customer_id", " "))
		}, 422, "none was typed"},
		"no_nonce": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("f.customer_id", "c-207", "nonce", ""))
		}, 422, "did not arrive whole"},
		"unknown_move": {func(s *site) *httptest.ResponseRecorder { return s.do("POST", path, filledIn("do", "release")) }, 422, "could not be read"},
		"another_site": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("f.customer_id", "c-207"), crossSite)
		}, 403, "did not say that this form came from this page"},
		"null_origin": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("f.customer_id", "c-207"), nullOrigin)
		}, 403, ""},
		"too_long": {func(s *site) *httptest.ResponseRecorder {
			return s.do("POST", path, filledIn("note", strings.Repeat("x", maxForm)))
		}, 413, "too long"},
		"approved_by_link": {func(s *site) *httptest.ResponseRecorder {
			s.reply, s.inbox.Identify = approval(), stranger
			return s.do("POST", s.link("email"), filledIn("do", "approve", "action", string(digest)))
		}, 403, "cannot decide it"},
		"stranger": {func(s *site) *httptest.ResponseRecorder {
			s.inbox.Identify = stranger
			return s.do("POST", path, filledIn("f.customer_id", "c-207"))
		}, 403, "does not know who you are"},
		"link_of_nobody": {func(s *site) *httptest.ResponseRecorder {
			s.inbox.Identify = stranger
			return s.do("POST", "/q/AAAA", filledIn("f.customer_id", "c-207"))
		}, 404, "no such question"},
		"link_of_no_desk": {func(s *site) *httptest.ResponseRecorder {
			s.inbox.Identify = stranger
			return s.do("POST", s.link("pigeon"), filledIn("f.customer_id", "c-207"))
		}, 404, "no such question"},
		"version_zero":     {func(s *site) *httptest.ResponseRecorder { return s.do("POST", "/q/crm-bot/t-42/0", filledIn()) }, 404, "no such question"},
		"a_task_with_dots": {func(s *site) *httptest.ResponseRecorder { return s.do("POST", "/q/crm-bot/t.%3E/7", filledIn()) }, 404, "no such question"},
	} {
		t.Run(name, siteBubble(func(s *site) {
			s.want(c.send(s), c.status, c.says)
			synctest.Wait()
			if len(s.broker.Answers) != 0 {
				s.Error("something was sent")
			}
		}))
	}
}

func sameOrigin(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }
func crossSite(r *http.Request)  { r.Header.Set("Sec-Fetch-Site", "cross-site") }
func nullOrigin(r *http.Request) {
	r.Header.Del("Sec-Fetch-Site")
	r.Header.Set("Origin", "null")
}

// link is the address of a page as it stands in a message to somebody.
func (s *site) link(channel events.Channel) string {
	return "/q/" + s.inbox.Keys.Sign(channels.Ticket{
		Place:    events.Place{Channel: channel, Agent: "crm-bot", Task: "t-42", Version: 7},
		Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Delivery: "d", Recipient: "ana@example.com",
	})
}

func TestLink(t *testing.T) {
	t.Run("its_holder_answers_as_the_recipient", siteBubble(func(s *site) {
		s.inbox.Identify = stranger
		s.want(s.do("POST", s.link("email"), filledIn("f.customer_id", "c-207")), 200, "Saved.")
		m := channeltest.Next(s, s.broker.Answers)
		want := events.Responder{Channel: "email", Subject: "ana@example.com", Assurance: events.Bearer}
		if a := m.Envelope.Data.(events.Answer); a.Responder != want || m.Subject.Channel != "email" {
			s.Errorf("submitted %+v on %s", a.Responder, m.Subject.Channel)
		}
	}))
	t.Run("who_is_signed_in_answers_as_themselves", siteBubble(func(s *site) {
		s.do("POST", s.link("email"), filledIn("f.customer_id", "c-207"))
		if m := channeltest.Next(s, s.broker.Answers); m.Envelope.Data.(events.Answer).Responder.Subject != "ana" || m.Subject.Channel != "inbox" {
			s.Errorf("submitted %+v on %s", m.Envelope.Data, m.Subject.Channel)
		}
	}))
	t.Run("of_another_question_shows_nothing", siteBubble(func(s *site) {
		s.reply.Pause.Question = "01K9YYYYYYYYYYYYYYYYYYYYYY"
		s.want(s.do("GET", s.link("email"), ""), 404, "no such question")
	}))
	t.Run("preselects_and_no_more", siteBubble(func(s *site) {
		s.want(s.do("GET", s.link("email")+"?pick=c-207", ""), 200, `value="c-207" checked`)
		if page := s.do("GET", s.link("email")+"?pick=%22%3E%3Cb", "").Body.String(); strings.Contains(page, " checked>") {
			s.Error("an unknown option is chosen")
		}
	}))
	t.Run("does_not_lead_to_the_list", siteBubble(func(s *site) {
		s.inbox.Identify = stranger
		s.want(s.do("GET", "/", ""), 403, "does not know who you are")
		if page := s.do("GET", s.link("email"), "").Body.String(); strings.Contains(page, `href="/"`) {
			s.Error("it links to the list")
		}
	}))
}

func TestHeaders(t *testing.T) {
	in := newInbox(t, Config{Base: "/inbox"}, Parts{Lister: waiting{}})
	for _, path := range []string{"/inbox/", "/inbox/q/AAAA", "/inbox/nowhere", "/elsewhere"} {
		w := httptest.NewRecorder()
		in.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	w := httptest.NewRecorder()
	in.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/inbox/style.css?v="+in.style.tag, nil))
	if body, _ := io.ReadAll(w.Body); len(body) == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("the style sheet: %d bytes, %v", len(body), w.Header())
	}
}

func TestLanguage(t *testing.T) {
	for name, c := range map[string]struct{ query, header, config, want string }{
		"nothing_said":            {"", "", "", "en"},
		"the_browser's_first":     {"", "fr-FR, es-MX;q=0.9, en;q=0.8", "", "es"},
		"configured":              {"", "fr", "es", "es"},
		"asked_for":               {"lang=en", "es", "es", "en"},
		"asked_for_something_odd": {"lang=%22%3E", "es", "", "es"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/?"+c.query, nil)
			r.Header.Set("Accept-Language", c.header)
			if got := newInbox(t, Config{Lang: c.config}, Parts{}).speak(r); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * time.Second: "< 1 min", 12 * time.Minute: "12 min", time.Hour: "1 h", 75 * time.Minute: "1 h 15 min",
		24 * time.Hour: "1 d", 52 * time.Hour: "2 d 4 h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
