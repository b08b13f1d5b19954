// Package files has the commands that read and write the files of a module tree, and need no cluster.
package files

import "github.com/spf13/cobra"

// Commands returns them. They say that they are of this version of starling.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{
		newCheckCommand(), newFmtCommand(), newDocsCommand(), newNewCommand(), newFetchCommand(), newLSPCommand(version),
	}
}
