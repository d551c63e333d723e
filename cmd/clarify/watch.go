package main

import (
	"context"
	"fmt"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/spf13/cobra"
)

func (t *terminal) watch() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show live what happens to all tasks",
		Long:  "Shows every transition and every refusal as it is audited, until interrupted: no values. With -o jsonl one record a line.",
		Args:  needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			if agent == "" {
				agent = "*"
			} else if _, err := events.ParseAgent(agent); err != nil {
				return err
			}
			return t.follow(cmd.Context(), l, events.Agent(agent))
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only this agent's tasks")
	return cmd
}

func (t *terminal) follow(ctx context.Context, l *link, agent events.Agent) error {
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	last, err := l.LastSeq(bounded, bus.Audit)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.err, "watching; Ctrl-C ends it")
	if t.format == doc {
		t.format = lines // a stream has no end to close an array at
	}
	return l.Tail(ctx, bus.Audit, last+1, []string{l.Space().Audit(agent, "*")}, func(_ context.Context, m bus.Message) error {
		r, err := recordOf(m)
		if err != nil {
			return err
		}
		if t.format == lines {
			return t.document(r)
		}
		what, detail := describe(r)
		_, err = fmt.Fprintf(t.out, "%s  %-24s %-14s %-4s", r.At.Local().Format("15:04:05.000"), key{r.Agent, r.Task}, what, versionOf(r))
		for _, d := range detail {
			fmt.Fprint(t.out, "  ", d)
		}
		fmt.Fprintln(t.out)
		return err
	})
}
