package main

import (
	"fmt"

	"github.com/clarify-broker/clarify/events"
	"github.com/spf13/cobra"
)

func (t *terminal) schema() *cobra.Command {
	return noun(&cobra.Command{Use: "schema", Short: "Print the JSON Schemas of events and requests"}, &cobra.Command{
		Use: "ls", Short: "List the schemas", Args: needs(0),
		RunE: t.does(func(*cobra.Command, []string) error {
			return list(t, events.SchemaNames(), "", func(s string) string { return s }, "")
		}),
	}, &cobra.Command{
		Use: "get <name>", Short: "Print one schema", Args: needs(0, "the schema's name"),
		RunE: t.does(func(_ *cobra.Command, args []string) error {
			body, err := events.Schema(args[0])
			if err != nil {
				return &fault{code: notFound, text: err.Error(), cause: err}
			}
			_, err = fmt.Fprintf(t.out, "%s\n", body)
			return err
		}),
	})
}
