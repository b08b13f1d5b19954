package files

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/fetch"
	"github.com/starling-operator/starling/runtime/message"
)

func newFetchCommand() *cobra.Command {
	var o fetch.Options
	cmd := &cobra.Command{
		Use:   "fetch [TREE] [MODULE...]",
		Short: "Get the charts that modules name, and those that charts depend on",
		Long: `Gets the charts that module(chart=) names, from chart repositories (https://, http://) and
registries (oci://). It notes them in starling.lock, in the folder of the tree, and keeps their
archives in .starling/charts there: the other commands read those, and need no network.

Then it looks at the dependencies in Chart.yaml of the other modules, and gets those that charts/
lacks, as helm dependency build does: in the versions of Chart.lock, from the same places and, in
the tree, file://.

An entry of a lock that fits counts; else, and with --update, the newest version that fits is
chosen, and the lock is written. Logins are those of helm registry login and of Docker. It prints a
line for each module that it has changed; a module with an error stays as it is.`,
		Example: `  starling fetch addons
  starling fetch addons --update web`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.OneFolder(o.Dir); err != nil {
				return err
			}
			o.Modules = args
			process.TameLibraries() // Helm tells of entries of an index that it skips
			results, err := fetch.Tree(cmd.Context(), o)
			failed := 0
			for _, r := range results {
				if r.Err != nil {
					failed++
					fmt.Fprintln(cmd.ErrOrStderr(), message.Line(r.Err.Error()))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.Module, strings.Join(fetched(r), "; "))
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("charts of %s were not fetched", message.Count(failed, "module"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Dir, "modules", ".", "`folder` with all modules")
	command.LinksFlag(cmd.Flags(), &o.FollowLinks)
	cmd.Flags().BoolVar(&o.Update, "update", false, "choose the newest versions that module() and Chart.yaml allow, whatever the locks name")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "how long the charts of one module may take")
	command.TreeFirst(cmd, &o.Dir, 0, -1)
	return cmd
}

// fetched says what was done for a module.
func fetched(r fetch.Result) []string {
	var done []string
	if len(r.Fetched) > 0 {
		done = append(done, "fetched "+strings.Join(r.Fetched, ", "))
	}
	if len(r.Removed) > 0 {
		done = append(done, "removed "+strings.Join(r.Removed, ", "))
	}
	if r.Lock != "" {
		done = append(done, "wrote "+r.Lock)
	}
	return done
}
