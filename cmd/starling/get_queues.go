package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetQueuesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "queues [MODULE]",
		Aliases: []string{"queue"},
		Short:   "Show which runs of hooks wait, for how long and why",
		Long: `Shows the queues in which runs of hooks wait for their turn: how many wait and for how
long, which hooks run, and the run that is next with what it waits for. A table leaves out
queues in which nothing waits or runs, unless it is -o wide; -o yaml has the first hundred
runs of each queue.`,
		Example: `  starling get queues
  starling get queues ingress-nginx -w`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.list(cmd, func() (*listing, error) { return flags.queues(cmd, append(args, "")[0]) })
		},
	}
}

// queues asks for the queues, those of one module, or the one of MODULE/QUEUE, unless name is empty.
func (f *getFlags) queues(cmd *cobra.Command, name string) (*listing, error) {
	client, err := f.client(cmd)
	if err != nil {
		return nil, err
	}
	queues, err := client.Queues(cmd.Context())
	if err != nil {
		return nil, f.instance.explain(err)
	}
	var names []string
	found := slices.DeleteFunc(slices.Clone(queues), func(q status.Queue) bool {
		names = append(names, q.Module)
		return name != "" && q.Module != name && queueName(q) != name
	})
	if name != "" && len(found) == 0 {
		return nil, notFound("queue", name, names)
	}
	l := newListing("queue", found, queueName)
	l.idle = func(i int) bool { return found[i].Length == 0 && len(found[i].Running) == 0 }
	l.empty = "nothing waits"
	l.notes = standing(cmd, client)
	return l, nil
}

func queueName(q status.Queue) string { return q.Module + "/" + q.Queue }
