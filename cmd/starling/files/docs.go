package files

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/stdlib"
)

func newDocsCommand() *cobra.Command {
	var stubs string
	cmd := &cobra.Command{
		Use:   "docs [NAME]",
		Short: "Tell about a builtin, a function of the library or ctx, print the whole reference, or write stubs for editors",
		Long: `Tells about one builtin, a family of builtins, ctx or a field of ctx, a function or a file of
the standard library. Without NAME it prints the reference of all of them, as Markdown.

With --stubs it writes stub files in the syntax of Python instead, which language
servers for Starlark read to complete and explain names: the builtins to
FOLDER/builtins, one file a namespace, the standard library to FOLDER/std. For
starlark-lsp: --builtin-paths FOLDER/builtins.`,
		Example: `  starling docs k8s.watch
  starling docs ctx
  starling docs ctx.events
  starling docs ensure
  starling docs > reference.md
  starling docs --stubs .starling`,
		Args: command.AtMostOneName,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return docsNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("stubs") && len(args) > 0:
				return fmt.Errorf("docs: --stubs writes all stubs; leave %q out", args[0])
			case cmd.Flags().Changed("stubs"):
				return writeStubs(cmd, stubs)
			case len(args) == 1:
				for _, help := range []func(string) (string, bool){docs.Help, stdlib.Help, paramHelp} {
					if text, found := help(args[0]); found {
						_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
						return err
					}
				}
				return fmt.Errorf("docs: there is nothing of the name %q; %s", args[0], meantInDocs(args[0]))
			}
			if err := docs.WriteReference(cmd.OutOrStdout()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return stdlib.WriteReference(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&stubs, "stubs", "", "write editor stubs below this `folder`, over those that are there")
	return cmd
}

// calledElsewhere are names of Helm's templates and of Python, and what there is here.
var calledElsewhere = map[string]string{
	"b64decode": "it is base64.decode", "b64encode": "it is base64.encode", "b64dec": "it is base64.decode", "b64enc": "it is base64.encode",
	"toyaml": "it is yaml.encode", "fromyaml": "it is yaml.decode", "tojson": "it is json.encode", "fromjson": "it is json.decode",
	"lookup":   "it is k8s.get or k8s.list",
	"helm":     "a module has a chart: starling docs module; hooks before and after its release: starling docs before_helm, after_helm",
	"chart":    "a module has a chart: starling docs module",
	"f-string": "Starlark has none: \"%s\" % name, or \"{}\".format(name)", "fstring": "Starlark has none: \"%s\" % name, or \"{}\".format(name)",
}

// meantInDocs is a hint for a name that nothing has: a member of a family, or a parameter, may have it.
func meantInDocs(name string) string {
	if is := calledElsewhere[strings.ToLower(name)]; is != "" {
		return is
	}
	var members, of []string
	for _, s := range builtins.Table() {
		if strings.HasSuffix(s.Name, "."+name) {
			members = append(members, s.Name)
		}
		if slices.ContainsFunc(s.Params, func(p spec.Param) bool { return p.Name == name }) {
			of = append(of, s.Name+"."+name)
		}
	}
	switch {
	case len(members) > 0:
		return "did you mean " + strings.Join(members, ", ") + "?"
	case len(of) > 0:
		return "a parameter has it: starling docs " + strings.Join(of[:min(len(of), 5)], ", ")
	}
	return message.DidYouMean(name, docsNames(), "starling docs without a name prints all")
}

// paramHelp tells about a parameter: hook.for_each.
func paramHelp(name string) (text string, found bool) {
	at := max(strings.LastIndex(name, "."), 0)
	for _, spec := range docs.Documented() {
		for _, p := range spec.Params {
			if spec.Name+"."+p.Name == name {
				text, found = fmt.Sprintf("%s of %s(…): %s\n\n%s\n\nAll of it: starling docs %[2]s", p.Name, name[:at], p.Type, message.Paragraph(p.Doc)), true
			}
		}
	}
	return text, found
}

// docsNames are all names that the command knows, but for those of families.
func docsNames() []string { return append(docs.HelpNames(), stdlib.HelpNames()...) }

// writeStubs writes all stubs below dir and prints the names of the two folders.
func writeStubs(cmd *cobra.Command, dir string) error {
	std, err := stdlib.Stubs()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		files map[string]string
	}{{"builtins", docs.Stubs()}, {"std", std}} {
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
