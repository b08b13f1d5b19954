package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/sim"
)

type rbacFlags struct {
	world          World
	makeNamespaces bool
	serviceAccount bool
	output         string
	check          bool
	as             string
}

// The forms of -o.
const (
	rbacRoles  = "roles"
	rbacValues = "values"
)

func newRBACCommand(version string) *cobra.Command {
	f := &rbacFlags{world: World{Version: version}}
	cmd := &cobra.Command{
		Use:   "rbac TREE [MODULE...]",
		Short: "Print the rights that a module tree needs, for kubectl apply",
		Long: `Prints the Roles and ClusterRoles, with their bindings, of an instance's ServiceAccount
(it has the instance's name, and --service-account prints it, too): Starling's own rights, and the least that the tree, or some
of its modules, need by their watches, grants, webhooks and crds/, and for the kinds that
their charts render. Each rule says what needs it.

Charts are rendered with the values of the tree, with those of --config, and with what
hooks find: in an empty cluster, among the objects of --filename, or, with --live, in the
kubeconfig's cluster, which is only read. Gaps stand above the roles and on
stderr. Exit code 2: rights are missing for it, or guessed.

A Role needs its namespace: the first lines name those that must be there first. With
--make-namespaces Starling may make them, and the rights of their releases, all Secrets
among them, are given for the whole cluster.

-o values prints the rights of the modules as values of the Helm chart of Starling.

--check asks the kubeconfig's cluster, with its user's right to impersonate, which of these rights the ServiceAccount
of the instance lacks, or the user of --as, and prints those, one line for each rule. Exit code 2: some are lacking.`,
		Example: `  starling rbac addons > roles.yaml && kubectl apply -f roles.yaml
  starling rbac addons --live -f expected-objects.yaml > roles.yaml
  starling rbac addons --check
  starling rbac addons --service-account | kubectl apply -f -
  starling rbac addons ingress-nginx -n infra --name addons
  starling rbac addons --make-namespaces
  starling rbac addons --live -o values > rights.yaml && helm upgrade starling deploy/chart -f rights.yaml`,
		RunE: f.run,
	}
	f.world.Instance.AddNames(cmd.Flags())
	f.world.Reading.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.world.Config, "config", "", "`file` with what the user's ConfigMap says, as in a tree's values.yaml: charts are rendered with it; - is stdin")
	cmd.Flags().StringArrayVarP(&f.world.Files, "filename", "f", nil, "`file` of objects, YAML or JSON, that are taken to be in the cluster; - is stdin")
	cmd.Flags().BoolVar(&f.world.Live, "live", false, "let hooks look for values in the kubeconfig's cluster, which is only read; --context and --kubeconfig mean this, too")
	f.world.Access.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&f.makeNamespaces, "make-namespaces", false, "let Starling make the namespaces of releases, whose rights are then for the whole cluster")
	cmd.Flags().BoolVar(&f.serviceAccount, "service-account", false, "print the ServiceAccount, too")
	command.OutputFlag(cmd, &f.output, "`form`: roles, for kubectl apply, or values, for the Helm chart of Starling", rbacRoles, rbacValues)
	cmd.Flags().BoolVar(&f.check, "check", false, "print the rights that the cluster lacks, instead of roles; hooks look for values there, too")
	cmd.Flags().StringVar(&f.as, "as", "", "`user` whose rights --check looks at (default: the instance's ServiceAccount)")
	command.TreeFlag(cmd, false)
	return cmd
}

func (f *rbacFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("the module tree is missing, such as: starling rbac addons")
	}
	if f.serviceAccount && f.output != rbacRoles {
		return errors.New("--service-account is for -o roles: the Helm chart of Starling makes the ServiceAccount itself")
	}
	if f.as != "" && !f.check {
		return errors.New("--as is for --check")
	}
	f.world.Live = f.world.Live || f.check
	if err := cmp.Or(f.world.Instance.CompleteNames(), oneStdin(f.world.Config, f.world.Files)); err != nil {
		return err
	}
	var config map[string]string
	var err error
	if f.world.Config != "" {
		if config, _, err = readConfig(f.world.Config, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	process.TameLibraries()
	klog.SetLogger(logr.Discard())
	read, err := tree.ReadDir(args[0], f.world.Reading.Options())
	if err != nil {
		return err
	}
	var objects []map[string]any
	for _, file := range f.world.Files {
		of, err := readObjects(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		objects = append(objects, of...)
	}
	var over func(*sim.Options) // none without --live
	if f.world.Live || f.world.Access != (instance.Access{}) {
		if over, err = f.world.over(cmd.Context()); err != nil {
			return err
		}
	}
	result, err := rbac.Compute(cmd.Context(), rbac.Options{
		Objects: objects, Over: over, Tree: read, Modules: args[1:], Namespace: f.world.Instance.Namespace, Name: f.world.Instance.Name, Config: config, MakeNamespaces: f.makeNamespaces,
		Renderer: process.NewRenderer(),
	})
	if err != nil {
		return err
	}
	for _, note := range result.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+note)
	}
	if f.check {
		return f.lacks(cmd, result)
	}
	result.ServiceAccount = f.serviceAccount
	write := result.Write
	if f.output == rbacValues {
		write = result.WriteValues
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if result.Incomplete {
		return command.ExitCode(exitIncomplete)
	}
	return nil
}

// lacks prints the rights that the cluster does not give.
func (f *rbacFlags) lacks(cmd *cobra.Command, needed rbac.Result) error {
	user := cmp.Or(f.as, f.world.Instance.User())
	lacks, err := lackingRights(cmd.Context(), f.world.Access, f.world.Instance.Namespace, user, needed)
	if err != nil {
		return err
	}
	if len(lacks) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%s has all rights that are known to be needed\n", user)
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "%s lacks:\n", user)
	}
	for _, line := range lacks {
		fmt.Fprintln(cmd.OutOrStdout(), "  "+line)
	}
	if len(lacks) > 0 || needed.Incomplete {
		return command.ExitCode(exitIncomplete)
	}
	return nil
}

// lackingRights asks a cluster which of some rights a user lacks.
func lackingRights(
	ctx context.Context, a instance.Access, namespace, user string, needed rbac.Result,
) ([]string, error) {
	as := a.Impersonate(user)
	client, err := as.Connect(ctx, namespace, zerolog.Nop(), nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	lacks, err := needed.Lacks(ctx, client.May)
	if err != nil {
		return nil, fmt.Errorf("the rights of %s: %w; name another user by --as, or ask as one who may impersonate it", user, err)
	}
	return lacks, nil
}

// exitIncomplete is the exit code of roles in which rights are known to be missing.
const exitIncomplete = 2
