package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/stdlib"
)

func newDocsCommand() *cobra.Command {
	var stubs string
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Print the reference of what hooks can call, or write stubs for editors",
		Long: `Prints the reference of all builtins and of the standard library, as Markdown.

With --stubs it writes stub files in the syntax of Python instead, which language
servers for Starlark read to complete and explain names: the builtins to
FOLDER/builtins, one file a namespace, the standard library to FOLDER/std. For
starlark-lsp: --builtin-paths FOLDER/builtins.`,
		Example: `  starling docs
  starling docs --stubs .starling`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("stubs") {
				return writeStubs(cmd, stubs)
			}
			if err := builtins.WriteReference(cmd.OutOrStdout()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return stdlib.WriteReference(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&stubs, "stubs", "", "write editor stubs below this `folder`, over those that are there")
	return cmd
}

// writeStubs writes all stubs below dir and prints the names of the two folders.
func writeStubs(cmd *cobra.Command, dir string) error {
	std, err := stdlib.Stubs()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		files map[string]string
	}{{"builtins", builtins.Stubs()}, {"std", std}} {
		folder := filepath.Join(dir, part.name)
		for _, name := range slices.Sorted(maps.Keys(part.files)) {
			path := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return fmt.Errorf("cannot write the stubs: %w", err)
			}
			if err := os.WriteFile(path, []byte(part.files[name]), 0o644); err != nil {
				return fmt.Errorf("cannot write the stubs: %w", err)
			}
		}
		fmt.Fprintln(cmd.OutOrStdout(), folder)
	}
	return nil
}
