package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/spf13/cobra"
)

func (t *terminal) nats() *cobra.Command {
	replicas := 1
	cmd := &cobra.Command{Use: "nats", Short: "Prepare a NATS server of your own"}
	cmd.PersistentFlags().IntVar(&replicas, "replicas", 1, "copies of every stream: 1, or 3 or 5 on a cluster")
	return noun(cmd, t.natsPlan(&replicas), t.natsApply(&replicas), t.natsPermissions())
}

// streams opens the bus as one that would make streams with so many replicas.
func (t *terminal) streams(ctx context.Context, replicas int) (*link, error) {
	l, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	l.Bus, err = bus.Open(ctx, l.nc, bus.Options{
		Space: events.Space(t.server.space), Replicas: replicas, AllowLazySync: true,
		Logger: t.log(slog.LevelError),
	})
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (t *terminal) natsPlan(replicas *int) *cobra.Command {
	return &cobra.Command{
		Use: "plan", Short: "Show what apply would change", Args: needs(0),
		Long: "Shows which streams apply would make (+) and which settings it would change (~). It exits with 1 when there is something to do.",
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.streams(cmd.Context(), *replicas)
			if err != nil {
				return err
			}
			defer l.close()
			changes, err := l.Plan(cmd.Context())
			if err != nil {
				return err
			}
			if changes == nil {
				changes = bus.Changes{}
			}
			if err := t.print(changes, func(w io.Writer) { writePlan(w, changes, l.Sync()) }); err != nil {
				return err
			}
			if len(changes) > 0 {
				return fail(failure, "%s to make; `clarify nats apply` makes them", count(len(changes), "change"))
			}
			return nil
		}),
	}
}

func writePlan(w io.Writer, changes bus.Changes, sync bus.Sync) {
	fmt.Fprint(w, changes)
	if len(changes) == 0 {
		fmt.Fprintln(w, "Nothing to do: the streams are as they should be.")
	}
	switch sync {
	case bus.SyncAlways:
		fmt.Fprintln(w, "The server syncs before it acknowledges.")
	case bus.SyncLazy:
		fmt.Fprintln(w, "The server acknowledges before it has synced: a power cut loses acknowledged answers. Set sync_interval: always.")
	case bus.SyncUnknown:
		fmt.Fprintln(w, "Whether the server syncs before it acknowledges is not known: this account may not ask it.")
	}
}

func (t *terminal) natsApply(replicas *int) *cobra.Command {
	return &cobra.Command{
		Use: "apply", Short: "Make the streams, and correct their settings", Args: needs(0),
		Long: "Makes the streams that are missing and corrects the settings of those that are there. It deletes nothing and may be repeated.",
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.streams(cmd.Context(), *replicas)
			if err != nil {
				return err
			}
			defer l.close()
			changes, err := l.Plan(cmd.Context())
			if err != nil {
				return err
			}
			if err := l.Apply(cmd.Context()); err != nil {
				return err
			}
			return t.print(changes, func(w io.Writer) { fmt.Fprintf(w, "%sMade %s.\n", changes, count(len(changes), "change")) })
		}),
	}
}

func (t *terminal) natsPermissions() *cobra.Command {
	var who app.Who
	cmd := &cobra.Command{
		Use: "permissions", Short: "Print what each role may do, for the server's configuration", Args: needs(0),
		Long: "Prints the permissions of each role as blocks of a nats-server configuration. Who an agent or a channel is, is the credential\n" +
			"that may use its subjects: give each its own user.",
		RunE: t.does(func(*cobra.Command, []string) error {
			roles, err := app.Roles(events.Space(t.server.space), who)
			if err != nil {
				return err
			}
			return t.print(roles, func(w io.Writer) {
				for _, r := range roles {
					fmt.Fprint(w, r)
				}
			})
		}),
	}
	cmd.Flags().StringArrayVar(&who.Agents, "agent", []string{"crm-bot"}, "an agent, by `name`; may be repeated")
	cmd.Flags().StringArrayVar(&who.Channels, "channel", []string{"webhook"}, "a channel that runs outside the broker's process, by `name`; may be repeated")
	return cmd
}
