package inspection

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// logsFlags are the flags of `starling logs`.
type logsFlags struct {
	target instance.Target
	follow bool
	tail   int
	output string
}

func newLogsCommand() *cobra.Command {
	f := &logsFlags{}
	cmd := &cobra.Command{
		Use:   "logs [MODULE]",
		Short: "Show the last lines of the log of a starling that runs",
		Long: `Asks the starling that runs on this machine, through its local socket, for the last
lines of its log: those of one module ("global": of the global hooks), or all of them. They
are the lines that went to its stderr, kept in memory, 4 MiB together: when there are
more, the module with the most loses its oldest ones.

With --context or --kubeconfig it asks all pods of the instance; each line has its pod.`,
		Example: `  starling logs ingress-nginx
  starling logs -f
  starling logs ingress-nginx --tail 20 -o json`,
		Args: command.AtMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.run(cmd, append(args, "")[0])
			if lines, number := strconv.Atoi(f.target.Instance.Namespace); err != nil && number == nil {
				err = fmt.Errorf("%w; -n is the namespace; for lines: --tail %d", err, lines)
			}
			return err
		},
	}
	f.target.AddFlags(cmd.Flags())
	f.target.AddDev(cmd.Flags())
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with the lines that come, until Ctrl-C")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "`lines` at most of those that are kept; -1: all")
	command.OutputFlag(cmd, &f.output, "`format`: text, or json, a line each", "text", "json")
	return cmd
}

func (f *logsFlags) run(cmd *cobra.Command, module string) error {
	client, err := f.target.Client(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := f.known(cmd.Context(), client, module); err != nil {
		return f.target.Instance.Explain(err)
	}
	o := admin.LogsOptions{Module: module, Tail: f.tail, Follow: f.follow}
	return f.target.Logs(cmd, client, o, f.printer(cmd.OutOrStdout()))
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
	_, err = findModules(append([]status.Module{{Name: "global"}}, st.Modules...), []string{module})
	return err
}

// printer writes lines in the form that -o asks for.
func (f *logsFlags) printer(out io.Writer) func(line []byte) error {
	if f.output == "text" {
		out = process.ConsoleWriter(out, process.IsTerminal(out))
	}
	return func(line []byte) error {
		_, err := out.Write(append(line, '\n'))
		return err
	}
}
