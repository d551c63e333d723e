package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/spf13/cobra"
)

func (t *terminal) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show <task>",
		Short: "Tell what happened to a task",
		Long:  "Tells what happened to a task, from the audit: no values, and who answered. A task is <agent>/<task>, or its name where that is unique.",
		Args:  needs(0, "the task"),
		RunE: t.does(func(cmd *cobra.Command, args []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			k, err := l.findTask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.timeline(cmd.Context(), l, k)
		}),
	}
}

// history is a task as `clarify show` tells it.
type history struct {
	Now     *events.View    `json:"now,omitzero"`
	Records []events.Record `json:"records"`
}

func (t *terminal) timeline(ctx context.Context, l *link, k key) error {
	view, err := l.operate(ctx, events.VerbState, events.OperatorRequest{Agent: k.agent, Task: k.task})
	if err != nil {
		return err
	}
	h := history{Now: view, Records: []events.Record{}}
	if view != nil {
		l.audited(ctx, k, view.Seq)
	}
	for r, err := range l.records(ctx, k) {
		if err != nil {
			return err
		}
		h.Records = append(h.Records, r)
	}
	if view == nil && len(h.Records) == 0 {
		return fail(notFound, "there is no task %s", k)
	}
	return t.print(h, func(w io.Writer) { writeTimeline(w, k, h) })
}

// auditLag is how long show waits for the audit to come to what the log says.
const auditLag = 2 * time.Second

// audited waits until the audit has come to a message of the log, or has fallen behind: then show tells what there is.
func (l *link) audited(ctx context.Context, k key, seq uint64) {
	ctx, cancel := context.WithTimeout(ctx, auditLag)
	defer cancel()
	pattern := l.Space().Audit(k.agent, k.task)
	_ = l.Tail(ctx, bus.Audit, 1, []string{pattern}, func(_ context.Context, m bus.Message) error {
		if r, isRecord := m.Envelope.Data.(events.Record); isRecord && r.Log >= seq {
			return errEnough
		}
		return nil
	})
}

func writeTimeline(w io.Writer, k key, h history) {
	fmt.Fprintf(w, "%s\n\n", k)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range h.Records {
		fmt.Fprintln(tw, recordLine(r))
	}
	_ = tw.Flush()
	if h.Now == nil {
		fmt.Fprintln(w, "\nThe broker keeps it no longer; this is what the audit has.")
		return
	}
	v := h.Now
	fmt.Fprintf(w, "\nNow v%d %s: %s\n", v.Version, plainKind(v.Kind), channels.Plain(v.Why.Reason))
	if v.Pause != nil && v.Pause.Status == events.PauseWaiting {
		fmt.Fprintf(w, "It waits for %s, %s (question %s).\n", asks(*v.Pause), waits(*v.Pause), v.Pause.Question)
	}
	if v.Note != "" {
		fmt.Fprintf(w, "Note: %s\n", channels.Plain(v.Note))
	}
	if n := len(h.Records); n > 0 && h.Records[n-1].Log < v.Seq {
		fmt.Fprintln(w, "The audit has not come to this yet.")
	}
}
