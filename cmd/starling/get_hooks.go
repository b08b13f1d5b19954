package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetHooksCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "hooks [ID|MODULE]",
		Aliases: []string{"hook"},
		Short:   "Show hooks: state, last run, last error, next try",
		Example: `  starling get hooks
  starling get hooks ingress-nginx -o wide`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.list(cmd, func() (*listing, error) {
				st, err := flags.ask(cmd)
				if err != nil {
					return nil, err
				}
				hooks := st.Hooks
				if len(args) == 1 {
					if hooks, err = findHooks(st, args[0]); err != nil {
						return nil, err
					}
				}
				l := newListing("hook", hooks, hookName)
				l.notes = notesOf(st)
				return l, nil
			})
		},
	}
}

// hookName tells hooks of all modules apart: two may have hooks that call themselves the same.
func hookName(h status.Hook) string {
	if strings.HasPrefix(h.ID, h.Module+"/") {
		return h.ID
	}
	return h.Module + "/" + h.ID
}

// meansHook says whether a name means a hook: its id, its module and the id, or an end of the id, as the function.
func meansHook(name, module, id string) bool {
	return name != "" && (name == id || name == module+"/"+id || strings.HasSuffix(id, "/"+name) || strings.HasSuffix(id, ":"+name))
}

// findHooks returns the hooks of that name (of several modules there may be some; MODULE/ID
// names one), or the hooks of the module of that name, which may have none.
func findHooks(st status.Status, name string) ([]status.Hook, error) {
	var found []status.Hook
	var names []string
	for _, h := range st.Hooks {
		if name == h.Module || meansHook(name, h.Module, h.ID) {
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
