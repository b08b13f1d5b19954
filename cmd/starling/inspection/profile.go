package inspection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/message"
)

func newProfileCommand() *cobra.Command {
	to := &instance.Target{}
	var over time.Duration
	cmd := &cobra.Command{
		Use:   "profile NAME",
		Short: "Write a profile of a starling that runs, for go tool pprof",
		Long: `Asks the starling that runs on this machine, through its local socket, or with --context a pod, for a profile
of the process, and writes it to stdout in the form of go tool pprof. NAME is one of
` + strings.Join(admin.Profiles(), ", ") + `: cpu is processor time,
and trace is for go tool trace.`,
		Example: `  starling profile heap > heap.pprof
  starling profile cpu --over 10s > cpu.pprof`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("starling profile takes the name of one profile: %s", strings.Join(admin.Profiles(), ", "))
			}
			if !slices.Contains(admin.Profiles(), args[0]) {
				return fmt.Errorf("no profile %q; %s", args[0], message.DidYouMean(args[0], admin.Profiles(), "there are "+strings.Join(admin.Profiles(), ", ")))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if process.IsTerminal(cmd.OutOrStdout()) {
				return errors.New("a profile is no text; write it to a file: starling profile " + args[0] + " > " + args[0] + ".pprof")
			}
			client, err := to.Client(cmd)
			if err != nil {
				return err
			}
			defer client.Close()
			return to.Instance.Explain(client.Profile(cmd.Context(), cmd.OutOrStdout(), args[0], over))
		},
	}
	to.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&over, "over", 0, "`time` for which it is collected, in whole seconds (default: since the start; one second of cpu and trace)")
	return cmd
}
