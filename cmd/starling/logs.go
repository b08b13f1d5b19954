package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/logs"
)

// logsFlags are the flags of `starling logs`.
type logsFlags struct {
	instance instance
	follow   bool
	tail     int
	output   string
}

func newLogsCommand() *cobra.Command {
	f := &logsFlags{}
	cmd := &cobra.Command{
		Use:   "logs [MODULE]",
		Short: "Show the last lines of the log of a starling that runs",
		Long: `Asks the starling that runs on this machine, through its local socket, for the last
lines of its log: those of one module ("global": of the global hooks), or all of them. They
are the lines that went to its stderr, kept in memory, 4 MiB together: when there are
more, the module with the most loses its oldest ones.`,
		Example: `  starling logs ingress-nginx
  starling logs -f
  starling logs ingress-nginx --tail 20 -o json`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, append(args, "")[0]) },
	}
	f.instance.addFlags(cmd.Flags())
	f.addFlags(cmd.Flags())
	return cmd
}

func (f *logsFlags) addFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.follow, "follow", "f", false, "go on with the lines that come, until Ctrl-C")
	fs.IntVar(&f.tail, "tail", -1, "`lines` at most of those that are kept; -1: all")
	fs.StringVarP(&f.output, "output", "o", "text", "`format`: text, or json, a line each")
}

func (f *logsFlags) run(cmd *cobra.Command, module string) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output %q is not known; use text or json", f.output)
	}
	if err := f.instance.complete(podNamespaceFile); err != nil {
		return err
	}
	client := admin.NewClient(admin.ClientOptions{Socket: f.instance.socket()})
	if err := f.known(cmd.Context(), client, module); err != nil {
		return f.instance.explain(err)
	}
	err := client.Logs(cmd.Context(), admin.LogsOptions{Module: module, Tail: f.tail, Follow: f.follow}, f.printer(cmd.OutOrStdout()))
	return f.instance.explain(err)
}

// known refuses a module that is not there: nobody waits for lines that cannot come.
func (f *logsFlags) known(ctx context.Context, client *admin.Client, module string) error {
	if module == "" {
		return nil
	}
	st, err := client.Status(ctx)
	if err != nil {
		return err
	}
	names := []string{"global"}
	for _, m := range st.Modules {
		names = append(names, m.Name)
	}
	if !slices.Contains(names, module) {
		return notFound("module", module, names)
	}
	return nil
}

// printer writes lines in the form that -o asks for.
func (f *logsFlags) printer(out io.Writer) func(line []byte) error {
	if f.output == "text" {
		file, ok := out.(*os.File)
		out = consoleWriter(out, ok && term.IsTerminal(int(file.Fd())))
	}
	return func(line []byte) error {
		_, err := out.Write(append(line, '\n'))
		return err
	}
}

// linesOf is what the admin API asks for.
func linesOf(kept *logs.Buffer) func(ctx context.Context, module string, tail int, follow bool) iter.Seq[[]byte] {
	return func(ctx context.Context, module string, tail int, follow bool) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) {
			for line := range kept.Lines(ctx, module, tail, follow) {
				if !yield(line.JSON) {
					return
				}
			}
		}
	}
}
