package main

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/starling-operator/starling/modules/rbac"
	"github.com/starling-operator/starling/modules/tree"
)

type rbacFlags struct {
	instance        instance
	config          string
	namespacesExist bool
}

func newRBACCommand() *cobra.Command {
	f := &rbacFlags{}
	cmd := &cobra.Command{
		Use:   "rbac TREE [MODULE...]",
		Short: "Print the rights that a module tree needs, for kubectl apply",
		Long: `Prints the Roles and ClusterRoles, with their bindings, of an instance's ServiceAccount
(it has the instance's name): Starling's own rights, and the least that the tree, or some
of its modules, need by their watches, grants, webhooks and crds/, and for the kinds that
their charts render. Each rule says what needs it. No cluster is asked.

Namespaces of releases may not be there yet, and a Role needs one: the rights of such
releases are given for the whole cluster. With --namespaces-exist they are Roles.`,
		Example: `  starling rbac addons | kubectl apply -f -
  starling rbac addons ingress-nginx -n infra --name addons --namespaces-exist`,
		RunE: f.run,
	}
	f.instance.addNames(cmd.Flags())
	cmd.Flags().StringVar(&f.config, "config", "", "`file` with what the user's ConfigMap says, as in a tree's values.yaml: charts are rendered with it")
	cmd.Flags().BoolVar(&f.namespacesExist, "namespaces-exist", false, "the namespaces of releases are there: Roles in them, and no right to make namespaces")
	return cmd
}

func (f *rbacFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("the module tree is missing, such as: starling rbac addons")
	}
	if err := f.instance.completeNames(podNamespaceFile); err != nil {
		return err
	}
	config, err := f.data()
	if err != nil {
		return err
	}
	tameLibraries()
	klog.SetLogger(logr.Discard())
	read, err := tree.ReadDir(args[0], tree.Options{})
	if err != nil {
		return err
	}
	result, err := rbac.Compute(cmd.Context(), rbac.Options{
		Tree: read, Modules: args[1:], Namespace: f.instance.Namespace, Name: f.instance.Name, Config: config, NamespacesExist: f.namespacesExist,
		Renderer: newRenderer(),
	})
	if err != nil {
		return err
	}
	return result.Write(cmd.OutOrStdout())
}

// data reads the file of --config; nil without the flag.
func (f *rbacFlags) data() (map[string]string, error) {
	if f.config == "" {
		return nil, nil
	}
	text, err := readInput(f.config, nil)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	config, err := configData(text)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", f.config, err)
	}
	return config, nil
}
