package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (t *terminal) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "clarify",
		Short: "Ask before the tool runs: a clarification broker for agents",
		Long: "Clarify stands between an agent and its tools. The agent proposes an action before the tool runs; a policy decides\n" +
			"whether it may run, whether a person must be asked or must approve; and a released action runs at most once.\n\n" +
			"Start with `clarify dev`. Every flag can also be given as an environment variable: --nats-url is CLARIFY_NATS_URL.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	flags := root.PersistentFlags()
	flags.VarP(&t.format, "output", "o", "what to write: text for people, json or jsonl for programs")
	flags.StringVar(&t.server.url, "nats-url", "", "`URL` of the server; by default that of the clarify dev in --dir, else nats://127.0.0.1:4222")
	flags.StringVar(&t.server.creds, "creds", "", "credentials `file` for the server")
	flags.StringVar(&t.server.dir, "dir", ".clarify", "`folder` of `clarify dev`: its data, and where its server is")
	flags.StringVar(&t.server.inbox, "inbox-prefix", "_INBOX_operator", "`subject` for replies, as the credential's permissions have it; ask and gate use their agent's")
	flags.StringVar(&t.server.space, "space", "clarify", "first token of all subjects")
	flags.DurationVar(&t.server.patience, "timeout", 10*time.Second, "how long to wait for the server and its broker")
	group(root, "run", "Run it:", t.dev(), t.serve(), t.nats(), t.policy())
	group(root, "people", "Answer and look:", t.ls(), t.answer(), t.show(), t.watch(), t.cancel())
	group(root, "agents", "For agents:", t.ask(), t.gate())
	group(root, "operate", "Operate:", t.health(), t.audit(), t.reconcile(), t.freeze(), t.thaw(), t.cases(), t.bench())
	root.AddCommand(t.schema(), t.version(), exitCodes())
	return root
}

// noun is a command that only has others: alone it shows its help, and a verb it does not have is a usage error.
func noun(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(verbs...)
	return cmd
}

func group(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// exitCodes is a page of the help.
func exitCodes() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean", Long: exitTable()}
}

func exitTable() string {
	var out strings.Builder
	out.WriteString("Exit statuses:\n\n")
	for _, m := range meanings() {
		fmt.Fprintf(&out, "  %3d  %-15s %s\n", m.code, m.name, m.text)
	}
	return out.String()
}
