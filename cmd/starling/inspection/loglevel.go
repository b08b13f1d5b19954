package inspection

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/instance"
)

func newLogLevelCommand() *cobra.Command {
	to := &instance.Target{}
	cmd := &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show or set what a starling that runs logs",
		Long: `Asks the starling that runs on this machine, through its local socket, or with --context a pod, for the least
level that it logs, or has it log from another one on: debug, info, warn or error. A
starling that starts begins with its --log-level again.`,
		Example: `  starling log-level
  starling log-level debug`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one level at most, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := to.Client(cmd)
			if err != nil {
				return err
			}
			defer client.Close()
			level := append(args, "")[0]
			was, err := client.LogLevel(cmd.Context(), level)
			switch {
			case err != nil:
				return to.Instance.Explain(err)
			case level == "":
				fmt.Fprintln(cmd.OutOrStdout(), was)
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "logs from level %s on, before from %s\n", level, was)
			}
			return nil
		},
	}
	to.AddFlags(cmd.Flags())
	return cmd
}
