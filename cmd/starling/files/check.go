package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

type checkFlags struct {
	output  string
	strict  bool
	openapi string
	reading command.Reading
}

// maxOpenAPI bounds the file of --openapi; that of a large cluster has 10 MiB.
const maxOpenAPI = 256 << 20

func newCheckCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [TREE...]",
		Short: "Look at module trees without a cluster, and tell all that is wrong",
		Long: `Loads each module tree (the default is the current folder; a:b is one tree in the
folders a and b) as starling run does,
and tells all errors at once, with their lines: what does not load, kinds and values
that there are not, hooks that set the same value, charts that do not render,
comparisons that are always False, loads that nobody uses. Nothing is written and no
cluster is asked.

Errors make the exit code 1; warnings do with --strict; notes never do.`,
		Example: `  starling check addons
  starling check --strict -o json addons`,
		RunE: f.run,
	}
	command.OutputFlag(cmd, &f.output, "form of the output: text or json", "text", "json")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "count warnings as errors")
	f.reading.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.openapi, "openapi", "", "`file` with what a cluster serves, from kubectl get --raw /openapi/v2: kinds are looked up there")
	command.TreeFlag(cmd, false)
	return cmd
}

// served reads the file of --openapi; nil without the flag.
func (f *checkFlags) served() ([]byte, error) {
	if f.openapi == "" {
		return nil, nil
	}
	file, err := os.Open(f.openapi)
	if err != nil {
		return nil, fmt.Errorf("--openapi: cannot %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxOpenAPI+1))
	if err == nil && len(data) > maxOpenAPI {
		err = fmt.Errorf("%s is larger than %d MiB", f.openapi, maxOpenAPI>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("--openapi: %w", err)
	}
	if data, err = bounded.Text(data); err != nil { // as > of PowerShell writes it
		return nil, fmt.Errorf("--openapi: %s %w", f.openapi, err)
	}
	return data, nil
}

// treeFinding is a finding as -o json shows it: with the tree that it is in.
type treeFinding struct {
	Tree string `json:"tree"`
	check.Finding
}

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	served, err := f.served()
	if err != nil {
		return err
	}
	process.TameLibraries()
	all := []treeFinding{}
	var errors, warnings int
	renderer := process.NewRenderer()
	for _, dir := range args {
		read, err := tree.ReadDir(dir, f.reading.Options())
		if err != nil && tree.IsModule(dir) {
			strict := ""
			if f.strict {
				strict = " --strict"
			}
			_, module, _ := tree.ParseFolder(filepath.Base(filepath.Clean(dir)))
			return fmt.Errorf("%w: %s%s %s; for it alone: --modules-selector name=%s", err, cmd.CommandPath(), strict, filepath.Dir(filepath.Clean(dir)), module)
		}
		if err != nil {
			return command.WithNearFolder(dir, err)
		}
		result, err := check.Run(cmd.Context(), check.Options{Tree: read, OpenAPI: served, Renderer: renderer})
		if err != nil {
			return fmt.Errorf("--openapi: %s %w", f.openapi, err)
		}
		if err := cmd.Context().Err(); err != nil {
			return fmt.Errorf("stopped while checking %s", dir)
		}
		errors += result.Count(check.Error)
		warnings += result.Count(check.Warning)
		for _, finding := range result.Findings {
			all = append(all, treeFinding{dir, finding})
		}
		if f.output == "text" {
			f.print(cmd, dir, read, result)
		}
	}
	if f.output == "json" {
		if err := status.Encode(cmd.OutOrStdout(), "json", all); err != nil {
			return err
		}
	}
	if errors > 0 || f.strict && warnings > 0 {
		return fmt.Errorf("%s, %s", message.Count(errors, "error"), message.Count(warnings, "warning"))
	}
	return nil
}

// print writes the findings of one tree, and one line about it.
func (f *checkFlags) print(cmd *cobra.Command, dir string, t *tree.Tree, r check.Result) {
	// Paths of the tree as they are from here, so that an editor finds them.
	name := func(path string) string {
		if _, err := fs.Stat(t.Files, path); err != nil || dir == "." {
			return path
		}
		from, err := filepath.Rel(".", filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil || strings.HasPrefix(from, ".."+string(os.PathSeparator)) {
			return filepath.Join(dir, filepath.FromSlash(path))
		}
		return from
	}
	out := cmd.OutOrStdout()
	for _, finding := range r.Findings {
		fmt.Fprintln(out, message.Lines(strings.TrimSuffix(finding.Render(name), "\n")))
	}
	state := "ok"
	if n, w := r.Count(check.Error), r.Count(check.Warning); n+w > 0 {
		state = message.Count(n, "error") + ", " + message.Count(w, "warning")
	}
	fmt.Fprintf(out, "%s: %s (%s, %s)\n", dir, state, message.Count(r.Modules, "module"), message.Count(r.Hooks, "hook"))
}
