package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetModulesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "modules [NAME]",
		Aliases: []string{"module"},
		Short:   "Show modules: state, reason, release",
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
			if flags.output != "table" {
				if len(args) == 1 {
					return flags.print(cmd, modules[0])
				}
				return flags.print(cmd, listOf(modules))
			}
			notes(cmd, st)
			if len(modules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no modules")
				return nil
			}
			return flags.print(cmd, modules)
		},
	}
}

func findModule(modules []status.Module, name string) (status.Module, error) {
	var names []string
	for _, m := range modules {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return status.Module{}, notFound("module", name, names)
}
