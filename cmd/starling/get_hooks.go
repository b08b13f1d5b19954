package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetHooksCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "hooks [ID|MODULE]",
		Aliases: []string{"hook"},
		Short:   "Show hooks: state, last run, last error, next try",
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := flags.ask(cmd)
			if err != nil {
				return err
			}
			hooks := st.Hooks
			if len(args) == 1 {
				if hooks, err = findHooks(st, args[0]); err != nil {
					return err
				}
			}
			if flags.output != "table" {
				return flags.print(cmd, listOf(hooks))
			}
			notes(cmd, st)
			if len(hooks) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no hooks")
				return nil
			}
			return flags.print(cmd, hooks)
		},
	}
}

// findHooks returns the hooks of that ID (two modules may use the same; MODULE/ID
// names one), or the hooks of the module of that name, which may have none.
func findHooks(st status.Status, name string) ([]status.Hook, error) {
	var found []status.Hook
	var names []string
	for _, h := range st.Hooks {
		if name == h.ID || name == h.Module+"/"+h.ID || name == h.Module {
			found = append(found, h)
		}
		names = append(names, h.ID, h.Module)
	}
	for _, m := range st.Modules {
		if m.Name == name {
			return found, nil
		}
		names = append(names, m.Name)
	}
	if len(found) == 0 {
		return nil, notFound("hook", name, names)
	}
	return found, nil
}
