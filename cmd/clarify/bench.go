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
	"github.com/clarify-broker/clarify/cmd/clarify/bench"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/clarify-broker/clarify/policy"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
)

type benchFlags struct {
	concurrency []int
	each        time.Duration
	dir         string
}

func (f benchFlags) plan() bench.Plan { return bench.Plan{Concurrency: f.concurrency, Each: f.each} }

// benchReport is what `clarify bench` measured.
type benchReport struct {
	Server  string        `json:"server"`
	Sync    bus.Sync      `json:"sync"`
	Dir     string        `json:"dir"`
	Floor   bench.Floor   `json:"floor"`
	Levels  []bench.Level `json:"levels"`
	Records int           `json:"audit_records"`
	Broken  []string      `json:"violations"`
}

func (t *terminal) bench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure whole cycles, beside what the disk and the server can do at all",
		Long: "Starts a broker of its own with the streams of `clarify serve`, in --data, and runs closed-loop cycles over public\n" +
			"subjects: candidate, question, answer, release, claim, outcome. In the same run it measures a synced 4 KiB write, a durable\n" +
			"publish and a publish that is consumed and acknowledged, and gives every figure as a ratio to them. It ends with a check of\n" +
			"the audit, and fails when an effect is missing or one too many.",
		Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			if err := f.plan().Validate(); err != nil {
				return &fault{code: usage, cause: err, text: "--" + err.Error()}
			}
			return t.runBench(cmd.Context(), f)
		}),
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&f.concurrency, "concurrency", []int{1, 16, 128}, "cycles under way at once")
	flags.DurationVar(&f.each, "each", 10*time.Second, "how long cycles are started at each concurrency")
	flags.StringVar(&f.dir, "data", "", "`folder` on the disk to measure; a temporary one by default")
	return cmd
}

func (t *terminal) runBench(ctx context.Context, f benchFlags) (err error) {
	dir := f.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "clarify-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	p, err := policy.Parse("bench/policy.yaml", bench.Policy)
	if err != nil {
		return err
	}
	anyPort := 0
	s, err := app.Start(ctx, app.Config{NATS: app.NATS{Embedded: &app.Embedded{Dir: dir, Port: &anyPort}}}, p, t.log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	nc, err := nats.Connect(s.URL, nats.Name("clarify bench"))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.Open(ctx, nc, bus.Options{Instance: "bench", Logger: t.log(slog.LevelWarn)})
	if err != nil {
		return err
	}
	return t.measure(ctx, b, nc, dir, f)
}

func (t *terminal) measure(ctx context.Context, b *bus.Bus, nc *nats.Conn, dir string, f benchFlags) (err error) {
	r := benchReport{Server: b.Server(), Sync: b.Sync(), Dir: dir, Broken: []string{}}
	if r.Floor, err = bench.MeasureFloor(ctx, dir, nc); err != nil {
		return err
	}
	if err := bench.Run(ctx, b, f.plan(), func(l bench.Level) { r.Levels = append(r.Levels, l) }); err != nil {
		return err
	}
	report, err := bench.Verify(ctx, b)
	if err != nil {
		return err
	}
	r.Records = report.Records
	for _, v := range report.Violations {
		r.Broken = append(r.Broken, v.String())
	}
	if err := t.print(r, func(w io.Writer) { writeBench(w, r) }); err != nil {
		return err
	}
	if len(r.Broken) > 0 {
		return fail(failure, "%s of the guarantees", count(len(r.Broken), "violation"))
	}
	return nil
}

func writeBench(w io.Writer, r benchReport) {
	fmt.Fprintf(w, "%s, %s storage in %s, sync %s, 1 replica\n\n", r.Server, r.Floor.Storage, r.Dir, r.Sync)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "floor, one at a time\tp50\tp99\t")
	for _, f := range []struct {
		name string
		took bench.Spread
	}{{"write 4 KiB and sync", r.Floor.Sync}, {"durable publish", r.Floor.Publish}, {"publish, consume, ack", r.Floor.Round}} {
		fmt.Fprintf(tw, "%s\t%s\t%s\t\n", f.name, short(f.took.P50.Duration()), short(f.took.P99.Duration()))
	}
	_ = tw.Flush()
	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "at once\tcycles\tcycles/s\tsyncs each\tanswer to release p50\tp99\tin publishes\tcandidate to question p50\tp99\t")
	for _, l := range r.Levels {
		fmt.Fprintf(tw, "%d\t%d\t%.0f\t%.1f\t%s\t%s\t%.1f\t%s\t%s\t\n", l.Concurrency, l.Cycles, l.PerSecond,
			1/(l.PerSecond*r.Floor.Sync.P50.Duration().Seconds()), short(l.Release.P50.Duration()), short(l.Release.P99.Duration()),
			float64(l.Release.P50)/float64(r.Floor.Publish.P50), short(l.Pause.P50.Duration()), short(l.Pause.P99.Duration()))
	}
	_ = tw.Flush()
	var cycles int
	var effects int64
	for _, l := range r.Levels {
		cycles, effects = cycles+l.Cycles, effects+l.Effects
	}
	fmt.Fprintf(w, "\n\"syncs each\" is the time per cycle in synced 4 KiB writes, \"in publishes\" the time in durable publishes.\n"+
		"%d cycles, %d effects. %d records of the audit, %s of the guarantees.\n", cycles, effects, r.Records, count(len(r.Broken), "violation"))
	for _, v := range r.Broken {
		fmt.Fprintln(w, "VIOLATION", v)
	}
}

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
