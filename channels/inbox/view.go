package inbox

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// view is everything a question's page is made of.
type view struct {
	visit   visit
	reply   events.QuestionReply
	form    form            // what the visitor filled in, to be shown again
	lacks   string          // the key of what kept the form from being sent
	verdict *events.Verdict // on what was sent
	pending bool            // it is stored, and not judged yet
}

// questionPage is a view in words, as the template takes it. All its strings are text.
type questionPage struct {
	Kind    events.PauseKind
	Title   string
	Prose   string // language of what the agent and the policy wrote, empty when not known
	Content events.Content
	standing
	action
	formView
	meaning
}

// standing is what has become of the question.
type standing struct {
	Open   bool // it can be answered here
	Badge  string
	Notice *notice
	Newer  string // path of the question that replaced this one
}

// action is what would run.
type action struct {
	Agent   string
	Tool    string
	Step    string
	Facts   []events.Shown
	Assumed []events.Shown
}

// formView is what is filled in.
type formView struct {
	Question events.QuestionID
	Nonce    string
	Fields   []fieldView
	Moves    []moveView
	Note     string
}

// meaning is what an answer leads to, and what silence does.
type meaning struct {
	Next     string
	Silence  string
	Deadline *moment
}

// notice is the first thing on a page after something was sent.
type notice struct {
	Role string // alert for a refusal, status otherwise
	Tone string // ok, wait or no: never shown by colour alone
	Text string
}

type moment struct{ Machine, Text string }

type fieldView struct {
	events.Field
	Options []optionView
	None    *optionView // "none of these", wherever there are options
	Typed   bool        // the visitor chose to type
	Text    string
	Input   string // type of the input
	Done    bool   // answered before, kept from an incomplete submission
}

type optionView struct {
	events.Option
	Checked bool
}

// moveView is one thing that an approver or an owner can do.
type moveView struct {
	Value, Label, Hint string
	Checked            bool
}

// page puts a view into words.
func (v view) page(w words, base string, now time.Time) questionPage {
	q := v.reply.Question
	p := questionPage{
		Kind: q.Kind, Title: title(w, *q), Prose: proseLang(q.Content.Lang), Content: q.Content,
		standing: standing{Open: v.open(), Badge: w.Say("badge." + string(v.badge())), Notice: v.notice(w, now)},
		action: action{
			Agent: string(q.Agent), Tool: channels.Plain(q.Content.Tool), Step: channels.Plain(q.Content.Step),
			Facts: plainShown(q.Content.Shown), Assumed: plainShown(q.Content.Assumptions),
		},
		formView: formView{Question: q.Question, Nonce: newNonce(), Moves: v.moves(w), Note: v.form.Note},
		meaning:  meaning{Next: w.Next(q.Kind), Silence: w.Silence(q.Content.AfterDeadline), Deadline: v.deadline(w, now)},
	}
	p.Content.AgentSays = channels.PlainLines(q.Content.AgentSays)
	p.Content.Reason = channels.Plain(q.Content.Reason)
	p.Content.Requester = channels.Plain(q.Content.Requester)
	if v.reply.Pause.Version > v.visit.place.Version && !v.visit.bearer() {
		p.Newer = fmt.Sprintf("%s/q/%s/%s/%d", base, v.visit.place.Agent, v.visit.place.Task, v.reply.Pause.Version)
	}
	for _, f := range q.Content.Fields {
		p.Fields = append(p.Fields, v.field(f))
	}
	return p
}

// open reports that this very version still waits, and this visitor may try.
func (v view) open() bool {
	return v.reply.Pause.Status == events.PauseWaiting && v.reply.Pause.Version == v.visit.place.Version &&
		!v.pending && (v.verdict == nil || v.verdict.Open) && (v.reply.Question.Kind != events.Approval || !v.visit.bearer())
}

func (v view) badge() events.PauseStatus {
	if v.reply.Pause.Version != v.visit.place.Version {
		return events.PauseSuperseded
	}
	return v.reply.Pause.Status
}

