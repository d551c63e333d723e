package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/spf13/cobra"
)

// cli is the channel of the command line.
const cli events.Channel = "cli"

const answerLong = `Answers a question with one of its options, a value where it takes one, or a word:

  approve, deny               an approval
  none                        none of the options is right
  cancel                      call the step off
  take_over, stop, hand_back  a case that was escalated; hand_back takes a value behind it

The question is named by its id, by the beginning or end of it (six characters or more), or by its task. Without an answer the
question is shown. An option wins over a word. --value gives a value that is one of these words, as it stands. "-" reads the
value from standard input, for what should not be seen.

approve and deny are for approvals alone: a question for a value does not take them, nor an approval a value.

An answer is accepted at most once; everything else is refused, and changes nothing.`

type answerFlags struct {
	field, note, value string
}

// typed is an answer as it stands on the command line.
type typed struct {
	field   string
	words   []string // at least one
	literal bool     // the last word is a value, whatever it means elsewhere
}

func (s typed) last() string { return s.words[len(s.words)-1] }

func (t *terminal) answer() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer <question> [<option>|<value>|approve|deny|none|cancel]",
		Short: "Answer a question",
		Long:  answerLong,
		Args:  needs(2, "the question"),
	}
	cmd.RunE = t.does(func(cmd *cobra.Command, args []string) error {
		said := typed{field: f.field, words: args[1:], literal: cmd.Flags().Changed("value")}
		if said.literal {
			said.words = append(said.words, f.value)
		}
		l, err := t.dial(cmd.Context())
		if err != nil {
			return err
		}
		defer l.close()
		return t.reply(cmd.Context(), l, answering{args[0], f.note, said})
	})
	cmd.Flags().StringVar(&f.field, "field", "", "which field, where the question has several")
	cmd.Flags().StringVar(&f.note, "note", "", "a remark that is kept with the answer")
	cmd.Flags().StringVar(&f.value, "value", "", "the value as it stands, where it could be taken for a word such as approve or none")
	return cmd
}

// answering is a call of `clarify answer`: a question by any of its names, and what is said to it. Without words it is shown.
type answering struct {
	ref, note string
	said      typed
}

func (t *terminal) reply(ctx context.Context, l *link, a answering) error {
	item, err := l.findQuestion(ctx, a.ref)
	if err != nil {
		return err
	}
	desk := channels.NewDesk(l.Bus, cli, l.patience)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var hearing sync.WaitGroup
	hearing.Go(func() { _ = desk.Run(ctx) }) // a desk that hears no verdicts looks them up
	defer func() { cancel(); hearing.Wait() }()
	look, err := desk.Look(ctx, events.Place{Agent: item.Agent, Task: item.Task, Version: item.Pause.Version})
	if err != nil {
		return err
	}
	if len(a.said.words) == 0 {
		return t.showQuestion(item, look)
	}
	if err := open(item, look); err != nil {
		return err
	}
	r := replier{desk: desk, item: item, question: *look.Question, note: a.note, said: a.said}
	r.who, err = responder()
	if err != nil {
		return err
	}
	if r.said.last() == "-" && !r.said.literal {
		text, err := readAll(t.in)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		r.said.words = append(slices.Clone(r.said.words[:len(r.said.words)-1]), text)
		r.said.literal = true
	}
	v, err := r.send(ctx)
	if err != nil {
		return err
	}
	return t.verdict(r, v)
}

// open says truthfully why there is nothing to answer, before anything is sent.
func open(item events.ListItem, look events.QuestionReply) error {
	p := item.Pause
	if look.Pause != nil && look.Pause.Question == p.Question {
		p = look.Pause
	}
	switch {
	case p.Status != events.PauseWaiting && p.AnsweredBy != nil:
		return fail(refused, "already answered at %s by %s. Nothing was sent.", clock(p.AnsweredAt), who(p.AnsweredBy))
	case p.Status != events.PauseWaiting:
		return fail(refused, "it waits no more: %s. Nothing was sent.", strings.ReplaceAll(string(p.Status), "_", " "))
	case look.Question == nil || look.Pause == nil:
		return fail(refused, "it is not asked on the command line (channel %s), but on %s. Nothing was sent.", cli, join(p.Channels))
	case look.Pause.Question != item.Pause.Question:
		return fail(refused, "the task has moved on and asks something else now. Nothing was sent.")
	}
	return nil
}

