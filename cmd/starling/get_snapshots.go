package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetSnapshotsCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "snapshots HOOK|MODULE",
		Aliases: []string{"snapshot"},
		Short:   "Show what the watches of a hook keep now",
		Long: `Shows the snapshots that the next run of a hook sees, of a module those of all its hooks:
a table of how many objects there are, with -o yaml what the filters have made of them.
Text that comes out of Secrets is shown as ***.`,
		Example: `  starling get snapshots hello/hooks/nodes.star:discover
  starling get snapshots hello -o yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes the name of one hook or module; see: starling get hooks", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := flags.ask(cmd)
			if err != nil {
				return err
			}
			hooks, err := findHooks(st, args[0])
			if err != nil {
				return err
			}
			client, err := flags.client()
			if err != nil {
				return err
			}
			all := []status.Snapshot{}
			for _, h := range hooks {
				snapshots, err := client.Snapshots(cmd.Context(), h.ID)
				if err != nil {
					return flags.instance.explain(err)
				}
				all = append(all, snapshots...)
			}
			if flags.output == "table" && len(all) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no snapshots: nothing is watched")
				return nil
			}
			return flags.print(cmd, all)
		},
	}
}
