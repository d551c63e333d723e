package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
)

type askFlags struct {
	proposal
	missing  string
	question string
	options  []string
}

const askLong = `Asks people for one value and prints it. Nothing is run. Whether people are asked at all is the policy's decision, as for
any action: the tool is --tool, which only reads.

A value is printed only when a person gave it: one option is asked about like several, and a default of the policy is not
taken for an answer. The same call takes an open question up again, and prints the same answer again when it was answered.`

func (t *terminal) ask() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:     "ask --agent <name> --task <id> --missing <field> --question <text> [--option <value>[=<label>]]...",
		Short:   "Ask people for a value, and print it",
		Long:    askLong + "\n\n" + exitTable(),
		Args:    needs(0),
		Example: `  env=$(clarify ask --agent deployer --task release-7 --missing env --question "Deploy where?" --option prod --option staging)`,
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			c, err := f.candidate()
			if err != nil {
				return err
			}
			return t.runAsk(cmd.Context(), c, f)
		}),
	}
	f.common(cmd.Flags(), 10*time.Minute)
	cmd.Flags().StringVar(&f.tool.name, "tool", "ask", "the tool the value is for, for the policy")
	cmd.Flags().StringVar(&f.missing, "missing", "", "the field that is asked for")
	cmd.Flags().StringVar(&f.question, "question", "", "the question")
	cmd.Flags().StringArrayVar(&f.options, "option", nil, "an option, `value[=label]`; may be repeated. Without any, people type a value")
	return cmd
}

func (f askFlags) candidate() (events.Candidate, error) {
	if f.missing == "" {
		return events.Candidate{}, fail(usage, "--missing is missing: name the field that is asked for")
	}
	c, err := f.proposal.candidate()
	if err != nil {
		return c, err
	}
	if _, has := c.Arguments[f.missing]; has {
		return c, fail(usage, "--arg: %q is what is asked for; leave it out, or offer it with --option", f.missing)
	}
	yes, no := true, false
	c.Tool.Annotations = &events.Annotations{ReadOnly: &yes, Destructive: &no, OpenWorld: &no}
	c.Tool.InputSchema, err = json.Marshal(map[string]any{
		"type": "object", "properties": map[string]any{f.missing: map[string]any{"type": "string"}}, "required": []string{f.missing},
	}, json.Deterministic(true))
	if err != nil {
		return c, fmt.Errorf("describe the field: %w", err)
	}
	c.Missing = []events.Missing{{Field: f.missing, Question: f.question}}
	c.Context = cmp.Or(c.Context, f.question) // people see it as the agent's words, beside the policy's question
	c.Candidates, err = offered(f.missing, f.options)
	return c, err
}

// offered are the options as calls that could be meant. A policy takes the only one of them for granted, and here nothing
// is: so beside one option stands a call without the value, which means that none of these is right.
func offered(field string, options []string) ([]events.Alternative, error) {
	var out []events.Alternative
	seen := map[string]bool{}
	for _, o := range options {
		value, _, _ := strings.Cut(o, "=")
		if seen[value] {
			return nil, fail(usage, "--option: %q is given twice", value)
		}
		seen[value] = true
		out = append(out, alternative(field, o))
	}
	if len(out) == 1 {
		none := events.Arguments{field + noneOfThem: events.NewSecret(events.Raw("true"))}
		out = append(out, events.Alternative{Arguments: none, Label: "None of these", Weight: 1})
	}
	return out, nil
}

// noneOfThem ends the name of the argument by which a call without the value differs from the one with it.
const noneOfThem = "_is_none_of_these"

// given refuses a value that no person gave.
func given(out gate.Outcome, field string) error {
	for _, a := range out.Assumptions {
		if a.Field == field {
			return fail(stopped, "NOT EXECUTED: the policy would take a value by itself (%s), and nobody was asked", plainSource(a.Source))
		}
	}
	return nil
}

func plainSource(s string) string { return strings.ReplaceAll(s, "_", " ") }

func (t *terminal) runAsk(ctx context.Context, c events.Candidate, f askFlags) error {
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
	out, err := l.gate.Do(ctx, c, func(_ context.Context, grant events.Grant) (any, error) {
		if err := patience.begin(); err != nil {
			return nil, err
		}
		return grant.Arguments[f.missing], nil
	})
	if err != nil {
		return err
	}
	if err := given(out, f.missing); err != nil {
		return err
	}
	said := map[string]any{"field": f.missing, "value": out.Result.Reveal(), "task": c.Task}
	return t.print(said, func(w io.Writer) { fmt.Fprintln(w, out.Result.RevealString()) })
}
