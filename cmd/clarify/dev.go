package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/clarify-broker/clarify/channels"
	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/gate"
	"github.com/spf13/cobra"
)

type devFlags struct {
	app.DevOptions
	noDemo bool
	level  slog.Level
}

func (t *terminal) dev() *cobra.Command {
	f := devFlags{level: slog.LevelWarn}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, with a demo agent that is blocked",
		Long: "Runs a server, a broker, the inbox and a demo agent in one process, on loopback and without logins. The data is kept in --dir;\n" +
			"a demo task that was left open is taken up again.",
		Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			f.Dir = t.server.dir
			if err := f.check(); err != nil {
				return err
			}
			return t.runDev(cmd.Context(), f)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.Ephemeral, "ephemeral", false, "forget everything at the end")
	flags.IntVar(&f.Port, "port", app.DefaultPort, "of the NATS server; 0 takes a free one")
	flags.StringVar(&f.HTTP, "http", "127.0.0.1:8420", "`address` of the inbox; port 0 takes a free one")
	flags.StringVar(&f.Policy, "policy", "", "policy `file`; a built-in one for the demo by default")
	flags.BoolVar(&f.noDemo, "no-demo", false, "run no demo agent")
	flags.TextVar(&f.level, "log-level", slog.LevelWarn, "least level of the log: debug, info, warn or error")
	return cmd
}

// check refuses flags with which dev would be reached from elsewhere, or not at all.
func (f devFlags) check() error {
	if f.Port < 0 || f.Port > 65535 {
		return fail(usage, "--port: %d is no port; use 1 to 65535, or 0 for a free one", f.Port)
	}
	if err := app.Loopback(f.HTTP); err != nil {
		return fail(usage, "--http: %q %s: dev has no login. `clarify serve` has one, behind a login proxy", f.HTTP, err)
	}
	return nil
}

func (t *terminal) runDev(ctx context.Context, f devFlags) (err error) {
	t.out = &turns{w: t.out}
	s, err := app.StartDev(ctx, f.DevOptions, t.log(f.level))
	switch {
	case found[*app.DevRuns](err):
		return &fault{code: invalid, cause: err, text: err.Error() + "; stop it, or give this one a folder of its own with --dir"}
	case errors.Is(err, fs.ErrNotExist):
		return unreadable(err)
	case err != nil:
		return portFault(err)
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	t.devHead(s, f)
	if f.noDemo {
		t.devHints(f, "")
		return s.Wait(ctx)
	}
	demo, err := s.NewDemo(ctx)
	if err != nil {
		return err
	}
	demoCtx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.runDemo(demoCtx, demo)
	}()
	defer func() { cancel(); <-ended }()
	blocked, err := demo.Blocked(ctx)
	if err != nil {
		return err
	}
	t.devDemo(blocked)
	t.devHints(f, example(blocked))
	return s.Wait(ctx)
}

// turns lets one write at a time, since the demo agent speaks whenever it has something to say.
type turns struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *turns) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(b)
}

// portFault names the flag that would choose another port.
func portFault(err error) error {
	taken, is := errors.AsType[*app.PortTaken](err)
	if !is {
		return err
	}
	flag := "--port"
	if taken.HTTP {
		flag = "--http"
	}
	return &fault{code: invalid, cause: err, text: fmt.Sprintf("%s; choose another with %s, or stop what runs there", taken, flag)}
}

func (t *terminal) devHead(s *app.Server, f devFlags) {
	kept := f.Dir + " (kept; --ephemeral forgets it)"
	if f.Ephemeral {
		kept = "forgotten at the end"
	}
	source := "your own: --policy <file>"
	if f.Policy != "" {
		source = f.Policy
	}
	fmt.Fprintf(t.out, "clarify %s, dev mode: loopback only, no login. Data: %s\n\n", build().Version, kept)
	block(t.out, [][2]string{
		{"Inbox", s.Inbox}, {"NATS", s.URL}, {"Policy", policyName(s.Policy.Ref()) + "  " + source},
	})
	fmt.Fprintln(t.out)
}

// devDemo says what the demo agent is blocked on, or why it is not.
func (t *terminal) devDemo(v events.View) {
	p := v.Pause
	if p == nil || p.Status != events.PauseWaiting {
		fmt.Fprintf(t.out, "  The demo agent %s proposed crm.update_record (task %s): %s, by rule %s.\n\n",
			app.DemoAgent, v.Task, plainKind(v.Kind), v.Why.Rule)
		return
	}
	fmt.Fprintf(t.out, "  The demo agent %s is blocked before crm.update_record (task %s) and asked:\n", app.DemoAgent, v.Task)
	writeQuestion(t.out, *p)
	fmt.Fprintln(t.out)
}

func writeQuestion(w io.Writer, p events.PauseView) {
	for i, f := range p.Fields {
		id := string(p.Question)
		if i > 0 {
			id = ""
		}
		fmt.Fprintf(w, "    %-26s  %s\n", id, channels.Plain(f.Prompt))
		for _, o := range optionLines(f) {
			fmt.Fprintf(w, "    %-26s    %s\n", "", o)
		}
	}
	if len(p.Fields) == 0 {
		fmt.Fprintf(w, "    %-26s  %s\n", p.Question, asks(p))
	}
	fmt.Fprintf(w, "    %-26s  waits %s\n", "", waits(p))
}

// example is the answer the hints show: an option of the demo's question.
func example(v events.View) string {
	p := v.Pause
	if p == nil || p.Status != events.PauseWaiting || len(p.Fields) == 0 {
		return ""
	}
	for i, o := range p.Fields[0].Options {
		if i == 1 || len(p.Fields[0].Options) == 1 {
			return string(p.Question) + " " + o.ID
		}
	}
	return ""
}

func (t *terminal) devHints(f devFlags, answer string) {
	at := ""
	if f.Dir != ".clarify" {
		at = " --dir " + f.Dir
	}
	rows := [][2]string{{"clarify ls" + at, "what is waiting"}}
	if answer != "" {
		rows = append(rows, [2]string{"clarify answer" + at + " " + answer, "release it, or open the inbox"})
	}
	rows = append(rows, [2]string{"clarify watch" + at, "what happens, live"}, [2]string{"clarify show" + at + " <task>", "what happened to one task"})
	fmt.Fprintln(t.out, "  In another terminal:")
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(t.out, "    %-*s  # %s\n", width, r[0], r[1])
	}
	fmt.Fprintln(t.out)
}

// runDemo tells what the demo agent was told.
func (t *terminal) runDemo(ctx context.Context, demo *app.Demo) {
	say := func(text string) { fmt.Fprintf(t.out, "  %s  %s\n", time.Now().Format("15:04:05"), text) }
	out, err := demo.Run(ctx, say)
	switch {
	case ctx.Err() != nil && found[*gate.Waiting](err):
		return // dev ends: the question waits, and is taken up by the next start
	case err != nil:
		say(string(app.DemoAgent) + " was told: " + err.Error())
	case out.Ran:
		say(string(app.DemoAgent) + " is done; start `clarify dev` again for another question")
	}
}