// notice says first what became of what was sent, and otherwise what became of the question.
func (v view) notice(w words, now time.Time) *notice {
	waiting := v.reply.Pause.Status == events.PauseWaiting && v.reply.Pause.Version == v.visit.place.Version
	switch {
	case v.lacks != "":
		text := w.Say(v.lacks)
		if waiting {
			text += " " + w.Say("still_open")
		}
		return &notice{"alert", "no", text}
	case v.pending:
		return &notice{"status", "wait", w.Pending()}
	case v.verdict != nil && v.verdict.Accepted:
		return &notice{"status", "ok", w.Verdict(*v.verdict)}
	case v.verdict != nil:
		return &notice{"alert", "no", w.Verdict(*v.verdict)}
	case v.reply.Pause.Version != v.visit.place.Version:
		return &notice{"status", "wait", w.Say("page.changed")}
	case waiting && v.reply.Question.Kind == events.Approval && v.visit.bearer():
		return &notice{"status", "wait", w.Say("form.bearer")}
	case waiting:
		return nil
	}
	return &notice{"status", "wait", w.ended(v.reply, now)}
}

func (v view) field(f events.Field) fieldView {
	out := fieldView{Field: f, Input: "text", Text: v.form.Text[f.Name], Done: f.Outcome != ""}
	if f.Secret {
		out.Input, out.Text = "password", "" // a secret is never shown again
	}
	choice := v.form.Choice[f.Name]
	out.Typed = choice == typed
	out.Prompt = channels.Plain(f.Prompt)
	for _, o := range f.Options {
		if o.ID != events.NoneOfThese {
			o.Label, o.Hint = channels.Plain(o.Label), channels.Plain(o.Hint)
			out.Options = append(out.Options, optionView{o, o.ID == choice})
		}
	}
	if len(f.Options) > 0 {
		out.None = &optionView{events.Option{ID: events.NoneOfThese}, choice == events.NoneOfThese}
	}
	return out
}

// moves are the choices of an approval or an escalation. None is chosen beforehand.
func (v view) moves(w words) []moveView {
	var out []moveView
	add := func(value string) {
		out = append(out, moveView{value, w.Say("move." + value), w.Say("move." + value + ".hint"), v.form.Do == value})
	}
	switch v.reply.Question.Kind {
	case events.Approval:
		add(string(events.Granted))
		add(string(events.NotGranted))
	case events.Escalation:
		add(string(events.HandBack))
		add(string(events.TakeOver))
		add(string(events.EndIt))
	case events.Clarification:
	}
	return out
}

func (v view) deadline(w words, now time.Time) *moment {
	at := v.reply.Pause.Deadline
	if at.IsZero() {
		at = v.reply.Pause.Cap
	}
	if at.IsZero() {
		return nil
	}
	text := w.At(at, now)
	if left := at.Sub(now); left > 0 {
		text += " " + w.Say("page.left", "left", span(left))
	}
	return &moment{at.UTC().Format(time.RFC3339), text}
}

// span writes a duration in its two largest units: 2 d 4 h, 12 min.
func span(d time.Duration) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d d %d h", days, hours), " 0 h")
	case hours > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", hours, minutes), " 0 min")
	case minutes > 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return "< 1 min"
}

func title(w words, q events.Question) string {
	tool := channels.Plain(q.Content.Tool)
	switch q.Kind {
	case events.Approval:
		return w.Say("title.approval", "tool", tool)
	case events.Escalation:
		return w.Say("title.escalation", "tool", tool)
	case events.Clarification:
		if len(q.Content.Fields) == 1 {
			return channels.Plain(q.Content.Fields[0].Prompt)
		}
	}
	return w.Say("title.clarification", "tool", tool)
}

func plainShown(in []events.Shown) []events.Shown {
	out := make([]events.Shown, 0, len(in))
	for _, s := range in {
		out = append(out, events.Shown{Name: channels.Plain(s.Name), Value: channels.PlainLines(s.Value)})
	}
	return out
}

var bcp47 = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)

// proseLang is a language tag that may stand in a lang attribute.
func proseLang(tag string) string {
	if bcp47.MatchString(tag) {
		return tag
	}
	return ""
}
