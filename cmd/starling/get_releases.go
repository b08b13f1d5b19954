package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetReleasesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "releases [MODULE]",
		Aliases: []string{"release"},
		Short:   "Show the Helm releases of modules",
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := flags.ask(cmd)
			if err != nil {
				return err
			}
			modules := st.Modules
			if len(args) == 1 {
				m, err := findModule(st.Modules, args[0])
				if err != nil {
					return err
				}
				modules = []status.Module{m}
			}
			releases := status.Releases(modules)
			if flags.output != "table" {
				return flags.print(cmd, releases)
			}
			notes(cmd, st)
			if len(releases) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no releases")
				return nil
			}
			return flags.print(cmd, releases)
		},
	}
}
