package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/record"
)

func newGetRunsCommand(flags *getFlags) *cobra.Command {
	f := &getRunsFlags{getFlags: flags}
	cmd := &cobra.Command{
		Use:     "runs [RUN|MODULE|HOOK]",
		Aliases: []string{"run"},
		Short:   "Show the last runs of hooks, the newest first",
		Long: `Shows the runs that are kept in --state-dir, whether or not a starling runs. Why one
has failed, and all of one run (-o yaml), is sealed: the key comes from the starling
that runs here, from --key-file, or for one run from the Secret of the instance. Text that
comes out of Secrets is shown as ***.`,
		Example: `  starling get runs --failed
  starling get runs ingress-nginx
  starling get runs k3f9-12 -o yaml`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, append(args, "")[0]) },
	}
	cmd.Flags().BoolVar(&f.failed, "failed", false, "those that failed alone")
	f.keys.addFlags(cmd.Flags())
	return cmd
}

// getRunsFlags are the flags of `starling get runs`.
type getRunsFlags struct {
	*getFlags
	keys   recordKeyFlags
	failed bool
}

func (f *getRunsFlags) run(cmd *cobra.Command, what string) error {
	if err := checkFormat(f.output); err != nil {
		return err
	}
	if err := f.instance.complete(podNamespaceFile); err != nil {
		return err
	}
	dir := live.RecordsDir(f.instance.StateDir)
	key, err := f.keys.nearby(cmd.Context(), &f.instance)
	if err != nil {
		return err
	}
	runs, others, err := record.List(dir, key)
	if err != nil {
		return err
	}
	if others > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: records of another version of starling that are left out: %d\n", others)
	}
	if i := slices.IndexFunc(runs, func(h record.Header) bool { return h.ID == what }); i >= 0 {
		return f.one(cmd, dir, runs[i])
	}
	found := slices.DeleteFunc(slices.Clone(runs), func(h record.Header) bool {
		return f.failed && !h.Failed() || what != "" && what != h.Module && what != h.Hook && h.Module+"/"+what != h.Hook
	})
	if what != "" && len(found) == 0 && !(f.failed && f.names(runs, what)) {
		var names []string
		for _, h := range runs {
			names = append(names, h.Module, h.Hook, h.ID)
		}
		return noRun(what, names)
	}
	if f.output != "table" {
		return f.print(cmd, listOf(found))
	}
	if len(found) == 0 && len(runs) > 0 { // so --failed was asked for
		fmt.Fprintf(cmd.ErrOrStderr(), "no run has failed of those that are recorded in %s\n", dir)
		return nil
	}
	if len(found) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "no runs are recorded in "+dir)
		return nil
	}
	return f.table(cmd, found)
}

// names says that there are runs of what is named.
func (f *getRunsFlags) names(runs []record.Header, what string) bool {
	return slices.ContainsFunc(runs, func(h record.Header) bool {
		return what == h.Module || what == h.Hook || h.Module+"/"+what == h.Hook
	})
}

func noRun(what string, names []string) error {
	return fmt.Errorf("no run %q, and none of a module or hook of that name; %s", what, message.DidYouMean(what, names, "see: starling get runs"))
}

// one shows a whole record, in a table its header.
func (f *getRunsFlags) one(cmd *cobra.Command, dir string, h record.Header) error {
	if f.output == "table" {
		return f.table(cmd, []record.Header{h})
	}
	key, err := f.keys.key(cmd.Context(), &f.instance)
	if err != nil {
		return err
	}
	r, err := record.Load(dir, h.ID, key)
	if err != nil {
		return err
	}
	dump, err := r.Dump()
	if err != nil {
		return err
	}
	return f.print(cmd, dump)
}

func (f *getRunsFlags) table(cmd *cobra.Command, runs []record.Header) error {
	o := status.Options{Color: colorful(cmd), Now: time.Now()}
	rows := [][]string{{"RUN", "HOOK", "KEY", "AGE", "TOOK", "STEPS", "RESULT", "CAUSE", "ERROR"}}
	for _, h := range runs {
		why := h.Error
		if h.AtCommit {
			why = strings.TrimSuffix("commit: "+why, ": ")
		}
		rows = append(rows, []string{h.ID, h.Hook, h.Key, o.Age(h.Started), status.Roughly(time.Duration(h.Took)), strconv.FormatUint(h.Steps, 10), h.Result, h.Cause, why})
	}
	return status.PrintTable(cmd.OutOrStdout(), rows, 6, o)
}
