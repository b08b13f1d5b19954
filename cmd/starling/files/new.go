package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/examples/recipes"
	"github.com/starling-operator/starling/modules/scaffold"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

func newNewCommand() *cobra.Command {
	var modules string
	from := &newFrom{}
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Write the first files of a module, of a controller, of a hook or of a test, copy a recipe, or bring an old tree over",
		Long: `Writes the first files of a module, of a controller, of a hook or of a test, or copies a
recipe: a small module for a common problem.

With --from-addon-operator or --from-shell-operator it writes a module tree out of an old
one: bindings, values, schemas, CRDs and charts are translated, bodies of hooks become TODO
comments. No file of the old tree is run or changed; charts are rendered, as starling check
does it. The new folder must be empty, or not there. All that is not brought over is
printed, and MIGRATION.md in the new folder has it, too.

With --from-flux it writes a module for each HelmRelease of a file, with its chart, values,
namespace and requirements. The HelmRepositories and OCIRepositories of the charts stand in
the same file. Fields without a counterpart are named with their lines.`,
		Example: `  starling new module addons web
  starling new --from-addon-operator old/modules --global-hooks old/global-hooks --modules addons
  starling new --from-shell-operator old/hooks --name housekeeping --modules addons
  starling new --from-flux clusters/north/web.yaml --modules addons`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return from.run(cmd, args, modules) },
	}
	from.flags(cmd)
	cmd.PersistentFlags().StringVar(&modules, "modules", ".", "`folder` with all modules")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return command.OneFolder(modules) }
	noChart := false
	module := &cobra.Command{
		Use:   "module [TREE] NAME",
		Short: "Write a module: chart, values, schemas and a hook",
		Long: `Writes a new module to a folder of its name: module.star, a chart, values, schemas
and a hook with its test, ready to run. With --no-chart there are module.star, a hook and its
test. Nothing is overwritten. The names of the files are printed. NAME may have a weight:
020-web.`,
		Example: `  starling new module addons web
  starling new module addons labels --no-chart`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := scaffold.Module
			if noChart {
				write = scaffold.ModuleWithoutChart
			}
			made, err := write(modules, args[0])
			return named(cmd, made, err)
		},
	}
	module.Flags().BoolVar(&noChart, "no-chart", false, "a module of hooks alone, without chart, values and schemas")
	cmd.AddCommand(module, &cobra.Command{
		Use:   "controller [TREE] NAME",
		Short: "Write a module with a kind and a controller for it",
		Long: `Writes a new module to a folder of its name: module.star, which declares a kind of that
name, a controller that makes a Deployment and a Service for each object, its test and an
example object. Nothing is overwritten. The names of the files are printed. NAME may have a
weight: 020-web-app.`,
		Example: "  starling new controller addons web-app",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := scaffold.Controller(modules, args[0])
			return named(cmd, made, err)
		},
	}, &cobra.Command{
		Use:   "hook [TREE] MODULE NAME",
		Short: "Write a hook of a module, or of global",
		Long: `Writes a file with a new hook to the hooks of a module, or, when MODULE is global,
to the global hooks. Nothing is overwritten. The name of the file is printed.`,
		Example: "  starling new hook addons web count-pods",
		Args:    exactly("MODULE", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := nameNotFolder(cmd, args); err != nil {
				return err
			}
			path, err := scaffold.Hook(modules, args[0], args[1])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		},
	}, newNewTestCommand(&modules))
	cmd.AddCommand(newNewRecipeCommand(&modules))
	for _, sub := range cmd.Commands() {
		if sub.Name() == "test" { // which names less with --from-run
			continue
		}
		names := strings.Count(sub.Use, " ") - 1 // without the tree
		command.TreeFirst(sub, &modules, names, names)
	}
	return cmd
}

// named prints the names of the files that were made, also those before an error.
func named(cmd *cobra.Command, made []string, err error) error {
	for _, path := range made {
		fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}

// nameNotFolder refuses the folder of a module in the place of its name, with the call that was meant.
func nameNotFolder(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !strings.ContainsRune(args[0], filepath.Separator) || !tree.IsModule(args[0]) {
		return nil
	}
	_, module, _ := tree.ParseFolder(filepath.Base(args[0]))
	return fmt.Errorf("%s is the folder of a module; name the tree and the module: %s %s %s", args[0], cmd.CommandPath(), filepath.Dir(filepath.Clean(args[0])), strings.Join(append([]string{module}, args[1:]...), " "))
}

// exactly refuses all but these arguments, with the way out.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s takes %s, got %s, as in: %s", cmd.CommandPath(), strings.Join(names, " and "), message.Count(len(args), "argument"), firstExample(cmd))
		}
		return nil
	}
}

// firstExample is the first line of those of a command.
func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return line
}

// newNewRecipeCommand is `starling new recipe`, which writes below the folder that modules names as it runs.
func newNewRecipeCommand(modules *string) *cobra.Command {
	list := "Recipes, docs/recipes.md has their code:\n"
	for _, name := range recipes.Names() {
		list += "  " + name + "\n"
	}
	return &cobra.Command{
		Use:   "recipe [TREE] NAME",
		Short: "Copy a small module that solves a common problem, with its test",
		Long: `Copies a recipe to a folder of its name: a small module that solves a problem which comes
again and again, with its test. Nothing is overwritten. The names of the files are printed.

` + list,
		Example:   "  starling new recipe addons copy-a-secret",
		Args:      exactly("NAME"),
		ValidArgs: recipes.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := scaffold.Recipe(*modules, args[0])
			return named(cmd, made, err)
		},
	}
}
