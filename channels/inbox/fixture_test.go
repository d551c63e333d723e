package inbox

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

var noon = time.Date(2026, 12, 1, 14, 18, 0, 0, time.UTC)

func ana(*http.Request) (events.Responder, error) {
	return events.Responder{Channel: "inbox", Subject: "ana", Name: "Ana", Assurance: events.Login}, nil
}

func stranger(*http.Request) (events.Responder, error) { return events.Responder{}, ErrStranger }

// waiting lists what a test has it list.
type waiting []events.ListItem

func (w waiting) List(_ context.Context, r events.ListRequest) (events.ListReply, error) {
	return events.ListReply{Items: w}, nil
}

func testKeys(t testing.TB) *channels.Keyring {
	t.Helper()
	k, err := channels.NewKeyring(channels.KeyringConfig{Keys: []channels.KeyConfig{{ID: "a", Secret: strings.Repeat("secret", 8)}}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newInbox is an inbox whose clock stands still.
func newInbox(t testing.TB, c Config, p Parts) *Inbox {
	t.Helper()
	if p.Desk == nil {
		p.Desk = channels.NewDesk(nil, "inbox", 0)
	}
	if p.Identify == nil {
		p.Identify = ana
	}
	p.Log = slog.New(slog.DiscardHandler)
	in, err := New(c, p)
	if err != nil {
		t.Fatal(err)
	}
	in.now = func() time.Time { return noon }
	return in
}

func clarification() events.QuestionReply {
	fields := []events.Field{{
		Name: "customer_id", Role: events.RoleIdentity, Prompt: "¿Qué Juan hay que actualizar?",
		Options: []events.Option{
			{ID: "c-101", Label: "Juan Pérez, Lima", Hint: "Cliente desde 2019"},
			{ID: "c-207", Label: "Juan Gómez, Quito"},
			{ID: "c-311", Label: "Juan Ruiz, Madrid"},
		},
		FreeText: &events.FreeText{MaxRunes: 64},
	}}
	return replyOf(events.Clarification, events.Content{
		Lang: "es", Step: "update-record", Tool: "crm.update_record", Fields: fields, Action: digest,
		Shown:     []events.Shown{{Name: "name", Value: "Juan"}, {Name: "phone", Value: "+34 600 000 000"}},
		AgentSays: "The customer asked to change their phone number.\nThey wrote from their usual address.", Requester: "Ana",
		Reason: "the record to be changed is not unique", AfterDeadline: events.DeadlineStop,
	})
}

const digest = events.Digest("sha256:3f5a9c0e1b7d4c62a8f1e0d9c8b7a6958473625140fedcba9876543210abcdef")

func approval() events.QuestionReply {
	return replyOf(events.Approval, events.Content{
		Lang: "en", Step: "refund", Tool: "billing.refund", Action: digest,
		Shown:         []events.Shown{{Name: "order", Value: "A-1001"}, {Name: "amount", Value: "249.90 EUR"}, {Name: "iban", Value: "•••• 4821"}},
		Assumptions:   []events.Shown{{Name: "currency", Value: "EUR (default of the policy)"}},
		AgentSays:     "The parcel was lost; the carrier has confirmed it.",
		Reason:        "refunds over 200 EUR need an approval",
		AfterDeadline: events.DeadlineEscalate,
	})
}

func escalation() events.QuestionReply {
	return replyOf(events.Escalation, events.Content{
		Lang: "en", Step: "delete", Tool: "files.delete", Action: digest, Shown: []events.Shown{{Name: "path", Value: "/srv/exports/2026"}},
		Fields: []events.Field{{Name: "retention", Prompt: "How long are these kept?", FreeText: &events.FreeText{MaxRunes: 40}}},
		Reason: "the tool is not in the catalog", AfterDeadline: events.DeadlineHold,
	})
}

func replyOf(k events.PauseKind, c events.Content) events.QuestionReply {
	q := events.Question{Agent: "crm-bot", Task: "t-42", Version: 7, Question: "01K9ZZZZZZZZZZZZZZZZZZZZZZ", Kind: k, Phase: events.PhaseAsk, Channel: "inbox", Content: c}
	return events.QuestionReply{
		Question: &q, Kind: events.Reached, Current: 7,
		Pause: &events.PauseView{Question: q.Question, Kind: k, Version: 7, Status: events.PauseWaiting, Fields: c.Fields, Deadline: noon.Add(12 * time.Minute), Cap: noon.Add(time.Hour)},
	}
}

func ended(r events.QuestionReply, kind events.Kind, status events.PauseStatus) events.QuestionReply {
	r.Kind, r.Pause.Status, r.Question.Phase = kind, status, events.PhaseClose
	r.Question.Closed = &events.Closed{Status: status, Kind: kind, By: &events.Responder{Name: "Ana", Subject: "ana"}, At: noon.Add(3 * time.Minute)}
	return r
}

func visitOf(r events.QuestionReply, who events.Responder) visit {
	return visit{who: who, place: events.Place{Channel: "inbox", Agent: r.Question.Agent, Task: r.Question.Task, Version: 7}}
}

var nonce = regexp.MustCompile(`name="nonce" value="[A-Z0-9]{26}"`)

// rendered is the page of a view, with the form's random part taken out.
func rendered(in *Inbox, lang string, status int, v view) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Language", lang)
	in.show(w, r, status, v)
	return nonce.ReplaceAllString(w.Body.String(), `name="nonce" value="NONCE"`)
}
