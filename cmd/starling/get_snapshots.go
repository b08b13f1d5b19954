package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetSnapshotsCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "snapshots [HOOK|MODULE]",
		Aliases: []string{"snapshot"},
		Short:   "Show what the watches of a hook keep now",
		Long: `Shows the snapshots that the next run of a hook sees, of a module those of all its hooks, without a name those
of all modules: a table of how many objects there are, with -o yaml what the filters have made of them.
Text that comes out of Secrets is shown as ***.`,
		Example: `  starling get snapshots
  starling get snapshots ingress-nginx/hooks/nodes.star:discover
  starling get snapshots ingress-nginx -o yaml`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.list(cmd, func() (*listing, error) { return flags.snapshots(cmd, strings.Join(args, "")) })
		},
	}
}

// snapshots asks for those of a hook, or of all hooks of a module; "" is all.
func (f *getFlags) snapshots(cmd *cobra.Command, name string) (*listing, error) {
	st, err := f.ask(cmd)
	if err != nil {
		return nil, err
	}
	hooks := st.Hooks
	if name != "" {
		if hooks, err = findHooks(st, name); err != nil {
			return nil, err
		}
	}
	client, err := f.client(cmd)
	if err != nil {
		return nil, err
	}
	all := []status.Snapshot{}
	for _, h := range hooks {
		snapshots, err := client.Snapshots(cmd.Context(), h.ID)
		if err != nil {
			return nil, f.instance.explain(err)
		}
		all = append(all, snapshots...)
	}
	l := newListing("snapshot", all, func(s status.Snapshot) string { return s.Hook + "/" + s.Binding })
	l.empty = "no snapshots: nothing is watched"
	if !st.Leader {
		l.notes = append(l.notes, standbyNote(st.Holder))
	}
	return l, nil
}
