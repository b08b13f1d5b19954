package inspection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/simulation"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/plan"
)

func newExplainControllerCommand(version string) *cobra.Command {
	f := &explainFlags{world: simulation.World{Version: version}}
	cmd := &cobra.Command{
		Use:   "controller [TREE] MODULE KEY",
		Short: "Say what controllers do about the children of a parent, and why",
		Long: `Asks the starling that runs on this machine, through its local socket, what the controllers
of a module have decided when they looked last at a parent: what is done about its
children, for what the rest waits, where desired has looked beside the children (a change
there has it look again), and when it looks again by itself. With TREE it asks nobody: the controllers of
the tree run in a simulated cluster, as those of starling explain values.

KEY is NAMESPACE/NAME, or the name of a cluster-scoped parent. MODULE/NAME is one controller
of the module.`,
		Example: `  starling explain controller apps shop/blog
  starling explain controller examples/application apps default/blog -f examples/application/apps/examples/blog.yaml`,
		Args: command.Takes(2, 2,
			"starling explain controller takes a module and the key of a parent, as in: starling explain controller apps shop/blog"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.controller(cmd, args[0], args[1]) },
	}
	f.addFlags(cmd)
	command.TreeFirst(cmd, &f.world.Modules, 2, 2)
	return cmd
}

func (f *explainFlags) controller(cmd *cobra.Command, name, key string) error {
	module, _, one := strings.Cut(name, "/") // as starling get hooks names a controller
	parents, err := f.parents(cmd, module, key)
	if err != nil {
		return err
	}
	if one {
		var names []string
		parents = slices.DeleteFunc(parents, func(p status.Parent) bool {
			names = append(names, p.Controller)
			return p.Controller != name
		})
		if len(parents) == 0 {
			return fmt.Errorf("controller %s has no parent %q; %s has it", name, key, strings.Join(names, ", "))
		}
	}
	if f.output != "table" {
		return status.Encode(cmd.OutOrStdout(), f.output, parents)
	}
	for _, p := range parents {
		if p.Failure != "" {
			command.Say(cmd, "controller %s has failed: %s", p.Controller, p.Failure)
		}
		switch {
		case len(p.Actions) > 0:
			command.Say(cmd, "controller %s:", p.Controller)
			if err := status.PrintActions(cmd.OutOrStdout(), p.Actions, status.Options{}); err != nil {
				return err
			}
		case p.Waits != "":
			command.Say(cmd, "controller %s: %s", p.Controller, p.Waits)
		case p.Failure == "":
			command.Say(cmd, "controller %s: nothing is left to be done", p.Controller)
		}
		for _, at := range p.Looked {
			command.Say(cmd, "  has looked at %s", at)
		}
		if p.ObservedAt != nil {
			text, err := json.Marshal(p.Observed)
			if err != nil {
				return err
			}
			at := p.ObservedAt.UTC().Format(time.RFC3339)
			command.Say(cmd, "  has observed at %s: %s", at, message.Fit(string(text), 1024))
		}
		if p.Next != nil {
			command.Say(cmd, "  looks again at %s", p.Next.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// parents asks the running instance or, with --modules, a simulated one.
func (f *explainFlags) parents(cmd *cobra.Command, module, key string) ([]status.Parent, error) {
	if f.world.Modules == "" {
		client, err := f.client(cmd)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		command.SayNotes(cmd, instance.Standing(cmd, client))
		parents, err := client.Parents(cmd.Context(), module, key)
		return parents, f.without(err, "controller FOLDER "+module+" "+key)
	}
	w, _, err := f.simulate(cmd, module)
	if err != nil {
		return nil, err
	}
	parents, err := w.Parents(module, key)
	if err != nil && len(f.world.Files) == 0 {
		err = fmt.Errorf("%w; the simulated cluster is empty: give the parent, and all else that the controller sees, with -f FILE", err)
	}
	for i := range parents { // errors may quote what a hook has read out of a Secret
		p := &parents[i]
		p.Failure, p.Waits = plan.MaskText(w, p.Failure), plan.MaskText(w, p.Waits)
		for j, at := range p.Looked {
			p.Looked[j] = plan.MaskText(w, at)
		}
	}
	return parents, err
}
