package inspection

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

// getFlags are what every `starling get …` takes.
type getFlags struct {
	instance.Target
	out    outputFlags
	watch  bool
	events bool
}

func newGetCommand() *cobra.Command {
	flags := &getFlags{}
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show modules, hooks, runs, queues, snapshots, releases or replicas of a starling",
		Long: `Asks the starling that runs on this machine, through its local socket, and needs
no access to the cluster. Give --namespace, --name and --state-dir as to the run
that is asked; both commands have the same defaults.

With --context or --kubeconfig it asks the pods of the instance in that cluster: the one
that leads, and for runs all. It needs the right to list pods and to exec in them.

All take -o and -w as kubectl get does. Templates of jsonpath= and paths of custom-columns=
are those of kubectl, over what -o json shows: a list is [*], without items, and the columns
of one row begin with its fields, such as .name. With -w rows are shown again as they change;
in a pipe that is JSON, a line per row.`,
		Example: `  starling get modules
  starling get modules --context production --namespace starling-system
  starling get module ingress-nginx -o yaml
  starling get modules -o jsonpath='{range [*]}{.name}{"\t"}{.state}{"\n"}{end}'
  starling get modules -o custom-columns=NAME:.name,REVISION:.release.revision
  starling get hooks ingress-nginx -o wide
  starling get runs --failed
  starling get queues -w`,
		Args: cobra.ArbitraryArgs,
		RunE: getNamed,
	}
	flags.Target.AddFlags(cmd.PersistentFlags())
	flags.Target.AddDev(cmd.PersistentFlags())
	flags.out.addFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVarP(&flags.watch, "watch", "w", false, "show rows again when they change, until Ctrl-C")
	cmd.PersistentFlags().BoolVar(&flags.events, "output-watch-events", false, "with -w, say of each row whether it was ADDED, MODIFIED or DELETED")
	for _, r := range flags.resources() {
		cmd.AddCommand(flags.command(r))
	}
	return cmd
}

// getNamed takes what -o name shows: module/web is module web.
func getNamed(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		kind, name, is := strings.Cut(args[0], "/")
		for _, sub := range cmd.Commands() {
			if is && (sub.Name() == kind || sub.HasAlias(kind)) {
				sub.SetContext(cmd.Context())
				return sub.RunE(sub, []string{name})
			}
		}
	}
	return command.Group(cmd, args)
}

// ask asks the running instance for its status.
func (f *getFlags) ask(cmd *cobra.Command) (status.Status, error) {
	client, err := f.Client(cmd)
	if err != nil {
		return status.Status{}, err
	}
	st, err := client.Status(cmd.Context())
	return st, f.Instance.Explain(err)
}

// notesOf are about what the lists do not show but explains them.
func notesOf(st status.Status) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	notes = instance.StandingOf(st)
	if st.Paused {
		note("all modules are paused: hooks run, releases are left alone")
	}
	switch {
	case st.Config.State == status.ConfigHeld && st.Config.Reason == "":
		note("configuration held: its ConfigMap is gone; what it said last stays in force")
	case st.Config.Reason != "":
		note("configuration %s: %s", st.Config.State, st.Config.Reason)
	}
	for _, p := range st.Config.Problems {
		note("configuration: %s", p)
	}
	if st.Simulated {
		note("starling dev answers: its cluster is simulated, and the clock there stands still until somebody asks for a run")
	}
	return notes
}

// notFound names what was asked for and, if there is one, what was meant.
func notFound(kind, name string, names []string) error {
	return fmt.Errorf("no %s %q; %s", kind, name, message.DidYouMean(name, names, "see: starling get "+kind+"s"))
}
