package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// needs takes a command's arguments: those that are named, and up to so many others. With others below 0 there is no limit.
func needs(others int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		most := len(names) + others
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", names[len(args)])
		case others >= 0 && len(args) > most:
			return fmt.Errorf("%q is one argument too many", args[most])
		}
		return nil
	}
}

// usageError is a command line that could not be read, and which command's help says how it is written.
func usageError(cmd *cobra.Command, err error) error {
	return &fault{code: usage, cause: err, text: fmt.Sprintf("%s\nsee `%s --help`", plainFlag(err), cmd.CommandPath())}
}

// plainFlag says what is wrong with a flag's value in place of what the function said that could not read it.
func plainFlag(err error) string {
	bad, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err.Error()
	}
	flag := "--" + bad.GetFlag().Name
	if name := variable(bad.GetFlag().Name); strings.HasPrefix(err.Error(), name+": ") {
		flag = name
	}
	switch bad.GetFlag().Value.Type() {
	case "int":
		return fmt.Sprintf("%s: %q is not a whole number", flag, bad.GetValue())
	case "intSlice":
		return fmt.Sprintf("%s: %q is not a list of whole numbers; write it like 1,16,128", flag, bad.GetValue())
	case "duration":
		return fmt.Sprintf("%s: %q is not a duration; write it like 30s, 10m or 1h30m", flag, bad.GetValue())
	case "float64":
		return fmt.Sprintf("%s: %q is not a number", flag, bad.GetValue())
	case "bool":
		return fmt.Sprintf("%s: %q is neither true nor false", flag, bad.GetValue())
	}
	if bad.GetFlag().Name == "log-level" { // slog's own type has no name
		return fmt.Sprintf("%s: %q is not a level of the log; use debug, info, warn or error", flag, bad.GetValue())
	}
	return fmt.Sprintf("%s: %q cannot be used: %s", flag, bad.GetValue(), bad.Unwrap())
}
