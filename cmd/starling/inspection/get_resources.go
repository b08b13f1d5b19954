package inspection

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
)

// look finds the rows of a resource: the ones that its argument names, or all without one.
type look func(cmd *cobra.Command, args []string) (*listing, error)

// resource is a command of get: its look finds the rows, with their columns and notes.
type resource struct {
	look  look
	flags func(*pflag.FlagSet) // its own; nil: none
	cobra.Command
}

// resources returns all that get shows.
func (f *getFlags) resources() []resource {
	runs := &getRunsFlags{getFlags: f, records: instance.Records{Target: &f.Target}}
	return []resource{
		{look: f.inStatus(listModules), Command: cobra.Command{
			Use:     "modules [NAME]",
			Aliases: []string{"module", "mod"},
			Short:   "Show modules: state, reason, release",
			Example: `  starling get modules
  starling get module ingress-nginx -o yaml`,
		}},
		{look: f.inStatus(listHooks), Command: cobra.Command{
			Use:     "hooks [ID|MODULE]",
			Aliases: []string{"hook"},
			Short:   "Show hooks: state, last run, last error, next try",
			Example: `  starling get hooks
  starling get hooks ingress-nginx -o wide`,
		}},
		{look: f.inStatus(listReleases), Command: cobra.Command{
			Use:     "releases [MODULE|NAMESPACE/NAME]",
			Aliases: []string{"release"},
			Short:   "Show the Helm releases of modules",
			Example: `  starling get releases
  starling get releases ingress-nginx -o json`,
		}},
		{look: f.snapshots, Command: cobra.Command{
			Use:     "snapshots [HOOK|MODULE]",
			Aliases: []string{"snapshot"},
			Short:   "Show what the watches of a hook keep now",
			Long: `Shows the snapshots that the next run of a hook sees, of a module those of all its hooks, without a name those
of all modules: a table of how many objects there are, with -o yaml what the filters have made of them.
Text that comes out of Secrets is shown as ***.`,
			Example: `  starling get snapshots
  starling get snapshots ingress-nginx/hooks/nodes.star:discover
  starling get snapshots ingress-nginx -o yaml`,
		}},
		{look: f.queues, Command: cobra.Command{
			Use:     "queues [MODULE]",
			Aliases: []string{"queue"},
			Short:   "Show which runs of hooks wait, for how long and why",
			Long: `Shows the queues in which runs of hooks wait for their turn: how many wait and for how
long, which hooks run, and the run that is next with what it waits for. A table leaves out
queues in which nothing waits or runs, unless it is -o wide; -o yaml has the first hundred
runs of each queue.`,
			Example: `  starling get queues
  starling get queues ingress-nginx -w`,
		}},
		{look: runs.look, flags: runs.addFlags, Command: cobra.Command{
			Use:     "runs [RUN|MODULE|HOOK]",
			Aliases: []string{"run"},
			Short:   "Show the last runs of hooks, the newest first",
			Long: `Shows the runs that are kept in --state-dir, whether or not a starling runs. Why one
has failed, and all of one run (-o yaml), is sealed: the key comes from the starling
that runs here, from --key-file, or for one run from the Secret of the instance. With
--context or --kubeconfig, and no --state-dir, shows those of all pods of the instance. Text
that comes out of Secrets is shown as ***.`,
			Example: `  starling get runs --failed
  starling get runs ingress-nginx
  starling get runs k3f9-12 -o yaml`,
		}},
		{look: f.replicas, Command: cobra.Command{
			Use:     "replicas",
			Aliases: []string{"replica"},
			Short:   "Show the processes of an instance: which one leads, which are ready",
			Long: `With --context or --kubeconfig shows all pods of the instance; else the process that runs
on this machine, and who leads when that is another one.`,
			Example: `  starling get replicas --context production`,
			Args:    command.NoArgs,
		}},
	}
}

// command makes the command of a resource.
func (f *getFlags) command(r resource) *cobra.Command {
	cmd := &r.Command
	if cmd.Args == nil {
		cmd.Args = command.AtMostOneName
	}
	if r.flags != nil {
		r.flags(cmd.Flags())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.list(cmd, func() (*listing, error) { return r.look(cmd, args) })
	}
	return cmd
}

// inStatus looks for rows in the status of the instance.
func (f *getFlags) inStatus(list func(st status.Status, args []string) (*listing, error)) look {
	return func(cmd *cobra.Command, args []string) (*listing, error) {
		st, err := f.ask(cmd)
		if err != nil {
			return nil, err
		}
		l, err := list(st, args)
		if err != nil {
			return nil, err
		}
		l.notes = append(notesOf(st), l.notes...)
		return l, nil
	}
}

// meant returns the rows that are meant by an argument, or all without one.
func meant[T any](rows []T, args []string, means func(row T, name string) bool) []T {
	if len(args) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row T) bool { return !means(row, args[0]) })
}

// given takes an empty argument for none.
func given(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "" })
}
