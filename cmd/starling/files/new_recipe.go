package files

import (
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/examples/recipes"
	"github.com/starling-operator/starling/modules/scaffold"
)

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
