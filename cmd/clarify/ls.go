package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/spf13/cobra"
)

type lsFlags struct {
	all   bool
	agent string
	limit int
}

func (t *terminal) ls() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the questions that wait",
		Long:  "Lists the questions that wait for somebody, newest first. With --all every task the broker still keeps, ended ones too.",
		Args:  needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			reply, err := l.list(cmd.Context(), events.ListRequest{Agent: events.Agent(f.agent), Waiting: !f.all, Ended: f.all, Limit: f.limit})
			if err != nil {
				return err
			}
			return t.listTasks(f, reply)
		}),
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "every task, not only those that wait")
	cmd.Flags().StringVar(&f.agent, "agent", "", "only this agent's")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most so many, up to 1000")
	return cmd
}

func (t *terminal) listTasks(f lsFlags, reply events.ListReply) error {
	head, row, empty := "QUESTION\tTASK\tTOOL\tASKS\tWAITS", questionRow, "Nothing waits."
	if f.all {
		head, row, empty = "TASK\tTOOL\tVERSION\tSTATE\tSINCE\tQUESTION", taskRow, "There are no tasks."
	}
	if err := list(t, reply.Items, head, row, empty); err != nil {
		return err
	}
	if reply.More > 0 {
		fmt.Fprintf(t.err, "%d more; see --limit\n", reply.More)
	}
	return nil
}

func questionRow(i events.ListItem) string {
	return strings.Join([]string{string(i.Pause.Question), key{i.Agent, i.Task}.String(), channels.Plain(i.Tool), asks(*i.Pause), until(*i.Pause)}, "\t")
}

func taskRow(i events.ListItem) string {
	question := "-"
	if i.Pause != nil {
		question = string(i.Pause.Question)
	}
	return strings.Join([]string{
		key{i.Agent, i.Task}.String(), channels.Plain(i.Tool), fmt.Sprintf("v%d", i.Version), plainKind(i.Kind),
		clock(i.At), question,
	}, "\t")
}

// asks is a question on one line: what is asked, and the options by their ids.
func asks(p events.PauseView) string {
	if p.Kind == events.Approval {
		return "approve or deny"
	}
	var parts []string
	for _, f := range p.Fields {
		part := channels.Plain(f.Prompt)
		if len(f.Options) > 0 {
			part += " [" + strings.ReplaceAll(optionIDs(f), ", ", " | ") + "]"
		}
		parts = append(parts, part)
	}
	if p.Kind == events.Escalation {
		parts = append([]string{"take_over, stop or hand_back"}, parts...)
	}
	return strings.Join(parts, "; ")
}

// until says how long a question waits.
func until(p events.PauseView) string {
	switch {
	case !p.Overdue.IsZero():
		return "overdue since " + clock(p.Overdue)
	case !p.Deadline.IsZero():
		return "until " + clock(p.Deadline)
	case !p.Cap.IsZero():
		return "nobody reached yet"
	}
	return "-"
}

// showQuestion shows one question as a channel would.
func (t *terminal) showQuestion(item events.ListItem, look events.QuestionReply) error {
	if look.Question == nil {
		return fail(refused, "it is not asked on the command line (channel %s), but on %s", cli, join(item.Pause.Channels))
	}
	q := *look.Question
	return t.print(look, func(w io.Writer) {
		rows := [][2]string{
			{"Question", string(q.Question)},
			{"Task", fmt.Sprintf("%s/%s v%d", q.Agent, q.Task, q.Version)},
			{"Action", channels.Plain(q.Content.Tool) + ", step " + channels.Plain(q.Content.Step)},
		}
		for _, s := range q.Content.Shown {
			rows = append(rows, [2]string{"", channels.Plain(s.Name) + " = " + channels.Plain(s.Value)})
		}
		if q.Content.Requester != "" {
			rows = append(rows, [2]string{"For", channels.Plain(q.Content.Requester)})
		}
		if q.Content.AgentSays != "" {
			rows = append(rows, [2]string{"Agent says", channels.Plain(q.Content.AgentSays)})
		}
		rows = append(rows, fieldRows(q)...)
		rows = append(rows, [2]string{"Waits", waits(*item.Pause)})
		block(w, rows)
	})
}

func fieldRows(q events.Question) [][2]string {
	if q.Kind == events.Approval {
		return [][2]string{{"Asks", "approve or deny"}, {"Digest", string(q.Content.Action)}}
	}
	var rows [][2]string
	for _, f := range q.Content.Fields {
		rows = append(rows, [2]string{"Asks", channels.Plain(f.Prompt)})
		for _, o := range optionLines(f) {
			rows = append(rows, [2]string{"", o})
		}
		if f.FreeText != nil {
			rows = append(rows, [2]string{"", "or a value of your own"})
		}
	}
	return rows
}

func waits(p events.PauseView) string {
	if p.Status != events.PauseWaiting {
		return "no more: " + strings.ReplaceAll(string(p.Status), "_", " ")
	}
	if p.Deadline.IsZero() || !p.Overdue.IsZero() {
		return until(p)
	}
	return until(p) + " (" + time.Until(p.Deadline).Round(time.Second).String() + ")"
}

// block writes rows of a name and a value, aligned.
func block(w io.Writer, rows [][2]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(w, "  %-*s  %s\n", width, r[0], r[1])
	}
}

// optionLines are the options of a field, ids and labels aligned.
func optionLines(f events.Field) []string {
	width := 0
	for _, o := range f.Options {
		width = max(width, len(channels.Plain(o.ID)))
	}
	var out []string
	for _, o := range f.Options {
		out = append(out, fmt.Sprintf("%-*s  %s", width, channels.Plain(o.ID), channels.Plain(o.Label)))
	}
	return out
}
