package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/clarify-broker/clarify/events"
	"github.com/spf13/cobra"
)

// built is what this binary was made of.
type built struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitzero"`
	Go      string `json:"go"`
	Events  int    `json:"event_types"`
}

func build() built {
	b := built{Version: "unreleased", Go: runtime.Version(), Events: len(events.Types())}
	info, known := debug.ReadBuildInfo()
	if !known {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (t *terminal) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: needs(0),
		RunE: t.does(func(*cobra.Command, []string) error {
			b := build()
			return t.print(b, func(w io.Writer) { fmt.Fprintf(w, "clarify %s (%s, %s)\n", b.Version, b.Commit, b.Go) })
		}),
	}
}
