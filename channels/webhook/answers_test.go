package webhook

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/channels/channeltest"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/events/bus/bustest"
)

// inboundTest is an endpoint's answers, judged by a scripted broker.
type inboundTest struct {
	*testing.T
	handler http.Handler
	broker  *channeltest.Broker
	bus     *bus.Bus
	keys    [][]byte
	log     *strings.Builder
}

func inboundBubble(f func(inboundTest)) func(*testing.T) {
	return func(t *testing.T) {
		bustest.Bubble(t, func(t *testing.T) {
			b := bustest.Start(t)
			e, err := New(Config{URL: "https://hooks.example.com/", Secrets: []string{secretNew, secretOld}})
			if err != nil {
				t.Fatal(err)
			}
			in := inboundTest{T: t, bus: b, keys: e.keys, log: &strings.Builder{}}
			in.broker = channeltest.StartBroker(t, b, channeltest.Script{Verdict: func(s channeltest.Submitted) *events.Verdict { return s.Verdict() }})
			desk := channels.NewDesk(b, e.Name(), time.Second)
			channeltest.Background(t, desk.Run)
			synctest.Wait()
			in.handler = e.Answers(desk, slog.New(slog.NewTextHandler(in.log, nil)))
			f(in)
		})
	}
}

func (in inboundTest) answer() events.Answer {
	return events.Answer{
		Agent: "crm-bot", Task: "t-42", Version: 7, Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Submission: "theirs",
		Responder: events.Responder{Channel: "slack", Subject: "ana@corp", Name: "Ana", Assurance: events.Login, Person: "root"},
		Values:    []events.Given{{Field: "customer_id", Option: "c-207"}},
	}
}

func (in inboundTest) request(data any) *http.Request {
	in.Helper()
	body, err := events.Seal(events.Envelope{ID: "evt-1", Source: "/receiver", Data: data})
	if err != nil {
		in.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", events.ContentType)
	sign(r.Header, in.keys[1:], "msg-1", time.Now(), body)
	return r
}

func (in inboundTest) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	in.handler.ServeHTTP(w, r)
	return w
}

func (in inboundTest) want(w *httptest.ResponseRecorder, status int, body string) {
	in.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), body) {
		in.Errorf("got %d %s, want %d with %q", w.Code, w.Body, status, body)
	}
}

func TestAnswers(t *testing.T) {
	t.Run("saved", inboundBubble(func(in inboundTest) {
		in.want(in.send(in.request(in.answer())), 200, `"accepted":true`)
		a := channeltest.Next(in, in.broker.Answers).Envelope.Data.(events.Answer)
		want := events.Responder{Channel: "webhook", Subject: "ana@corp", Name: "Ana", Assurance: events.Platform}
		if a.Responder != want || a.Submission == "theirs" || a.Values[0].Option != "c-207" {
			in.Errorf("submitted %+v", a)
		}
	}))
	t.Run("approval", inboundBubble(func(in inboundTest) {
		a := in.answer()
		in.want(in.send(in.request(events.ApprovalAnswer{
			Agent: a.Agent, Task: a.Task, Version: a.Version, Question: a.Question,
			Submission: a.Submission, Responder: a.Responder, Verdict: events.Granted, Action: "sha256:00",
		})), 200, `"accepted":true`)
		if m := channeltest.Next(in, in.broker.Answers); m.Subject.Family != "approval" {
			in.Errorf("submitted on %s", m.Subject.Family)
		}
	}))
	for reason, status := range map[events.Reason]int{
		events.Duplicate: 409, events.StaleVersion: 409, events.NotPending: 409,
		events.NotAnOption: 422, events.InvalidValue: 422, events.Incomplete: 422, events.NotAllowed: 403, events.UnknownTask: 404,
	} {
		t.Run(string(reason), inboundBubble(func(in inboundTest) {
			in.broker.Says(channeltest.Script{Verdict: func(s channeltest.Submitted) *events.Verdict { return s.Refuse(reason) }})
			in.want(in.send(in.request(in.answer())), status, `"reason":"`+string(reason)+`"`)
		}))
	}
	t.Run("not_judged_yet", inboundBubble(func(in inboundTest) {
		in.broker.Says(channeltest.Script{})
		in.want(in.send(in.request(in.answer())), 202, `"status":"received, checking"`)
	}))
	t.Run("a_retry_is_the_same_submission", inboundBubble(func(in inboundTest) {
		first := in.request(in.answer())
		in.send(first)
		time.Sleep(time.Minute)
		in.send(in.request(in.answer()))
		other := in.answer()
		other.Values[0].Option = "c-101"
		in.send(in.request(other))
		a, b, c := channeltest.Next(in, in.broker.Answers), channeltest.Next(in, in.broker.Answers), channeltest.Next(in, in.broker.Answers)
		if id(a) != id(b) {
			in.Errorf("a retry became another submission: %s, %s", id(a), id(b))
		}
		if id(a) == id(c) {
			in.Error("another answer under the same webhook-id became the same submission")
		}
	}))
}

