// Package inspection has the commands that ask a starling that runs: what it does, and why.
package inspection

import "github.com/spf13/cobra"

// Commands returns them. They say that they are of this version of starling.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{
		newGetCommand(), newDescribeCommand(), newExplainCommand(version), newLogsCommand(), newTopCommand(),
		newTUICommand(version), newLogLevelCommand(), newProfileCommand(),
	}
}
