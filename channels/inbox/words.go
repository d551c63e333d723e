package inbox

import (
	"net/http"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
)

// words are the sentences of all channels and those of the page.
type words struct {
	channels.Words
	own map[string]string
}

func inWords(lang string, zone *time.Location) words {
	w := words{Words: channels.In(lang, zone), own: english}
	if w.Lang() == "es" {
		w.own = spanish
	}
	return w
}

// Say returns the page's own sentence of a key, or the one that all channels share.
func (w words) Say(key string, pairs ...string) string {
	text, ok := w.own[key]
	if !ok {
		return w.Words.Say(key, pairs...)
	}
	marked := make([]string, len(pairs))
	for i, p := range pairs {
		if i%2 == 0 {
			p = "{" + p + "}"
		}
		marked[i] = p
	}
	return strings.NewReplacer(marked...).Replace(text)
}

// ended says what became of a question that is not open.
func (w words) ended(r events.QuestionReply, now time.Time) string {
	if c := r.Question.Closed; c != nil && !c.At.IsZero() {
		return w.Closed(*c, now)
	}
	if !r.Pause.AnsweredAt.IsZero() {
		return w.Closed(events.Closed{Status: r.Pause.Status, Kind: r.Kind, By: r.Pause.AnsweredBy, At: r.Pause.AnsweredAt}, now)
	}
	return w.Words.Say("refused.not_pending", "became", w.Became(r.Kind))
}

// speak picks the language of the page: the one asked for by ?lang, the browser's first that there is, the configured one.
func (in *Inbox) speak(r *http.Request) string {
	if lang := supported(r.URL.Query().Get("lang")); lang != "" {
		return lang
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(part, ";")
		if lang := supported(strings.TrimSpace(tag)); lang != "" {
			return lang
		}
	}
	if lang := supported(in.config.Lang); lang != "" {
		return lang
	}
	return "en"
}

func supported(tag string) string {
	primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if primary == "en" || primary == "es" {
		return primary
	}
	return ""
}

var english = map[string]string{ //nolint:gochecknoglobals // a table, read only
	"page.inbox":         "Inbox",
	"page.skip":          "Skip to the content",
	"page.language":      "Language",
	"page.none":          "Nothing is waiting.",
	"page.one":           "1 question is waiting.",
	"page.many":          "{n} questions are waiting.",
	"page.more":          "{n} more are not shown.",
	"page.task":          "Task",
	"page.tool":          "Tool",
	"page.step":          "Step",
	"page.agent":         "Agent",
	"page.until":         "Until",
	"page.since":         "Since",
	"page.left":          "({left} left)",
	"page.run":           "What would run",
	"page.arguments":     "Arguments",
	"page.nothing":       "None are shown.",
	"page.wants":         "{agent} wants to run",
	"page.for":           "for {who}, says the agent",
	"page.digest":        "Fingerprint of this action",
	"page.digest.hint":   "Exactly the action with this fingerprint is approved, nothing else.",
	"page.assumed":       "Assumed without asking",
	"page.says":          "The agent says",
	"page.says.hint":     "The agent's own words. Nobody has checked them.",
	"page.reason":        "Why this is asked",
	"page.next":          "What happens next",
	"page.silence":       "What silence means",
	"page.other":         "Another value",
	"page.value":         "Your answer",
	"page.nonehere":      "None of these",
	"page.nonehere.hint": "The question stays open, or is asked another way.",
	"page.secret":        "What you type is not shown again.",
	"page.done":          "Already answered and kept.",
	"page.send":          "Send answer",
	"page.decide":        "Send decision",
	"page.note":          "Note (optional)",
	"page.off":           "Call the task off",
	"page.off.hint":      "The action will not run. This cannot be taken back.",
	"page.off.send":      "Call it off",
	"page.decision":      "Your decision",
	"page.changed":       "This question has changed since this link was made. An answer to it no longer counts.",
	"page.newer":         "Go to the current question",
	"page.back":          "Back to the inbox",

	"title.clarification": "Some answers are needed before {tool} can run",
	"title.approval":      "May {tool} run?",
	"title.escalation":    "{tool} needs its owner",

	"move.approve":        "Approve",
	"move.approve.hint":   "Exactly this action may run, once.",
	"move.deny":           "Deny",
	"move.deny.hint":      "It will not run.",
	"move.hand_back":      "Hand back",
	"move.hand_back.hint": "The policy decides again, with the values you give here.",
	"move.take_over":      "Take over",
	"move.take_over.hint": "You do it by hand; the agent will not run it.",
	"move.stop":           "Stop",
	"move.stop.hint":      "It will not run.",

	"badge.waiting":     "Waiting",
	"badge.answered":    "Answered",
	"badge.cancelled":   "Called off",
	"badge.timed_out":   "Not answered in time",
	"badge.undelivered": "Nobody reached",
	"badge.superseded":  "Replaced",

	"kind.clarification": "Question",
	"kind.approval":      "Approval",
	"kind.escalation":    "Escalation",

	"form.choose":     "Nothing was chosen, so nothing was sent.",
	"form.both":       "An option was chosen and another value typed: keep one of them. Nothing was sent.",
	"form.empty":      "\"Another value\" was chosen but none was typed. Nothing was sent.",
	"form.incomplete": "The form did not arrive whole, so nothing was sent. Send it from this page.",
	"form.invalid":    "That could not be read as an answer, so nothing was sent.",
	"form.not_stored": "Your answer could not be stored. Send it again: sending twice is harmless.",
	"form.bearer":     "This link shows the approval but cannot decide it: anybody who holds it could. Sign in to the inbox, or decide it where you were asked.",

	"message.unknown.title":    "No such question",
	"message.unknown":          "There is no such question here, or no longer. Nothing was changed.",
	"message.lost.title":       "No such page",
	"message.lost":             "There is no page at this address.",
	"message.stranger.title":   "Not signed in",
	"message.stranger":         "This inbox does not know who you are, so it shows nothing. Open it as it is configured: on the machine it runs on, or through the login proxy.",
	"message.foreign.title":    "Form not accepted",
	"message.foreign":          "The browser did not say that this form came from this page, so nothing was sent. Open the page over https, or on the machine it runs on, and send it from there.",
	"message.unreadable.title": "Form not accepted",
	"message.unreadable":       "The form could not be read, or was too long. Nothing was sent.",
	"message.down.title":       "The broker does not answer",
	"message.down":             "The question cannot be shown now, and nothing was sent. Try again in a moment.",
}
