package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/spf13/cobra"
)

func (t *terminal) cancel() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel <task>|<question>",
		Short: "Call a task's step off",
		Long:  "Calls off what a task waits for, or was released to do and nobody has claimed yet. What an executor has cannot be called off.",
		Args:  needs(0, "the task or question"),
		RunE: t.does(func(cmd *cobra.Command, args []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			k, err := l.findEither(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := l.operate(cmd.Context(), events.VerbCancel, events.OperatorRequest{Agent: k.agent, Task: k.task, By: caller(), Reason: reason})
			if err != nil {
				return err
			}
			return t.moved(v, "cancelled")
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the agent and the record")
	return cmd
}

// findEither finds a task by its name or by its question.
func (l *link) findEither(ctx context.Context, ref string) (key, error) {
	k, err := l.findTask(ctx, ref)
	if codeOf(err) != notFound {
		return k, err
	}
	item, other := l.findQuestion(ctx, ref)
	if other != nil {
		return key{}, err
	}
	return key{item.Agent, item.Task}, nil
}

func (t *terminal) moved(v *events.View, did string) error {
	if v == nil {
		return fail(failure, "the broker does not say what became of it")
	}
	return t.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s/%s v%d. It is %s now.\n", did, v.Agent, v.Task, v.Version, plainKind(v.Kind))
	})
}

func (t *terminal) reconcile() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reconcile <task> done|failed",
		Short: "Say what became of a task that is in doubt",
		Long: "Says what became of an action that was claimed and whose outcome nobody reported. Look at the world first: done and failed\n" +
			"are what the agent will be told, and neither runs anything.",
		Args: cobra.MatchAll(needs(0, "the task", "what became of it, done or failed,"), func(_ *cobra.Command, args []string) error {
			if args[1] != string(events.EffectDone) && args[1] != string(events.EffectFailed) {
				return fmt.Errorf("%q is neither done nor failed", args[1])
			}
			return nil
		}),
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
			v, err := l.operate(cmd.Context(), events.VerbReconcile, events.OperatorRequest{
				Agent: k.agent, Task: k.task, By: caller(),
				Reason: reason, Outcome: events.EffectStatus(args[1]),
			})
			if err != nil {
				return err
			}
			return t.moved(v, "reconciled")
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "how you know")
	return cmd
}

func (t *terminal) freeze() *cobra.Command {
	cmd := t.move(events.FreezeReleases, "Releases are frozen. Questions are still asked and answered; `clarify thaw` resumes.")
	cmd.Use, cmd.Short = "freeze", "Withhold all releases"
	cmd.Long = `Withholds all releases, of every broker on the server, until ` + "`clarify thaw`" + `.

What waits: an action that would be released, by the policy, an answer or an approval; an action that is released and not
claimed yet; an action the policy would release at once. ` + "`clarify gate`" + ` exits with 20 for all of them, and the same call
takes them up after the thaw.

What does not wait: questions and approvals are still asked, reminded of and answered, and the answers are kept; cancelling; a
tool that runs already goes on and its outcome is recorded. The deadlines of questions run on, except where silence would
release something. Nothing that waits is lost or refused by the freeze.`
	return cmd
}

func (t *terminal) thaw() *cobra.Command {
	cmd := t.move(events.ThawReleases, "Releases go on.")
	cmd.Use, cmd.Short = "thaw", "Resume releases, and acknowledge a data loss"
	return cmd
}

// move is a command that freezes or thaws.
func (t *terminal) move(move events.FreezeMove, said string) *cobra.Command {
	return &cobra.Command{
		Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			var reply events.OperatorReply
			req := events.OperatorRequest{Freeze: move, By: caller()}
			if err := l.request(cmd.Context(), l.Space().Operator(events.VerbFreeze), req, &reply); err != nil {
				return err
			}
			if reply.Error != "" {
				return fail(failure, "%s", reply.Error)
			}
			return t.print(reply, func(w io.Writer) { fmt.Fprintln(w, said) })
		}),
	}
}

func (t *terminal) health() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Ask a broker how it is", Args: needs(0),
		Long: "Asks a broker how it is. It exits with 1 when releases are frozen or the broker has problems, and with 7 when none answers.",
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			var h events.Health
			if err := l.request(cmd.Context(), l.Space().Operator(events.VerbHealth), events.OperatorRequest{}, &h); err != nil {
				return err
			}
			if err := t.print(h, func(w io.Writer) { writeHealth(w, h) }); err != nil {
				return err
			}
			switch {
			case h.Frozen != "":
				return fail(failure, "releases are frozen")
			case len(h.Problems) > 0:
				return fail(failure, "%s", count(len(h.Problems), "problem"))
			}
			return nil
		}),
	}
}

func writeHealth(w io.Writer, h events.Health) {
	rows := [][2]string{
		{"Broker", strings.TrimPrefix(h.Instance, "/clarify/") + ", since " + clock(h.Started) + " (" + time.Since(h.Started).Round(time.Second).String() + ")"},
		{"Policy", policyName(h.Policy)},
		{"Tasks", fmt.Sprintf("%d, of which %d wait", h.Tasks, h.Waiting)},
	}
	if h.Server != "" {
		rows = append(rows, [2]string{"Server", h.Server})
	}
	if h.Sync != "" {
		rows = append(rows, [2]string{"Sync", h.Sync})
	}
	frozen := "no"
	if h.Frozen != "" {
		frozen = h.Frozen + "; `clarify thaw` resumes"
	}
	rows = append(rows, [2]string{"Frozen", frozen})
	for _, p := range h.Problems {
		rows = append(rows, [2]string{"Problem", p})
	}
	block(w, rows)
}

func policyName(p events.PolicyRef) string {
	name := p.Name
	if p.Version != "" {
		name += " " + p.Version
	}
	digest := string(p.Digest)
	if cut := len("sha256:") + 12; strings.HasPrefix(digest, "sha256:") && len(digest) > cut {
		digest = digest[:cut] + "…"
	}
	return name + " (" + digest + ")"
}
