// Package simulation has the commands that let a module tree work without changing a cluster: in a simulated one, which
// may lie over a real one.
package simulation

import "github.com/spf13/cobra"

// Commands returns them. They say that they are of this version of starling.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{
		newPlanCommand(version), newRenderCommand(version), newRBACCommand(version), newReplayCommand(version),
		newTestCommand(), newReplCommand(version), newDevCommand(version),
	}
}
