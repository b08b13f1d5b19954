package main

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// watchEvery is how often -w asks again.
const watchEvery = time.Second

func newGetQueuesCommand(flags *getFlags) *cobra.Command {
	f := &getQueuesFlags{getFlags: flags}
	cmd := &cobra.Command{
		Use:     "queues [MODULE]",
		Aliases: []string{"queue"},
		Short:   "Show which runs of hooks wait, for how long and why",
		Long: `Shows the queues in which runs of hooks wait for their turn: how many wait and for how
long, which hooks run, and the run that is next with what it waits for. A table leaves out
queues in which nothing waits or runs; -o yaml has the first hundred runs of each queue.`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, append(args, "")[0]) },
	}
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "show them again when they change, until Ctrl-C")
	return cmd
}

// getQueuesFlags are the flags of `starling get queues`.
type getQueuesFlags struct {
	*getFlags
	watch bool
}

func (f *getQueuesFlags) run(cmd *cobra.Command, module string) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	var last []status.Queue
	for first := true; ; first = false {
		queues, err := f.look(cmd, client, module)
		if err != nil {
			return err
		}
		if first || !reflect.DeepEqual(queues, last) {
			if err := f.show(cmd, queues); err != nil {
				return err
			}
		}
		last = queues
		if !f.watch {
			return nil
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// look asks for the queues, those of one module unless it is empty.
func (f *getQueuesFlags) look(cmd *cobra.Command, client *admin.Client, module string) ([]status.Queue, error) {
	queues, err := client.Queues(cmd.Context())
	if err != nil {
		return nil, f.instance.explain(err)
	}
	var names []string
	found := slices.DeleteFunc(slices.Clone(queues), func(q status.Queue) bool {
		names = append(names, q.Module)
		return module != "" && q.Module != module
	})
	if module != "" && len(found) == 0 {
		return nil, notFound("queue", module, names)
	}
	if f.output == "table" {
		found = slices.DeleteFunc(found, func(q status.Queue) bool { return q.Length == 0 && len(q.Running) == 0 })
	}
	return found, nil
}

func (f *getQueuesFlags) show(cmd *cobra.Command, queues []status.Queue) error {
	if f.output == "table" && len(queues) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing waits")
		return nil
	}
	return f.print(cmd, listOf(queues))
}
