package inbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

const (
	maxForm = 64 << 10 // bytes of a submitted form

	typed = ":typed" // the choice that says "the value I typed"; no option's id starts with a colon

	doAnswer = "answer"
	doCancel = "cancel"
)

// form is what a visitor sent. Its zero value is an empty form.
type form struct {
	Do       string // answer or cancel; for the other kinds an approval's verdict or an escalation's move
	Nonce    string
	Question events.QuestionID
	Action   events.Digest
	Choice   map[string]string // by field: an option's id, or typed
	Text     map[string]string // by field
	Note     string
	whole    string // all of it, to tell one submission from another
}

// newNonce makes what tells two forms apart. The submission id is made out of it, so it cannot be guessed.
func newNonce() string { return rand.Text() }

func readForm(v url.Values) form {
	f := form{
		Do: v.Get("do"), Nonce: v.Get("nonce"), Question: events.QuestionID(v.Get("question")),
		Action: events.Digest(v.Get("action")), Note: strings.TrimSpace(v.Get("note")),
		Choice: map[string]string{}, Text: map[string]string{}, whole: v.Encode(),
	}
	for name, values := range v {
		if field, ok := strings.CutPrefix(name, "f."); ok && len(values) == 1 {
			f.Choice[field] = values[0]
		}
		if field, ok := strings.CutPrefix(name, "t."); ok && len(values) == 1 {
			f.Text[field] = values[0]
		}
	}
	return f
}

// submission is the same when a form is sent again as it was: a double click is one submission. What was filled in is part
// of it, so that a changed form is judged for itself, and the visitor, so that nobody can use up somebody else's.
func (f form) submission(v visit) events.SubmissionID {
	h := sha256.New()
	for _, part := range []string{"clarify inbox submission", string(v.who.Channel), v.who.Subject, string(v.place.Agent), string(v.place.Task), f.whole} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return events.SubmissionID("in-" + hex.EncodeToString(h.Sum(nil)[:20]))
}

// complete returns the key of the sentence that says what a form still lacks, empty when it can be sent.
func (f form) complete(q *events.Question) string {
	if len(f.Nonce) < 20 {
		return "form.incomplete"
	}
	if f.Do == "" {
		return "form.choose"
	}
	if f.Do != doAnswer && f.Do != string(events.HandBack) {
		return ""
	}
	chosen := 0
	for _, field := range q.Content.Fields {
		choice, text := f.Choice[field.Name], strings.TrimSpace(f.Text[field.Name])
		switch {
		case choice != "" && choice != typed && text != "":
			return "form.both"
		case choice == typed && text == "":
			return "form.empty"
		case choice != "" || text != "":
			chosen++
		}
	}
	if chosen == 0 && f.Do == doAnswer {
		return "form.choose"
	}
	return ""
}

// values are the fields that were filled in.
func (f form) values(fields []events.Field) []events.Given {
	var out []events.Given
	for _, field := range fields {
		choice, text := f.Choice[field.Name], f.Text[field.Name]
		switch {
		case choice != "" && choice != typed:
			out = append(out, events.Given{Field: field.Name, Option: choice})
		case strings.TrimSpace(text) != "":
			out = append(out, events.Given{Field: field.Name, Value: channels.Typed(field, text)})
		}
	}
	return out
}

func (f form) answer(v visit, q *events.Question) events.Answer {
	a := events.Answer{
		Agent: v.place.Agent, Task: v.place.Task, Version: v.place.Version, Question: f.Question,
		Submission: f.submission(v), Responder: v.who, Note: f.Note,
	}
	switch f.Do {
	case doCancel:
		a.Cancel = true
	case doAnswer:
		a.Values = f.values(q.Content.Fields)
	default:
		a.Handover = events.EscalationMove(f.Do)
		if a.Handover == events.HandBack {
			a.Values = f.values(q.Content.Fields)
		}
	}
	return a
}

// approval reports whether the form approves or denies, which is another event than an answer.
func (f form) isApproval() bool {
	return f.Do == string(events.Granted) || f.Do == string(events.NotGranted)
}

func (f form) approval(v visit) events.ApprovalAnswer {
	return events.ApprovalAnswer{
		Agent: v.place.Agent, Task: v.place.Task, Version: v.place.Version, Question: f.Question,
		Submission: f.submission(v), Responder: v.who, Verdict: events.ApprovalVerdict(f.Do), Action: f.Action, Note: f.Note,
	}
}
