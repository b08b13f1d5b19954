package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/files"
	"github.com/starling-operator/starling/cmd/starling/inspection"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/operator"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/cmd/starling/simulation"
)

// newRootCommand returns `starling` with all its commands.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "starling",
		Short: "A Kubernetes addon operator: Starlark hooks find values, Helm releases follow",
		Long: `Starling watches a cluster, runs the hooks of its modules in its own process,
lets them set values, renders each module's chart with the result, and installs or
upgrades the release whenever that differs.`,
		Example: `  starling run examples/quickstart
  starling get modules`,
		// main prints errors, in one line; usage after an error hides it.
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       shortVersion(),
		Args:          cobra.ArbitraryArgs, // Group refuses them, in one line
		RunE:          command.Group,
	}
	root.SetFlagErrorFunc(command.ExplainFlag)
	root.AddCommand(operator.Commands(root.Version)...)
	root.AddCommand(inspection.Commands(root.Version)...)
	root.AddCommand(simulation.Commands(root.Version)...)
	root.AddCommand(files.Commands(root.Version)...)
	root.AddCommand(newVersionCommand(), process.NewEvaluateChartsCommand(), instance.NewAdminSocketCommand())
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	exampleOfCompletion(root)
	return root
}

// exampleOfCompletion gives cobra's completion an example, as each command has one.
func exampleOfCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Example = "  starling completion bash > starling.bash"
		for _, shell := range c.Commands() {
			shell.Example = fmt.Sprintf("  starling completion %[1]s > starling.%[1]s", shell.Name())
		}
	}
}

// newHelpCommand is cobra's, but for a name that is no command's: that is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Example: `  starling help get modules`,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && found.HasSubCommands() {
				return command.UnknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