func id(m bus.Message) events.SubmissionID { return m.Envelope.Data.(events.Answer).Submission }

func TestAnswersRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in inboundTest, r *http.Request) *http.Request
		status int
		body   string
	}{
		"no_signature": {func(_ inboundTest, r *http.Request) *http.Request { r.Header.Del("webhook-signature"); return r }, 401, "signature"},
		"too_old": {func(in inboundTest, r *http.Request) *http.Request {
			time.Sleep(6 * time.Minute)
			return r
		}, 401, "signature"},
		"another_content_type": {func(_ inboundTest, r *http.Request) *http.Request {
			r.Header.Set("Content-Type", "application/json")
			return r
		}, 415, "content_type"},
		"headers_of_a_binary_event": {func(in inboundTest, r *http.Request) *http.Request {
			r.Header.Set("ce-type", "dev.clarify.approval.submitted.v1")
			return r
		}, 200, `"accepted":true`},
		"no_event":       {signedBody(`{"a":1}`), 400, "malformed"},
		"not_json":       {signedBody(`hello`), 400, "malformed"},
		"twice_a_member": {signedBody(`{"specversion":"1.0","specversion":"1.0"}`), 400, "malformed"},
		"deep":           {signedBody(strings.Repeat("[", 10001)), 400, "malformed"},
		"huge":           {signedBody(`{"a":"` + strings.Repeat("x", 70<<10) + `"}`), 413, "too_large"},
		"another_type": {func(in inboundTest, _ *http.Request) *http.Request {
			return in.request(events.CancelRequest{Agent: "crm-bot", Task: "t-42", Version: 7})
		}, 400, "answer.submitted.v1"},
		"neither_option_nor_value": {func(in inboundTest, _ *http.Request) *http.Request {
			a := in.answer()
			a.Values = []events.Given{{Field: "customer_id"}}
			return in.request(a)
		}, 400, "malformed"},
		"get": {func(_ inboundTest, r *http.Request) *http.Request { r.Method = http.MethodGet; return r }, 405, ""},
	} {
		t.Run(name, inboundBubble(func(in inboundTest) {
			w := in.send(c.change(in, in.request(in.answer())))
			in.want(w, c.status, c.body)
			if c.status != 200 && len(in.broker.Answers) != 0 {
				in.Error("it was submitted all the same")
			}
			if strings.Contains(in.log.String(), "c-207") || strings.Contains(in.log.String(), "whsec") {
				in.Errorf("the log says %s", in.log)
			}
		}))
	}
}

func signedBody(body string) func(inboundTest, *http.Request) *http.Request {
	return func(in inboundTest, r *http.Request) *http.Request {
		out := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		maps.Copy(out.Header, r.Header)
		sign(out.Header, in.keys[:1], "msg-1", time.Now(), []byte(body))
		return out
	}
}
