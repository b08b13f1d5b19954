// Package command is what the commands of starling have in common as people see it: how they take arguments and the
// module tree, what they Say of a mistake, and in which form they print.
package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// NoArgs refuses arguments, with the way out.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		if modules := cmd.Flag("modules"); modules != nil && modules.Value.String() != "" && !modules.Changed { // as an argument
			return fmt.Errorf("%s takes one module tree, got %q, too; several folders are one tree with : between them: %s:%s", cmd.CommandPath(), args[0], modules.Value, args[0])
		}
		return fmt.Errorf("%s takes no arguments, got %q; see: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// AtMostOneName refuses a second argument.
func AtMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one name at most, got %d; leave the name out to see all", cmd.CommandPath(), len(args))
	}
	return nil
}

// Takes refuses fewer and more arguments, with these words.
func Takes(least, most int, otherwise string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return errors.New(otherwise)
		}
		return nil
	}
}

// Group is what a command does that only holds others: its help, or an error
// for a name that is none of theirs.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return UnknownCommand(cmd, args[0])
}
