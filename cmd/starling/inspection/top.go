package inspection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/status"
)

// topFlags are the flags of `starling top`.
type topFlags struct {
	getFlags
	sort string
	over time.Duration
}

func newTopCommand() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top [MODULE]",
		Short: "Show which hooks take the most time, steps and memory",
		Long: `Asks the starling that runs on this machine, through its local socket, for the runs of
each hook since the process started, the time and the steps of Starlark that they took
together, how long the longest one took, and the memory of its snapshots. With --over it
waits, and shows what was taken meanwhile: a hook that did not run is left out.`,
		Example: `  starling top
  starling top ingress-nginx --sort memory
  starling top --over 10s`,
		Args: command.AtMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.Target.AddFlags(cmd.Flags())
	f.out.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.sort, "sort", status.Orders()[0], "the hook that has the most comes first: "+strings.Join(status.Orders(), ", "))
	cmd.Flags().DurationVar(&f.over, "over", 0, "`time` for which it is looked at (default: since the start)")
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains(status.Orders(), f.sort) {
		return fmt.Errorf("--sort %q is not known; use %s", f.sort, strings.Join(status.Orders(), ", "))
	}
	if f.over < 0 {
		return fmt.Errorf("--over %s is no time to look for", f.over)
	}
	p, err := f.out.printer(cmd)
	if err != nil {
		return err
	}
	hooks, err := f.hooks(cmd, args)
	if err != nil {
		return err
	}
	before := map[[2]string]status.Usage{}
	if f.over > 0 {
		for _, h := range hooks {
			before[[2]string{h.Module, h.ID}] = h.Usage
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(f.over):
		}
		if hooks, err = f.hooks(cmd, args); err != nil {
			return err
		}
	}
	used := []status.HookUsage{}
	for _, h := range hooks {
		u := h.Usage.Since(before[[2]string{h.Module, h.ID}])
		if f.over == 0 || u.Runs > 0 {
			used = append(used, status.HookUsage{Module: h.Module, Hook: h.ID, Usage: u})
		}
	}
	status.SortUsage(used, f.sort)
	usageName := func(u status.HookUsage) string { return hookName(status.Hook{ID: u.Hook, Module: u.Module}) }
	l := newListing("hook", used, status.PrintUsage, usageName)
	l.empty = "no hook has run"
	return p.list(l)
}

// hooks asks for all hooks, or for those of one module.
func (f *topFlags) hooks(cmd *cobra.Command, args []string) ([]status.Hook, error) {
	st, err := f.ask(cmd)
	if err != nil {
		return nil, err
	}
	hooks, err := findHooks(st, args)
	if err != nil && slices.Contains([]string{"module", "hook", "pod"}, strings.TrimSuffix(args[0], "s")) {
		return nil, fmt.Errorf("no module %q; starling top without a name shows the hooks of all modules, starling top MODULE those of one", args[0])
	}
	return hooks, err
}
