package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/tree"
)

// TreeFirst has a command with the flag --modules take the folder of the module tree in front of
// its other arguments, too. It takes least to most of these; a negative most is no limit.
//
// An argument that may be either is the tree when the folder holds modules, and --modules does not name one.
func TreeFirst(cmd *cobra.Command, modules *string, least, most int) {
	TreeBefore(cmd, modules, func() (int, int) { return least, most })
}

// TreeBefore is TreeFirst for a command whose flags Say how many arguments it takes.
func TreeBefore(cmd *cobra.Command, modules *string, takes func() (least, most int)) {
	check, run := cmd.Args, cmd.RunE
	var rest []string
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		rest = args
		least, most := takes()
		named := cmd.Flag("modules").Changed
		forced := most >= 0 && len(args) == most+1
		if forced || len(args) > least && !named && NamesTree(args[0]) {
			if named {
				return fmt.Errorf("the module tree is named twice, by --modules %s and by %s; name it once", *modules, args[0])
			}
			*modules, rest = args[0], args[1:]
		}
		return check(cmd, rest)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd, rest) }
}

// TreeFlag has a command that takes the module tree as its first argument take it by --modules, too.
// each gives it several folders as several arguments.
func TreeFlag(cmd *cobra.Command, each bool) {
	modules := cmd.Flags().String("modules", "", ModulesUsage+"; the same as the argument")
	with := func(args []string) []string {
		switch {
		case *modules == "":
			return args
		case each:
			return append(tree.Folders(*modules), args...)
		}
		return append([]string{*modules}, args...)
	}
	check, run := cmd.Args, cmd.RunE
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, with(args)) }
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, with(args)) }
}

// NamesTree reports whether an argument is the folder of a module tree, or several with : between them.
// The folder of one module is none, even when it has a chart in it.
func NamesTree(arg string) bool {
	for _, dir := range tree.Folders(arg) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && tree.IsTree(dir) && !tree.IsModule(dir) {
			return true
		}
	}
	return false
}
