package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/message"
)

// getFlags are what every `starling get …` takes.
type getFlags struct {
	instance instance
	output   string
}

func newGetCommand() *cobra.Command {
	flags := &getFlags{}
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show modules, hooks, runs, queues, snapshots or releases of a starling",
		Long: `Asks the starling that runs on this machine, through its local socket, and needs
no access to the cluster. Give --namespace, --name and --state-dir as to the run
that is asked; both commands have the same defaults.`,
		Example: `  starling get modules
  starling get module ingress-nginx -o yaml
  starling get hooks ingress-nginx
  starling get runs --failed
  starling get queues -w`,
		Args: cobra.ArbitraryArgs,
		RunE: groupOf,
	}
	flags.instance.addFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "table", "`format`: table, yaml or json")
	cmd.AddCommand(newGetModulesCommand(flags), newGetHooksCommand(flags), newGetRunsCommand(flags), newGetQueuesCommand(flags), newGetSnapshotsCommand(flags), newGetReleasesCommand(flags))
	return cmd
}

// atMostOneName refuses a second argument.
func atMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one name at most, got %d; leave the name out to see all", cmd.CommandPath(), len(args))
	}
	return nil
}

// ask checks the flags, then asks the running instance for its status.
func (f *getFlags) ask(cmd *cobra.Command) (status.Status, error) {
	client, err := f.client()
	if err != nil {
		return status.Status{}, err
	}
	st, err := client.Status(cmd.Context())
	return st, f.instance.explain(err)
}

// client checks the flags and says whom to ask.
func (f *getFlags) client() (*admin.Client, error) {
	if err := checkFormat(f.output); err != nil {
		return nil, err
	}
	if err := f.instance.complete(podNamespaceFile); err != nil {
		return nil, err
	}
	return admin.NewClient(admin.ClientOptions{Socket: f.instance.socket()}), nil
}

// explain says what to do when nobody answers.
func (i *instance) explain(err error) error {
	if errors.Is(err, admin.ErrNotRunning) {
		return i.notRunning()
	}
	return err
}

// notRunning says that nobody answers, and what to do: name the instance that
// does run, or start one.
func (i *instance) notRunning() error {
	what := fmt.Sprintf("no starling %s/%s runs here (socket %s)", i.Namespace, i.Name, i.socket())
	if others := i.others(); len(others) > 0 {
		ns, name, _ := strings.Cut(others[0], "/")
		return fmt.Errorf("%s; seen here: %s; ask it with --namespace %s --name %s",
			what, strings.Join(others, ", "), ns, name)
	}
	return fmt.Errorf("%s; start one with: starling run --modules FOLDER; or give its --namespace, --name and --state-dir", what)
}

// notes tells, on stderr, what the lists do not show but explains them.
func notes(cmd *cobra.Command, st status.Status) {
	if !st.Leader {
		say(cmd, "note: this starling stands by: it waits for the lease, which another one holds")
	}
	if f := st.ReloadFailed; f != nil {
		say(cmd, "note: the module tree is not in force as it is now, generation %d is: %s", st.Generation, f.Reason)
	}
	if st.Paused {
		say(cmd, "note: all modules are paused: hooks run, releases are left alone")
	}
	switch {
	case st.Config.State == status.ConfigHeld && st.Config.Reason == "":
		say(cmd, "note: configuration held: its ConfigMap is gone; what it said last stays in force")
	case st.Config.Reason != "":
		say(cmd, "note: configuration %s: %s", st.Config.State, st.Config.Reason)
	}
	for _, p := range st.Config.Problems {
		say(cmd, "note: configuration: %s", p)
	}
}

// say writes a line on stderr.
func say(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintln(cmd.ErrOrStderr(), message.Clean(fmt.Sprintf(format, args...)))
}

// print writes v, a status or modules or hooks, in the form that -o asks for.
func (f *getFlags) print(cmd *cobra.Command, v any) error {
	return status.Encode(cmd.OutOrStdout(), f.output, v, status.Options{Color: colorful(cmd), Now: time.Now()})
}

// colorful says whether stdout is a terminal whose user has not asked for no
// colors (https://no-color.org).
func colorful(cmd *cobra.Command) bool {
	f, ok := cmd.OutOrStdout().(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// checkFormat refuses what [status.Encode] cannot write, before anybody is asked.
func checkFormat(format string) error {
	formats := []string{"table", "yaml", "json"}
	if slices.Contains(formats, format) {
		return nil
	}
	return fmt.Errorf("--output %q is not known; use table, yaml or json", format)
}

// notFound names what was asked for and, if there is one, what was meant.
func notFound(kind, name string, names []string) error {
	return fmt.Errorf("no %s %q; %s", kind, name, message.DidYouMean(name, names, "see: starling get "+kind+"s"))
}

// listOf makes an empty list "[]" and not "null".
func listOf[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
