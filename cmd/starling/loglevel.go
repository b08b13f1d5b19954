package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/runtime/admin"
)

func newLogLevelCommand() *cobra.Command {
	i := &instance{}
	cmd := &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show or set what a starling that runs logs",
		Long: `Asks the starling that runs on this machine, through its local socket, for the least
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
			if err := i.complete(podNamespaceFile); err != nil {
				return err
			}
			level := append(args, "")[0]
			was, err := admin.NewClient(admin.ClientOptions{Socket: i.socket()}).LogLevel(cmd.Context(), level)
			switch {
			case err != nil:
				return i.explain(err)
			case level == "":
				fmt.Fprintln(cmd.OutOrStdout(), was)
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "logs from level %s on, before from %s\n", level, was)
			}
			return nil
		},
	}
	i.addFlags(cmd.Flags())
	return cmd
}
