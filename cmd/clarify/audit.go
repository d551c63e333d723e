package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/clarify-broker/clarify/broker/audit"
	"github.com/clarify-broker/clarify/events"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
)

func (t *terminal) audit() *cobra.Command {
	show := t.show()
	show.Short = "Tell what happened to a task, as `clarify show` does"
	return noun(&cobra.Command{Use: "audit", Short: "Read, check and export the audit"},
		t.auditLs(), show, t.auditVerify(), t.auditExport())
}

type auditFlags struct {
	since, decision, outcome, agent string
}

func (t *terminal) auditLs() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "ls", Short: "List audit records", Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			from, err := since(f.since, time.Now())
			if err != nil {
				return err
			}
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			records := []events.Record{}
			for r, err := range l.records(cmd.Context(), everyTask()) {
				if err != nil {
					return err
				}
				if !r.At.Before(from) && f.matches(r) {
					records = append(records, r)
				}
			}
			return list(t, records, "", func(r events.Record) string {
				return fmt.Sprintf("%d\t%s\t%s", r.Seq, key{r.Agent, r.Task}, recordLine(r))
			}, "There are no such records.")
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "only from then on: a duration back like 24h, or a time")
	flags.StringVar(&f.decision, "decision", "", "only with this decision: ask, proceed, approve, stop, escalate or reconcile")
	flags.StringVar(&f.outcome, "outcome", "", "only of this kind, such as released, timed_out, refused")
	flags.StringVar(&f.agent, "agent", "", "only this agent's")
	return cmd
}

func (f auditFlags) matches(r events.Record) bool {
	kind, decision := "", ""
	switch {
	case r.Transition != nil:
		kind, decision = string(r.Transition.Kind), string(r.Transition.Decision)
	case r.Refusal != nil:
		kind = "refused"
	case r.Loss != nil:
		kind = "loss"
	}
	return (f.decision == "" || f.decision == decision) && (f.outcome == "" || f.outcome == kind) &&
		(f.agent == "" || f.agent == string(r.Agent))
}

type verifyFlags struct{ file, manifest string }

func (t *terminal) auditVerify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the audit's chain, and the guarantees on it", Args: needs(0),
		Long: "Checks the chain of the audit's records and, on them, every safety guarantee. It needs no key, and with --file no server.\n" +
			"A chain does not show that its end was cut off: --manifest, from an export that was kept elsewhere, does.",
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			records, done, err := t.source(cmd.Context(), f.file)
			if err != nil {
				return err
			}
			defer done()
			report := audit.Verify(records)
			if f.manifest != "" {
				m, err := readManifest(f.manifest)
				if err != nil {
					return err
				}
				report.Violations = append(report.Violations, report.Against(m)...)
			}
			return t.report(report)
		}),
	}
	cmd.Flags().StringVar(&f.file, "file", "", "an export, in place of the server's audit; - is standard input")
	cmd.Flags().StringVar(&f.manifest, "manifest", "", "manifest `file` of an export that was kept")
	return cmd
}

// source is where records come from: an export, or the server.
func (t *terminal) source(ctx context.Context, file string) (iter.Seq2[events.Record, error], func(), error) {
	switch file {
	case "":
		l, err := t.dial(ctx)
		if err != nil {
			return nil, nil, err
		}
		return l.records(ctx, everyTask()), l.close, nil
	case "-":
		return audit.ReadExport(t.in), func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	return audit.ReadExport(f), func() { _ = f.Close() }, nil
}

func readManifest(file string) (audit.Manifest, error) {
	var m audit.Manifest
	text, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &m, json.RejectUnknownMembers(true)); err != nil {
		return m, fail(invalid, "%s is no manifest", file)
	}
	return m, nil
}

// verified is a report as JSON.
type verified struct {
	OK         bool              `json:"ok"`
	Tasks      int               `json:"tasks"`
	Manifest   audit.Manifest    `json:"manifest"`
	Violations []audit.Violation `json:"violations"`
	Warnings   []audit.Warning   `json:"warnings"`
}

func (t *terminal) report(r audit.Report) error {
	if r.Err != nil {
		return fmt.Errorf("read record behind %d: %w", r.Last, r.Err)
	}
	err := t.print(verified{r.OK(), r.Tasks, r.Manifest, r.Violations, r.Warnings}, func(w io.Writer) { writeReport(w, r) })
	if err == nil && !r.OK() {
		return fail(failure, "%s", count(len(r.Violations)+r.Omitted, "violation"))
	}
	return err
}

func writeReport(w io.Writer, r audit.Report) {
	for _, v := range r.Violations {
		fmt.Fprintln(w, "VIOLATION", v)
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: record %d, %s/%s v%d: %s\n", x.Seq, x.Agent, x.Task, x.Version, x.Problem)
	}
	switch {
	case r.Records == 0:
		fmt.Fprintln(w, "The audit is empty.")
	case r.OK():
		fmt.Fprintf(w, "ok: %s of %s, seq %d to %d, head %s. %d guarantees hold.\n", count(r.Records, "record"), count(r.Tasks, "task"),
			r.First, r.Last, r.Head, len(audit.Guarantees()))
	}
}

func (t *terminal) auditExport() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use: "export", Short: "Write the audit as CloudEvents, one a line", Args: needs(0),
		Long: "Writes every record to standard output as a structured CloudEvent, one a line, and with --manifest what it has written to a\n" +
			"file. Keep the manifest elsewhere: it shows that an export was cut off or made anew.",
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			l, err := t.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			m, err := audit.Export(t.out, l.Source(), l.records(cmd.Context(), everyTask()))
			if err != nil {
				return err
			}
			fmt.Fprintf(t.err, "%s, head %s\n", count(m.Records, "record"), m.Head)
			if manifest == "" {
				return nil
			}
			body, err := json.Marshal(m)
			return errors.Join(err, os.WriteFile(manifest, append(body, '\n'), 0o600))
		}),
	}
	cmd.Flags().StringVar(&manifest, "manifest", "", "`file` to write the manifest to")
	return cmd
}
