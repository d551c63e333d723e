package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/cmd/clarify/cases"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
)

type casesFlags struct {
	file, policy string
	mode         string
	channels     []string
	workers      int
	least        float64
}

func (t *terminal) cases() *cobra.Command {
	var f casesFlags
	cmd := &cobra.Command{
		Use:   "cases --file <cases.jsonl> --policy <file>",
		Short: "Run recorded tool calls through a broker, and compare the decisions",
		Long: "Starts a broker of its own, in a temporary folder, and feeds it recorded tool calls over NATS: each is proposed as an\n" +
			"event, asked on a channel, answered there where the case has an answer, and run by a tool that only counts. Prints how many\n" +
			"decisions are acceptable. It exits with 1 when a tool ran that should not have, a guarantee did not hold on the audit, or\n" +
			"fewer than --least of the decisions are acceptable.",
		Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error { return t.runCases(cmd.Context(), f) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "the cases, one JSON object a line")
	flags.StringVar(&f.policy, "policy", "", "the policy `file`")
	flags.StringVar(&f.mode, "mode", string(cases.Absent), "how an agent presents a case: absent, declared, invented or inferred")
	flags.StringSliceVar(&f.channels, "channels", []string{"inbox"}, "the channels the policy asks on")
	flags.IntVar(&f.workers, "workers", 32, "cases at once")
	flags.Float64Var(&f.least, "least", 0, "share of acceptable decisions, from 0 to 1, below which it fails")
	for _, name := range []string{"file", "policy"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flags are made above
		}
	}
	return cmd
}

func (t *terminal) runCases(ctx context.Context, f casesFlags) (err error) {
	all, err := readCases(f.file)
	if err != nil {
		return err
	}
	o := cases.Options{Mode: cases.Mode(f.mode), Workers: f.workers}
	for _, c := range f.channels {
		name, err := events.ParseChannel(c)
		if err != nil {
			return err
		}
		o.Channels = append(o.Channels, name)
	}
	p, _, err := app.ReadPolicy(f.policy)
	if err != nil {
		return unreadable(err)
	}
	anyPort := 0
	s, err := app.Start(ctx, app.Config{NATS: app.NATS{Embedded: &app.Embedded{Port: &anyPort}}}, p, t.log(slog.LevelError))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	nc, err := nats.Connect(s.URL, nats.Name("clarify cases"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.Open(ctx, nc, bus.Options{Instance: "cases", Logger: t.log(slog.LevelError)})
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := cases.Run(ctx, b, all, o)
	if err != nil {
		return err
	}
	return t.caseReport(r, f.least, time.Since(began))
}

func readCases(file string) ([]cases.Case, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	all, err := cases.Read(f)
	if err != nil {
		return nil, &fault{code: invalid, text: file + ": " + err.Error(), cause: err}
	}
	return all, nil
}

func (t *terminal) caseReport(r cases.Report, least float64, took time.Duration) error {
	if err := t.print(r, func(w io.Writer) { writeCases(w, r, took) }); err != nil {
		return err
	}
	switch {
	case !r.OK():
		return fail(failure, "%s, %s of the guarantees", count(len(r.Broken), "problem"), count(len(r.Violations), "violation"))
	case r.Total.Share() < least:
		return fail(failure, "%.1f %% of the decisions are acceptable, at least %.1f %% should be", 100*r.Total.Share(), 100*least)
	}
	return nil
}

func writeCases(w io.Writer, r cases.Report, took time.Duration) {
	kinds := []events.DecisionKind{events.KindAsk, events.KindProceed, events.KindApprove, events.KindStop, events.KindEscalate, events.KindReconcile}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "cases\tacceptable\t\t")
	for _, k := range kinds {
		fmt.Fprintf(tw, "%s\t", k)
	}
	fmt.Fprintln(tw, "asked\tmost\tanswered\teffects\t  source")
	for _, c := range append(r.Sources, r.Total) {
		fmt.Fprintf(tw, "%d\t%d\t%.1f %%\t", c.Cases, c.Acceptable, 100*c.Share())
		for _, k := range kinds {
			fmt.Fprintf(tw, "%d\t", c.Decisions[k])
		}
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t  %s\n", c.Questions, c.MostAsked, c.Answered, c.Effects, c.Source)
	}
	_ = tw.Flush()
	fmt.Fprintf(w, "\nMode %s. %s of the audit, %s of the guarantees. %s.\n", r.Mode, count(r.Records, "record"),
		count(len(r.Violations), "violation"), took.Round(100*time.Millisecond))
	for i, x := range r.Wrong {
		if i == 10 {
			fmt.Fprintf(w, "  and %d more that are not acceptable\n", len(r.Wrong)-i)
			break
		}
		fmt.Fprintf(w, "  not acceptable: %s by %s, want %s: %s\n", x.Decision, x.Rule, join(x.Accept), x.ID)
	}
	for _, b := range r.Broken {
		fmt.Fprintln(w, "BROKEN", b)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, "VIOLATION", v)
	}
}
