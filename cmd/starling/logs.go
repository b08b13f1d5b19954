package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/replicas"
)

// logsFlags are the flags of `starling logs`.
type logsFlags struct {
	target target
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
			if lines, number := strconv.Atoi(f.target.instance.Namespace); err != nil && number == nil {
				err = fmt.Errorf("%w; -n is the namespace; for lines: --tail %d", err, lines)
			}
			return err
		},
	}
	f.target.addFlags(cmd.Flags())
	f.target.addDev(cmd.Flags())
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with the lines that come, until Ctrl-C")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "`lines` at most of those that are kept; -1: all")
	command.OutputFlag(cmd, &f.output, "`format`: text, or json, a line each", "text", "json")
	return cmd
}

func (f *logsFlags) run(cmd *cobra.Command, module string) error {
	client, err := f.target.client(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := f.known(cmd.Context(), client, module); err != nil {
		return f.target.instance.explain(err)
	}
	o := admin.LogsOptions{Module: module, Tail: f.tail, Follow: f.follow}
	if f.target.remote() && f.target.pod == "" {
		return f.ofPods(cmd, o)
	}
	return f.target.instance.explain(client.Logs(cmd.Context(), o, f.printer(cmd.OutOrStdout())))
}

// ofPods shows the lines of all pods, in the order of their times; with --follow in that in which they come.
func (f *logsFlags) ofPods(cmd *cobra.Command, o admin.LogsOptions) error {
	pods, err := f.target.pods(cmd.Context())
	if err != nil {
		return err
	}
	print := f.printer(cmd.OutOrStdout())
	if !o.Follow {
		var lists [][]podLine
		err := f.target.each(cmd, pods, func(p replicas.Pod, client *admin.Client) error {
			var lines []podLine
			err := client.Logs(cmd.Context(), o, func(line []byte) error {
				lines = append(lines, newPodLine(p.Name, line))
				return nil
			})
			lists = append(lists, lines)
			return err
		})
		all := sorted(lists, func(a, b podLine) int { return a.at.Compare(b.at) })
		if o.Tail >= 0 && len(all) > o.Tail {
			all = all[len(all)-o.Tail:]
		}
		for _, line := range all {
			err = cmp.Or(err, print(line.text))
		}
		return err
	}
	// A pod that goes, as each does in a rollout, ends its own part.
	var printing sync.Mutex
	failed := make([]error, len(pods))
	var following sync.WaitGroup
	for i, p := range pods {
		following.Go(func() {
			client := f.target.dial(p)
			defer client.Close()
			failed[i] = client.Logs(cmd.Context(), o, func(line []byte) error {
				printing.Lock()
				defer printing.Unlock()
				return print(newPodLine(p.Name, line).text)
			})
			if failed[i] != nil && cmd.Context().Err() == nil {
				printing.Lock()
				defer printing.Unlock()
				command.Say(cmd, "note: %v", failed[i])
			}
		})
	}
	following.Wait()
	if slices.Contains(failed, nil) || cmd.Context().Err() != nil { // Ctrl-C ends it well
		return nil
	}
	return errors.New("no pod answers")
}

// podLine is a line of the log of a pod.
type podLine struct {
	at   time.Time
	text []byte
}

// newPodLine adds the name of the pod to a line of JSON.
func newPodLine(pod string, line []byte) podLine {
	var when struct{ Time time.Time }
	_ = json.Unmarshal(line, &when) // a line without a time comes first
	return podLine{when.Time, append(fmt.Appendf(nil, `{"pod":%q,`, pod), bytes.TrimPrefix(line, []byte("{"))...)}
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