func responder() (events.Responder, error) {
	me, err := user.Current()
	if err != nil {
		return events.Responder{}, fmt.Errorf("find the operating system's user: %w", err)
	}
	name, _, _ := strings.Cut(me.Name, ",")
	if name == "" {
		name = me.Username
	}
	return events.Responder{Channel: cli, Subject: me.Username, Name: name, Assurance: events.Platform}, nil
}

// replier sends one answer to one question.
type replier struct {
	desk     *channels.Desk
	item     events.ListItem
	question events.Question
	who      events.Responder
	note     string
	said     typed
}

func (r replier) send(ctx context.Context) (events.Verdict, error) {
	if r.question.Kind != events.Approval || r.calledOff() {
		a, err := r.compose()
		if err != nil {
			return events.Verdict{}, err
		}
		return pending(r.desk.Submit(ctx, a))
	}
	word := events.ApprovalVerdict(r.said.words[0])
	if len(r.said.words) > 1 || r.said.literal || word != events.Granted && word != events.NotGranted {
		return events.Verdict{}, fail(usage, "this is an approval, not a question for a value: answer approve, deny or cancel. Nothing was sent.")
	}
	a := events.ApprovalAnswer{
		Agent: r.item.Agent, Task: r.item.Task, Version: r.question.Version, Question: r.question.Question,
		Submission: events.NewSubmissionID(), Responder: r.who, Verdict: word, Action: r.question.Content.Action, Note: r.note,
	}
	return pending(r.desk.SubmitApproval(ctx, a))
}

func pending(v events.Verdict, err error) (events.Verdict, error) {
	if errors.Is(err, channels.ErrPending) {
		return v, &fault{
			code: unreachable, cause: err,
			text: "received, checking: the answer is stored and no broker has judged it yet; ask again with `clarify show`",
		}
	}
	return v, err
}

// compose makes an answer out of what was typed.
func (r replier) compose() (events.Answer, error) {
	a := events.Answer{
		Agent: r.item.Agent, Task: r.item.Task, Version: r.question.Version, Question: r.question.Question,
		Submission: events.NewSubmissionID(), Responder: r.who, Note: r.note,
	}
	values := r.said.words
	if r.question.Kind == events.Escalation {
		switch move := events.EscalationMove(values[0]); move {
		case events.TakeOver, events.EndIt, events.HandBack:
			a.Handover = move
			values = values[1:]
		default:
			return a, fail(usage, "this case was escalated: answer take_over, stop or hand_back, and a value behind hand_back where one was missing")
		}
		if len(values) == 0 {
			return a, nil
		}
	}
	if len(values) > 1 {
		return a, fail(usage, "one answer at a time; put a value with spaces in quotes")
	}
	if r.calledOff() {
		a.Cancel = true
		return a, nil
	}
	f, err := r.field(r.said.field)
	if err != nil {
		return a, err
	}
	given, err := r.said.given(f)
	if err != nil {
		return a, err
	}
	a.Values = []events.Given{given}
	return a, nil
}

// calledOff reports that cancel was typed and is no option of the question.
func (r replier) calledOff() bool {
	return r.said.last() == "cancel" && !r.said.literal && !slices.ContainsFunc(r.question.Content.Fields, func(f events.Field) bool {
		return option(f, "cancel") != ""
	})
}

func (r replier) field(name string) (events.Field, error) {
	fields := r.question.Content.Fields
	var open []string
	for _, f := range fields {
		if f.Name == name || name == "" && len(fields) == 1 {
			return f, nil
		}
		open = append(open, f.Name)
	}
	if name == "" {
		return events.Field{}, fail(usage, "the question has several fields; say which with --field: %s", strings.Join(open, ", "))
	}
	return events.Field{}, fail(usage, "the question has no field %q; it has %s", name, strings.Join(open, ", "))
}

