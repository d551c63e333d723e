package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/policy"
	"github.com/spf13/cobra"
)

func (t *terminal) policy() *cobra.Command {
	return noun(&cobra.Command{Use: "policy", Short: "Write, check and push policies"},
		t.policyInit(), t.policyCheck(), t.policyExplain(), t.policyPush(), t.policyShow())
}

func (t *terminal) policyInit() *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Print a commented policy to start from", Args: needs(0),
		RunE: t.does(func(*cobra.Command, []string) error {
			_, err := t.out.Write(policy.DemoText())
			return err
		}),
	}
}

func (t *terminal) policyCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check <file>...", Short: "Check policy files", Args: needs(-1, "the policy file"),
		Long: "Checks policy files and shows every problem with its place. It exits with 3 when one is not valid; warnings do not count.\n" +
			"With -o json it prints an array of problems: file, line, column, path, severity (error or warning) and message.",
		RunE: t.does(func(_ *cobra.Command, args []string) error { return t.checkPolicies(args) }),
	}
}

func (t *terminal) checkPolicies(files []string) error {
	var bad error
	var found []problem
	for _, file := range files {
		p, _, err := app.ReadPolicy(file)
		if err != nil {
			bad, found = errors.Join(bad, err), append(found, problemsOf(file, err)...)
			continue
		}
		found = append(found, t.warn(warnings(p))...)
		if t.format == text {
			fmt.Fprintf(t.out, "%s is valid: %s\n", file, policyName(p.Ref()))
		}
	}
	if bad != nil {
		bad = unreadable(bad)
	}
	return t.judged(found, bad)
}

func (t *terminal) policyExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain <policy> <candidate.json>", Short: "Say what a policy decides of a candidate, and by which rule", Args: needs(0, "the policy file", "the candidate's file"),
		Long: "Says what a policy file decides of one candidate, given as the JSON of candidate.proposed.v1 (- is standard input). Nothing is sent.",
		RunE: t.does(func(_ *cobra.Command, args []string) error {
			p, _, err := app.ReadPolicy(args[0])
			if err != nil {
				return unreadable(err)
			}
			c, err := t.readCandidate(args[1])
			if err != nil {
				return err
			}
			d := p.Decide(policy.Input{Candidate: c})
			return t.print(events.Decided{Decision: d}, func(w io.Writer) { writeDecision(w, d) })
		}),
	}
}

func (t *terminal) readCandidate(file string) (events.Candidate, error) {
	var c events.Candidate
	in := t.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return c, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, events.MaxCandidate+1))
	if err != nil {
		return c, err
	}
	if err := events.Decode(body, events.MaxCandidate, &c); err != nil {
		return c, err
	}
	return c, c.Validate()
}

func writeDecision(w io.Writer, d events.Decision) {
	rows := [][2]string{{"Decision", string(events.KindOf(d))}, {"Rule", d.Basis().Rule}, {"Reason", d.Basis().Reason}}
	switch v := d.(type) {
	case events.Ask:
		if v.Lookup != "" {
			rows = append(rows, [2]string{"Look up", v.Lookup})
		}
		for _, f := range v.Fields {
			rows = append(rows, [2]string{"Asks", f.Prompt}, [2]string{"", "field " + f.Name + ", one of: " + optionIDs(f)})
		}
	case events.Approve:
		rows = append(rows, [2]string{"From", join(v.From)})
	case events.Escalate:
		rows = append(rows, [2]string{"To", v.To})
	case events.Proceed, events.Stop, events.Reconcile:
	}
	for _, a := range d.Basis().Assumptions {
		rows = append(rows, [2]string{"Assumes", a.Field + " by " + a.Source})
	}
	block(w, rows)
}

func (t *terminal) policyPush() *cobra.Command {
	return &cobra.Command{
		Use: "push <file>", Short: "Make a policy the active one of all brokers on the server", Args: needs(0, "the policy file"),
		RunE: t.does(func(cmd *cobra.Command, args []string) error {
			p, body, err := app.ReadPolicy(args[0])
			if err != nil {
				return unreadable(err)
			}
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			ctx, cancel := l.bounded(cmd.Context())
			defer cancel()
			rev, err := l.PutPolicy(ctx, body)
			if err != nil {
				return err
			}
			said := map[string]any{"policy": p.Ref(), "revision": rev}
			return t.print(said, func(w io.Writer) { fmt.Fprintf(w, "active: %s, revision %d\n", policyName(p.Ref()), rev) })
		}),
	}
}

func (t *terminal) policyShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the active policy of the server", Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			ctx, cancel := l.bounded(cmd.Context())
			defer cancel()
			body, _, err := l.Policy(ctx)
			if errors.Is(err, bus.ErrNotFound) {
				return fail(notFound, "no policy was pushed to this server: brokers use their own files")
			}
			if err != nil {
				return err
			}
			_, err = t.out.Write(body)
			return err
		}),
	}
}
