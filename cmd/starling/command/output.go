package command

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/runtime/message"
)

// ExitCode ends a command with its own code, without a word.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// OutputFlag declares -o of a command, which takes one of these forms, the first one by default: the command refuses
// others before it does anything.
func OutputFlag(cmd *cobra.Command, output *string, usage string, forms ...string) {
	cmd.Flags().StringVarP(output, "output", "o", forms[0], usage)
	run, last := cmd.RunE, len(forms)-1
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(forms, *output) {
			return fmt.Errorf("--output %q is not known; use %s or %s", *output, strings.Join(forms[:last], ", "), forms[last])
		}
		return run(cmd, args)
	}
}

// SayNotes writes notes on stderr.
func SayNotes(cmd *cobra.Command, notes []string) {
	for _, note := range notes {
		Say(cmd, "note: %s", note)
	}
}

// Say writes a line on stderr.
func Say(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), message.Clean(AsCalled(cmd, fmt.Sprintf(format, args...))))
}

// Colorful says whether stdout is a terminal whose user has not asked for no
// colors (https://no-color.org).
func Colorful(cmd *cobra.Command) bool {
	return OnTerminal(cmd) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// OnTerminal says whether stdout is one.
func OnTerminal(cmd *cobra.Command) bool {
	return process.IsTerminal(cmd.OutOrStdout())
}
