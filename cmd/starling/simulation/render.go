package simulation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/plan"
)

type renderFlags struct {
	world   World
	secrets bool
}

func newRenderCommand(version string) *cobra.Command {
	f := &renderFlags{world: World{Version: version}}
	cmd := &cobra.Command{
		Use:   "render [TREE] MODULE",
		Short: "Print the manifests of a module, with the values that its hooks find",
		Long: `Lets the modules work in a simulated cluster and prints what the chart of one of
them renders to there. A module that nobody has switched on or off is on. The
cluster is empty but for --filename, or, with --live, the real one, which is only
read. The data of Secrets is masked unless --show-secrets is given.`,
		Example: `  starling render examples/quickstart hello
  starling render hello --modules examples/quickstart -f nodes.yaml --config config.yaml
  starling render ingress-nginx --modules addons --live`,
		Args: command.Takes(1, 1,
			"starling render takes the name of one module, as in: starling render examples/quickstart hello"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.world.AddFlags(cmd.Flags(), false)
	cmd.Flags().BoolVar(&f.secrets, "show-secrets", false, "print what Secrets hold, too")
	command.TreeFirst(cmd, &f.world.Modules, 1, 1)
	return cmd
}

func (f *renderFlags) run(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	if f.world.Modules == "" {
		return command.NoTree(cmd.CommandPath(), name)
	}
	w, gen, err := f.world.Open(ctx, cmd.InOrStdin(), nil)
	if err != nil {
		return err
	}
	m := gen.Modules[name]
	if m == nil {
		return noModule(gen, name)
	}
	if m.Tree.Chart == nil && m.Err == nil {
		return fmt.Errorf("module %s has no chart", name)
	}
	if err := SwitchOn(w, gen, name); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	var st status.Module
	for _, s := range w.Status().Modules {
		if s.Name == name {
			st = s
		}
	}
	if !st.Released {
		return fmt.Errorf("module %s does not render: it is %s: %s", name, st.State, plan.MaskText(w, cmp.Or(st.LastError, st.Reason, "no reason is known")))
	}
	if vain := slices.Concat(st.Config.Refused, st.Config.Unused); f.world.Config != "" && len(vain) > 0 {
		return fmt.Errorf("module %s: %s", name, vain[0]) // what was asked for cannot be shown
	}
	command.SayNotes(cmd, Refused(w.Status(), name))
	r, err := w.ModuleRelease(ctx, name)
	if err != nil {
		return err
	}
	text := strings.TrimLeft(r.Manifest, "\n")
	if !f.secrets {
		if text, err = plan.MaskManifest(w, r); err != nil {
			return err
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}
