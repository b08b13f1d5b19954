package simulation

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/sim"
)

// exitChanges is the exit code of a plan that has changes or drift.
const exitChanges = 2

type planFlags struct {
	world  World
	output string
}

func newPlanCommand(version string) *cobra.Command {
	f := &planFlags{world: World{Version: version}}
	cmd := &cobra.Command{
		Use:   "plan [TREE]",
		Short: "Show what starling run would change in the cluster, and change nothing",
		Long: `Lets the modules work in a simulated cluster that lies over the real one: what is
read comes from the cluster, what is written stays in the simulation. Hooks set off
each other until nothing is left to do; then it tells which modules are installed,
upgraded or uninstalled, which values of theirs change, and which objects, field by
field. It also tells which objects of releases others have changed or deleted, and
whether run puts them right. Nothing is written. The work of other controllers is not
part of it.

With --offline it begins with an empty cluster. --filename and --config say what is
taken to be there besides: what if?

Exit code 0: nothing would change; 2: something would, or an object is not as its
release has it; 1: the plan cannot be made, or modules fail in it.`,
		Example: `  starling plan addons
  starling plan addons --config new-config.yaml
  starling plan --modules examples/quickstart --offline -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && f.world.Modules != "" && !command.NamesTree(args[0]) {
				return fmt.Errorf("%s takes no module, got %q: all modules work together; for it alone: %[1]s %[3]s --modules-selector name=%[2]s", cmd.CommandPath(), args[0], f.world.Modules)
			}
			return command.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.world.ShowPlan(cmd, f.output) },
	}
	f.world.AddFlags(cmd.Flags(), true)
	command.OutputFlag(cmd, &f.output, "form of the output: text or json", "text", "json")
	command.TreeFirst(cmd, &f.world.Modules, 0, 0)
	return cmd
}

// ShowPlan prints a plan in this form, text or json; the error has its exit code.
func (f *World) ShowPlan(cmd *cobra.Command, output string) (err error) {
	defer func() { // else the exit code would be 2, which says something else
		if r := recover(); r != nil {
			err = fmt.Errorf("this is a bug of starling: %v; please report it with this:\n%s", r, debug.Stack())
		}
	}()
	p, err := f.Plan(cmd.Context(), cmd.InOrStdin())
	if err != nil {
		return err
	}
	return printPlan(cmd, p, output)
}

// Plan has all modules work in the world.
func (f *World) Plan(ctx context.Context, stdin io.Reader) (*plan.Plan, error) {
	w, gen, err := f.Open(ctx, stdin, nil)
	if err != nil {
		return nil, err
	}
	if f.Config != "" {
		w.Place(f.place)
	}
	p, err := plan.Make(ctx, w)
	if err == nil && f.Live && !f.offline {
		err = f.rights(ctx, p, gen, w)
	}
	return p, err
}

// rights adds to a plan what the instance's ServiceAccount lacks for the releases that it installs or upgrades, where
// it is there, and the user may ask for it.
func (f *World) rights(ctx context.Context, p *plan.Plan, gen *generation.Generation, w *sim.World) error {
	var names []string
	for _, m := range p.Modules {
		if m.Action == plan.Install || m.Action == plan.Upgrade {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	at := f.Instance
	client, err := f.Access.Connect(ctx, at.Namespace, zerolog.Nop(), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	account, err := client.Get(ctx, effect.Ref{APIVersion: "v1", Kind: "ServiceAccount", Namespace: at.Namespace, Name: at.Name})
	if account == nil || err != nil {
		return ctx.Err()
	}
	config, _ := w.UserConfig() // the plan tells why it cannot be read
	needed, err := rbac.Compute(ctx, rbac.Options{
		Tree: gen.Tree, Modules: names, Namespace: at.Namespace, Name: at.Name, Renderer: process.NewRenderer(), Config: config,
		Over: func(o *sim.Options) { o.Origin, o.Now = sim.Live(ctx, client), time.Now() },
	})
	if err != nil {
		return ctx.Err() // the plan tells of modules that do not load, and of the config
	}
	lacks, err := lackingRights(ctx, f.Access, at.Namespace, at.User(), needed)
	if err == nil && len(lacks) > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("ServiceAccount %s/%s lacks rights for %s: %s; `starling rbac` prints all that the tree needs", at.Namespace, at.Name, strings.Join(names, ", "), strings.Join(lacks, "; ")))
	}
	return ctx.Err()
}

// place names the file of --config, with the line of what stands at the path below a key of the user's config.
func (f *World) place(key, path string) string {
	at := f.Config
	if at == "-" {
		at = "stdin"
	}
	line := values.LineOf(f.Text, key, path)
	if line == 0 { // the file of a ConfigMap
		line = values.LineOf(f.Text, "data", "["+strconv.Quote(key)+"]."+path)
	}
	if line > 0 {
		at += ":" + strconv.Itoa(line)
	}
	return at
}

// printPlan writes a plan; the error is its exit code.
func printPlan(cmd *cobra.Command, p *plan.Plan, output string) error {
	var err error
	if output == "json" {
		err = status.Encode(cmd.OutOrStdout(), output, p)
	} else {
		err = p.Print(cmd.OutOrStdout(), plan.PrintOptions{Color: command.Colorful(cmd)})
	}
	switch {
	case err != nil:
		return err
	case p.Failed():
		return command.ExitCode(1)
	case p.Changes(), p.Drifted():
		return command.ExitCode(exitChanges)
	}
	return nil
}
