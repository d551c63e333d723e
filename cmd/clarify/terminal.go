package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/clarify-broker/clarify/cmd/clarify/app"
	"github.com/clarify-broker/clarify/policy"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// format is what a command writes to standard output.
type format string

// Formats. Whatever the format, logs go to standard error.
const (
	text  format = "text"  // for people; may change
	doc   format = "json"  // one JSON document
	lines format = "jsonl" // one JSON document a line
)

// Set takes a flag's value.
func (f *format) Set(s string) error {
	switch format(s) {
	case text, doc, lines:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("use text, json or jsonl")
}

// String is the flag's value.
func (f *format) String() string { return string(*f) }

// Type is how help names it.
func (f *format) Type() string { return "text|json|jsonl" }

// terminal is where a command reads and writes, and how.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	format   format
	server   access
	begun    bool // the command line was right: errors from here on are not usage errors
	wrote    bool // a document was written, which an error is not to follow
}

// execute runs one command line and returns its exit status.
func (t *terminal) execute(ctx context.Context, args []string) code {
	t.format = text
	root := t.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ok
	}
	if !t.begun {
		err = usageError(cmd, err)
	}
	t.explain(err)
	return codeOf(err)
}

// does wraps what a command does, so that what goes wrong before it is a usage error.
func (t *terminal) does(f func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t.begun = true
		return f(cmd, args)
	}
}

// explain writes an error for people to standard error and, where a program reads, for it to standard output.
func (t *terminal) explain(err error) {
	said := err.Error()
	switch {
	case strings.HasPrefix(said, "NOT EXECUTED:"), strings.HasPrefix(said, "IN DOUBT:"), strings.HasPrefix(said, "FAILED:"):
	case found[app.Problems](err), found[policy.Problems](err):
		said += "\n" + count(strings.Count(said, "\n")+1, "error") + "."
	default:
		said = "error: " + said
	}
	fmt.Fprintln(t.err, said)
	if t.format == text || t.format == doc && t.wrote {
		return
	}
	_ = t.document(map[string]any{"error": map[string]any{"code": codeOf(err).name(), "exit": int(codeOf(err)), "message": err.Error()}})
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// document writes one JSON document.
func (t *terminal) document(v any) error {
	opts := []json.Options{json.Deterministic(true), json.FormatNilSliceAsNull(false)}
	if t.format == doc {
		opts = append(opts, jsontext.WithIndent("  "))
	}
	body, err := json.Marshal(v, opts...)
	if err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	t.wrote = true
	_, err = fmt.Fprintf(t.out, "%s\n", body)
	return err
}

// print writes v as JSON where a program reads, and what for people writes otherwise.
func (t *terminal) print(v any, people func(io.Writer)) error {
	if t.format != text {
		return t.document(v)
	}
	people(t.out)
	return nil
}

// list writes items: an array, one a line, or a table for people with one row per item.
func list[T any](t *terminal, items []T, head string, row func(T) string, empty string) error {
	switch {
	case t.format == lines:
		for _, item := range items {
			if err := t.document(item); err != nil {
				return err
			}
		}
		return nil
	case t.format == doc:
		return t.document(items)
	case len(items) == 0:
		_, err := fmt.Fprintln(t.out, empty)
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	if head != "" {
		fmt.Fprintln(w, head)
	}
	for _, item := range items {
		fmt.Fprintln(w, row(item))
	}
	return w.Flush()
}

// log is the logger of commands that serve, and of those that talk to a server.
func (t *terminal) log(least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: least}))
}

// fromEnvironment gives every flag that was not given its value from CLARIFY_<NAME>, if that is set.
func fromEnvironment(cmd *cobra.Command) error {
	var bad error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, set := os.LookupEnv(variable(f.Name))
		if f.Changed || !set || f.Name == "help" || f.Value.Type() == "stringArray" { // a list has no form as a variable
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil && bad == nil {
			bad = fmt.Errorf("%s: %w", variable(f.Name), err)
		}
	})
	return bad
}

func variable(flag string) string {
	return "CLARIFY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
