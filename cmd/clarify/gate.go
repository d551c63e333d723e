package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/spf13/cobra"
)

type gateFlags struct {
	proposal
	missing []string
	options []string
}

const gateLong = `Runs a command at most once, and only when it was released: the policy lets it run, or a person supplied what was missing
or approved it. Until then nothing runs, and the text on standard error starts with "NOT EXECUTED:".

The command gets the arguments as they were answered and approved, which may be others than were proposed:
CLARIFY_ARGUMENTS is all of them as JSON, CLARIFY_ARG_<NAME> one of them as text, CLARIFY_FENCE a number that grows with
every claim. Its output is passed through (to standard error with -o json), and whether it succeeded is recorded.

An identical call takes up what has become of the first one and does not run the command again; give another --id, --step or
--task to have it done again. A command that fails exits with 32, never with its own status, which could be taken for one of
those below.`

func (t *terminal) gate() *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:     "gate --agent <name> --task <id> --tool <name> [--arg <name>=<text>]... -- <command> [<argument>...]",
		Short:   "Run a command at most once, when it is released",
		Long:    gateLong + "\n\n" + exitTable(),
		Example: `  clarify gate --agent deployer --task release-7 --tool deploy --arg env=prod -- ./deploy.sh`,
		Args:    needs(-1, "the command to run, behind --,"),
		RunE: t.does(func(cmd *cobra.Command, args []string) error {
			c, err := f.candidate()
			if err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return &fault{code: usage, cause: err, text: fmt.Sprintf("%s cannot be run (%s); nothing was proposed", args[0], errors.Unwrap(err))}
			}
			return t.runGate(cmd.Context(), c, f, command{path, args})
		}),
	}
	f.common(cmd.Flags(), 45*time.Second)
	flags := cmd.Flags()
	flags.StringVar(&f.tool.name, "tool", "", "the tool, as the policy knows it")
	flags.StringArrayVar(&f.tool.annotations, "annotation", nil, "a hint about the tool: `readOnly|destructive|idempotent|openWorld[=false]`; may be repeated")
	flags.StringVar(&f.tool.schema, "input-schema", "", "JSON Schema `file` of the arguments")
	flags.StringArrayVar(&f.missing, "missing", nil, "an argument that is missing, `name[=question]`; may be repeated")
	flags.StringArrayVar(&f.options, "option", nil, "an option of the first missing argument, `value[=label]`; may be repeated")
	return cmd
}

func (f gateFlags) candidate() (events.Candidate, error) {
	c, err := f.proposal.candidate()
	if err != nil {
		return c, err
	}
	for _, m := range f.missing {
		c.Missing = append(c.Missing, missing(m))
	}
	if len(f.options) > 0 && len(f.missing) == 0 {
		return c, fail(usage, "--option needs --missing: say what it is an option of")
	}
	for _, o := range f.options {
		c.Candidates = append(c.Candidates, alternative(c.Missing[0].Field, o))
	}
	return c, nil
}

// command is what runs when it is released.
type command struct {
	path string
	args []string
}

// ran is what became of a command.
type ran struct {
	Task     events.Task `json:"task"`
	Ran      bool        `json:"ran"`              // in this call; otherwise an earlier, identical one did
	Assumed  []string    `json:"assumed,omitzero"` // arguments the policy supplied in place of a question
	Recorded events.Raw  `json:"result,omitzero"`
}

func (t *terminal) runGate(ctx context.Context, c events.Candidate, f gateFlags, cmd command) error {
	l, err := t.open(ctx, c.Agent)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.propose(ctx, c); err != nil {
		return err
	}
	ctx, patience := waitFor(ctx, f.wait)
	defer patience.end()
	out, err := l.gate.Do(ctx, c, func(ctx context.Context, grant events.Grant) (any, error) {
		if err := patience.begin(); err != nil {
			return nil, err
		}
		return t.runCommand(ctx, cmd, grant)
	})
	if err != nil {
		return failedHere(out, err)
	}
	if !out.Ran {
		fmt.Fprintln(t.err, "done before: an identical call ran it, and it was not run again")
	}
	if t.format == text {
		return nil
	}
	said := ran{Task: c.Task, Ran: out.Ran, Recorded: out.Result.Reveal()}
	for _, a := range out.Assumptions {
		said.Assumed = append(said.Assumed, a.Field)
	}
	return t.document(said)
}

// failedHere gives a command that failed in this call the status of one that failed.
func failedHere(out gate.Outcome, err error) error {
	if out.Ran && codeOfGate(err) == ok {
		return &fault{code: ranFailed, text: err.Error(), cause: err}
	}
	return err
}

// runCommand runs the command with the arguments that were granted. When the lease is lost or the caller gives up it is
// asked to end, and made to ten seconds later; whether it had its effect is not known then.
func (t *terminal) runCommand(ctx context.Context, c command, grant events.Grant) (any, error) {
	cmd := exec.CommandContext(ctx, c.path) //nolint:gosec // the caller names it on their own command line, and no shell reads it
	cmd.Args = c.args
	cmd.Env = append(os.Environ(), environment(grant)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.in, t.out, t.err
	if t.format != text {
		cmd.Stdout = t.err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return map[string]int{"exit_status": cmd.ProcessState.ExitCode()}, err
}

// environment is the arguments of a grant as variables.
func environment(g events.Grant) []string {
	vars := []string{"CLARIFY_ARGUMENTS=" + string(g.Arguments.Raw()), fmt.Sprintf("CLARIFY_FENCE=%d", g.Fence)}
	for name, v := range g.Arguments {
		said := v.RevealString()
		if strings.ContainsRune(said, 0) {
			continue // the operating system has no such variables; CLARIFY_ARGUMENTS has the value
		}
		vars = append(vars, "CLARIFY_ARG_"+upper(name)+"="+said)
	}
	return vars
}

// upper is a name as variables are named.
func upper(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
