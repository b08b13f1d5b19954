// Package operator has the command that runs starling in a cluster, and the one that takes away what that leaves.
package operator

import "github.com/spf13/cobra"

// Commands returns them. They say that they are of this version of starling.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{newRunCommand(version), newDetachCommand()}
}