// given takes what was typed for an option, a word, or a value, in this order.
func (s typed) given(f events.Field) (events.Given, error) {
	word := s.last()
	if id := option(f, word); id != "" {
		return events.Given{Field: f.Name, Option: id}, nil
	}
	if !s.literal {
		switch word {
		case "none":
			return events.Given{Field: f.Name, Option: events.NoneOfThese}, nil
		case string(events.Granted), string(events.NotGranted):
			return events.Given{}, noApproval(f, word)
		}
	}
	if f.FreeText == nil {
		return events.Given{Field: f.Name, Option: word}, nil // the broker refuses it, and it is on record
	}
	return events.Given{Field: f.Name, Value: channels.Typed(f, word)}, nil
}

// noApproval refuses an approver's word where a value is asked for: it would become the value.
func noApproval(f events.Field, word string) error {
	how := "answer one of " + optionIDs(f)
	switch {
	case f.FreeText != nil && len(f.Options) > 0:
		how += ", or another value; --value " + word + " gives the word itself"
	case f.FreeText != nil:
		how = "answer with the value; --value " + word + " gives the word itself"
	}
	return fail(usage, "this is a question for a value, not an approval: %s. Nothing was sent.", how)
}

// option is the option that has a text as its id, or as its label: of several with one label none is meant.
func option(f events.Field, text string) (id string) {
	for _, o := range f.Options {
		if o.ID == text {
			return text
		}
	}
	for _, o := range f.Options {
		if strings.EqualFold(o.Label, text) {
			if id != "" {
				return ""
			}
			id = o.ID
		}
	}
	return id
}

// verdict says what became of an answer.
func (t *terminal) verdict(r replier, v events.Verdict) error {
	if !v.Accepted || v.Refusal != nil {
		return fail(refused, "%s", r.refusal(v))
	}
	return t.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (task %s v%d, step %s). %s\n", r.did(), v.Question, v.Task, v.Version,
			channels.Plain(r.item.Step), became(v.Kind))
	})
}

func (r replier) did() string {
	values := r.said.words
	switch {
	case r.question.Kind == events.Approval && values[0] == string(events.Granted):
		return "approved"
	case r.question.Kind == events.Approval && values[0] == string(events.NotGranted):
		return "denied"
	case r.question.Kind == events.Escalation:
		return strings.ReplaceAll(values[0], "_", " ") + " of"
	}
	if f, err := r.field(r.said.field); err != nil || f.Secret {
		return "answered"
	}
	return "answered " + channels.Plain(values[0]) + " to"
}

func (r replier) refusal(v events.Verdict) string {
	still := "Nothing changed."
	if v.Open {
		still = "The question is still waiting."
	}
	if v.Refusal == nil {
		return "refused. " + still
	}
	if v.Refusal.Reason == events.NotAnOption {
		for _, f := range r.question.Content.Fields {
			if f.Name == v.Refusal.Field || len(r.question.Content.Fields) == 1 {
				return fmt.Sprintf("%q is not one of %s. %s", channels.Plain(r.said.last()), optionIDs(f), still)
			}
		}
	}
	return refusal(*v.Refusal, nil) + ". " + still
}

func optionIDs(f events.Field) string {
	ids := make([]string, 0, len(f.Options))
	for _, o := range f.Options {
		ids = append(ids, channels.Plain(o.ID))
	}
	return strings.Join(ids, ", ")
}

// clock is a time of day as the reader's watch shows it, with the date when it is another day.
func clock(at time.Time) string {
	if at.IsZero() {
		return "a time that is not known"
	}
	at = at.Local()
	if now := time.Now(); now.Format(time.DateOnly) != at.Format(time.DateOnly) {
		return at.Format("2006-01-02 15:04:05")
	}
	return at.Format("15:04:05")
}
