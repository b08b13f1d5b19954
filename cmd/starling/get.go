package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/server"
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
		Short: "Show modules or hooks of a running starling",
		Long: `Asks the starling that runs on this machine, through its local socket, and needs
no access to the cluster. Give --namespace, --name and --state-dir as to the run
that is asked; both commands have the same defaults.`,
		Example: `  starling get modules
  starling get module ingress-nginx -o yaml
  starling get hooks ingress-nginx`,
		Args: cobra.ArbitraryArgs,
		RunE: groupOf,
	}
	flags.instance.addFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVarP(&flags.output, "output", "o", "table", "`format`: table, yaml or json")
	cmd.AddCommand(newGetModulesCommand(flags), newGetHooksCommand(flags))
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
	if err := checkFormat(f.output); err != nil {
		return status.Status{}, err
	}
	if err := f.instance.complete(podNamespaceFile); err != nil {
		return status.Status{}, err
	}
	client := server.NewClient(server.ClientOptions{Socket: f.instance.socket()})
	st, err := client.Status(cmd.Context())
	if errors.Is(err, server.ErrNotRunning) {
		return st, f.instance.notRunning()
	}
	return st, err
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
	say := func(format string, args ...any) {
		fmt.Fprintln(cmd.ErrOrStderr(), plainText(fmt.Sprintf(format, args...)))
	}
	if !st.Leader {
		say("note: this starling stands by: it waits for the lease, which another one holds")
	}
	if st.Config.Reason != "" {
		say("note: configuration %s: %s", st.Config.State, st.Config.Reason)
	}
	for _, p := range st.Config.Problems {
		say("note: configuration: %s", p)
	}
}

// ago returns "12s" for a time 12 seconds before now, "-" for none.
func ago(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return short(now.Sub(*t))
}

// until is ago for times to come.
func until(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return "in " + short(t.Sub(now))
}

// colourful says whether colours make sense on f: a terminal, and nobody who asked
// for none (https://no-color.org).
func colourful(cmd *cobra.Command) bool {
	f, ok := cmd.OutOrStdout().(*os.File)
	return ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
