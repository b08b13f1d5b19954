package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

func newGetModulesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "modules [NAME]",
		Aliases: []string{"module", "mod"},
		Short:   "Show modules: state, reason, release",
		Example: `  starling get modules
  starling get module ingress-nginx -o yaml`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.list(cmd, func() (*listing, error) {
				st, err := flags.ask(cmd)
				if err != nil {
					return nil, err
				}
				modules := st.Modules
				if len(args) == 1 {
					m, err := findModule(st.Modules, args[0])
					if err != nil {
						return nil, err
					}
					modules = []status.Module{m}
				}
				modules = status.WithFailing(st.Hooks, modules)
				l := newListing("module", modules, func(m status.Module) string { return m.Name })
				l.notes = append(notesOf(st), failing(st.Hooks, modules)...)
				if len(args) == 1 {
					l.all = modules[0]
				}
				return l, nil
			})
		},
	}
}

// failing tells of hooks that fail in modules that are ready nonetheless, as they have
// been released once.
func failing(hooks []status.Hook, modules []status.Module) (notes []string) {
	for _, m := range modules {
		n := 0
		for _, h := range hooks {
			if h.Module == m.Name && h.State == status.HookFailed {
				n++
			}
		}
		if n > 0 && m.State == status.ModuleReady {
			notes = append(notes, fmt.Sprintf("the last run of %s of module %s failed; see: starling get hooks %s", message.Count(n, "hook"), m.Name, m.Name))
		}
	}
	return notes
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
