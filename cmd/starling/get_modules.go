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
			failing(cmd, st.Hooks, modules)
			if len(modules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no modules")
				return nil
			}
			return flags.print(cmd, modules)
		},
	}
}

// failing tells of hooks that fail in modules that are ready nonetheless, as they have
// been released once.
func failing(cmd *cobra.Command, hooks []status.Hook, modules []status.Module) {
	for _, m := range modules {
		n := 0
		for _, h := range hooks {
			if h.Module == m.Name && h.State == status.HookFailed {
				n++
			}
		}
		if n > 0 && m.State == status.ModuleReady {
			say(cmd, "note: the last run of %s of module %s failed; see: starling get hooks %s", counted(n, "hook"), m.Name, m.Name)
		}
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
