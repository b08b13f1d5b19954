package inspection

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/simulation"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/sim"
)

func newExplainCommand(version string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say where values come from, and what controllers do",
		Long: `Says where values come from, and what controllers do about the children of a parent. A
builtin, such as k8s.watch, it explains as starling docs does.`,
		Example: `  starling explain values examples/quickstart hello
  starling explain k8s.watch`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if text, found := docs.Help(args[0]); found {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
					return err
				}
			}
			return command.Group(cmd, args)
		},
	}
	cmd.AddCommand(newExplainValuesCommand(version), newExplainControllerCommand(version))
	return cmd
}

type explainFlags struct {
	world  simulation.World
	target instance.Target
	output string
}

func newExplainValuesCommand(version string) *cobra.Command {
	f := &explainFlags{world: simulation.World{Version: version}}
	cmd := &cobra.Command{
		Use:   "values [TREE] MODULE [PATH]",
		Short: "Say of each value which layer gave it: file and line, or hook and run",
		Long: `Asks the starling that runs on this machine, through its local socket, of the values
of a module, or of those of the global hooks: global; with --context or --kubeconfig the
pod that leads in that cluster. With TREE it asks nobody:
the hooks of the tree run in a simulated cluster, which is empty but for --filename,
or, with --live, the real one, which is only read. There a module that nobody has
switched on or off is on.

PATH is dotted, the longest key that is there wins; or a JSON list of exact keys. One
that names a single value shows what it overrides, too. Secrets that hooks have set
are ***.`,
		Example: `  starling explain values ingress-nginx
  starling explain values ingress-nginx controller.replicas
  starling explain values examples/quickstart hello -o yaml`,
		Args: command.Takes(1, 2,
			"starling explain values takes a module, or global, and perhaps a path, as in: starling explain values hello replicas"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 2 {
				if path = args[1]; path == "" {
					return errors.New("the path is empty; leave it out to see all values")
				}
			}
			return f.run(cmd, args[0], path)
		},
	}
	f.addFlags(cmd)
	command.TreeFirst(cmd, &f.world.Modules, 1, 2)
	return cmd
}

func (f *explainFlags) addFlags(cmd *cobra.Command) {
	f.world.AddFlags(cmd.Flags(), false)
	f.world.Instance.AddStateDir(cmd.Flags())
	f.target.AddPod(cmd.Flags())
	f.target.AddDev(cmd.Flags())
	if m := cmd.Flags().Lookup("modules"); m != nil {
		m.Usage = "`folder` of the module tree to run instead of asking a running starling"
	}
	command.OutputFlag(cmd, &f.output, "`format`: table, yaml or json", "table", "yaml", "json")
}

func (f *explainFlags) run(cmd *cobra.Command, module, path string) error {
	x, err := f.ask(cmd, module)
	if err != nil {
		return err
	}
	o := values.PrintOptions{Color: command.Colorful(cmd), Process: x.Process}
	if f.world.Modules == "" && !f.target.Dev {
		o.Now = time.Now() // a simulated cluster has its own clock
	}
	if path != "" {
		found, keys, err := x.Find(path)
		if err != nil {
			return err
		}
		x.Values = found
		o.Chain = len(found) == 1 && len(found[0].Keys) <= len(keys)
		if o.Chain && len(found[0].Keys) < len(keys) {
			x.Notes = append(x.Notes, found[0].Path+" is a list, which is one value")
		}
	}
	if f.output != "table" {
		return status.Encode(cmd.OutOrStdout(), f.output, x)
	}
	command.SayNotes(cmd, x.Notes)
	if len(x.Values) == 0 {
		command.Say(cmd, "no values")
		return nil
	}
	return values.Print(cmd.OutOrStdout(), x.Values, o)
}

// ask asks the running instance or, with --modules, a simulated one.
func (f *explainFlags) ask(cmd *cobra.Command, module string) (values.Explanation, error) {
	ctx := cmd.Context()
	if f.world.Modules != "" {
		w, in, err := f.simulate(cmd, module)
		if err != nil {
			return values.Explanation{}, err
		}
		x := in.Explain()
		x.Notes = append(x.Notes, simulation.Refused(w.Status(), module)...)
		for i, note := range x.Notes { // an error may quote what a hook has read out of a Secret
			x.Notes[i] = plan.MaskText(w, note)
		}
		return x, nil
	}
	client, err := f.client(cmd)
	if err != nil {
		return values.Explanation{}, err
	}
	defer client.Close()
	x, err := client.Explain(ctx, module)
	if err != nil {
		return x, f.without(err, "values FOLDER "+module)
	}
	st, err := client.Status(ctx)
	if err == nil {
		x.Notes = append(x.Notes, instance.StandingOf(st)...)
	}
	x.Notes = append(x.Notes, simulation.Refused(st, module)...)
	return x, err
}

// client asks the running instance, in a cluster when one is named.
func (f *explainFlags) client(cmd *cobra.Command) (*admin.Client, error) {
	if w := &f.world; w.Config != "" || len(w.Files) > 0 || cmd.Flags().Changed("live") {
		return nil, errors.New("the module tree is missing: what a running starling works with cannot be chosen; give the folder of the tree, or no other flags")
	}
	f.target.Instance, f.target.Access = f.world.Instance, f.world.Access
	return f.target.Client(cmd)
}

// without adds to the error that nobody answers how a tree alone is asked.
func (f *explainFlags) without(err error, how string) error {
	if errors.Is(err, admin.ErrNotRunning) {
		return fmt.Errorf("%w; or look at a tree without it: starling explain %s", f.target.Instance.NotRunning(), how)
	}
	return err
}

// simulate has the tree work in a simulated cluster.
func (f *explainFlags) simulate(cmd *cobra.Command, module string) (w *sim.World, in values.ExplainInput, err error) {
	if f.target.Dev {
		return w, in, errors.New("--dev asks a starling dev, and with TREE nobody is asked; leave out one of the two")
	}
	ctx := cmd.Context()
	w, gen, err := f.world.Open(ctx, cmd.InOrStdin(), nil)
	if err != nil {
		return w, in, err
	}
	before, err := w.UserConfig()
	if err == nil && module != values.GlobalKey {
		err = simulation.SwitchOn(w, gen, module)
	}
	if err == nil {
		err = w.Start(ctx)
	}
	if err == nil {
		in, err = w.Explain(module)
	}
	if err != nil {
		return w, in, err
	}
	if m := gen.Modules[module]; m != nil {
		if _, set := before[values.EnabledKey(m.Key)]; !set {
			in.Switches[0].Config = nil // it is ours
		}
	}
	f.locateConfig(&in)
	return w, in, nil
}

// locateConfig has the lines of the user's config be those of the file that it is from.
func (f *explainFlags) locateConfig(in *values.ExplainInput) {
	if f.world.Config == "" {
		return
	}
	text := f.world.Text
	var kind struct{ Kind string }
	isMap := yaml.Unmarshal(text, &kind) == nil && kind.Kind == "ConfigMap"
	for _, s := range []*values.SectionSources{&in.Section, in.Global} {
		if s == nil {
			continue
		}
		s.ConfigName = f.world.Config
		if !isMap { // the section itself is in the file
			s.ConfigFile, s.ConfigText, s.ConfigKeys = f.world.Config, string(text), []string{s.Key}
		}
	}
	for i := range in.Switches {
		in.Switches[i].ConfigName = f.world.Config
	}
}
