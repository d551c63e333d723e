package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/policy"
	"github.com/spf13/cobra"
)

type serveFlags struct {
	config string
	check  bool
	level  slog.Level
}

func (t *terminal) serve() *cobra.Command {
	f := serveFlags{level: slog.LevelInfo}
	cmd := &cobra.Command{
		Use:   "serve --config <file>",
		Short: "Run a broker and its channels",
		Long: "Runs a broker and its channels as a configuration file says, until interrupted. SIGHUP reads the policy file again; one that is\n" +
			"not valid leaves the broker with the policy it has. The log is JSON on standard error.",
		Args: needs(0),
		RunE: t.does(func(cmd *cobra.Command, _ []string) error {
			return t.runServe(cmd.Context(), f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration `file`")
	flags.BoolVar(&f.check, "check", false, "check the configuration and the policy, and run nothing")
	flags.TextVar(&f.level, "log-level", slog.LevelInfo, "least level of the log: debug, info, warn or error")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is made above
	}
	return cmd
}

// read reads the configuration and the policy file it names.
func (f serveFlags) read(given access) (app.Config, *policy.Policy, error) {
	c, err := app.ReadConfig(f.config)
	if err != nil {
		return c, nil, unreadable(err)
	}
	if given.url != "" { // --nats-url takes the place of what the file says
		c.NATS = app.NATS{URL: given.url, Creds: c.NATS.Creds}
	}
	if given.creds != "" {
		c.NATS.Creds = given.creds
	}
	if c.Policy == "" {
		return c, nil, nil
	}
	p, _, err := app.ReadPolicy(c.Policy)
	if err != nil {
		return c, nil, unreadable(err)
	}
	return c, p, nil
}

func (t *terminal) runServe(ctx context.Context, f serveFlags) (err error) {
	if err := t.server.check(); err != nil {
		return err
	}
	c, p, err := f.read(t.server)
	if f.check {
		return t.checked(f.config, c, p, err)
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(t.err, &slog.HandlerOptions{Level: f.level}))
	for _, w := range c.Warnings(p) {
		log.Warn("configuration", "file", w.File, "line", w.Line, "column", w.Column, "path", w.Path, "problem", w.Text)
	}
	s, err := app.Start(ctx, c, p, log)
	if taken, is := errors.AsType[*app.PortTaken](err); is {
		return c.PortProblem(taken)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	log.Info("ready", "server", s.URL, "inbox", s.Inbox, "policy", s.Policy.Ref().Digest)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	err = s.Serve(ctx, c.Policy, hup)
	log.Info("stopping", "cause", context.Cause(ctx))
	return err
}

// unreadable is a file that is missing or wrong: the configuration cannot be used.
func unreadable(err error) error {
	if codeOf(err) == invalid {
		return err
	}
	return &fault{code: invalid, text: err.Error(), cause: err}
}

// checked says what is wrong with a configuration and its policy, or that nothing is.
func (t *terminal) checked(file string, c app.Config, p *policy.Policy, err error) error {
	if err != nil {
		return t.judged(problemsOf(file, err), err)
	}
	name := "none: what is pushed to the server is followed"
	var found []problem
	if p != nil {
		name = policyName(p.Ref())
		found = t.warn(warnings(p))
	}
	found = append(found, t.warn(c.Warnings(p))...)
	if t.format != text {
		return t.judged(found, nil)
	}
	_, err = fmt.Fprintf(t.out, "%s is valid. Policy: %s. People: %d.\n", file, name, len(c.People))
	return err
}
