package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/format"
	"github.com/starling-operator/starling/modules/scaffold"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

// newTest are the flags of `starling new test`.
type newTest struct {
	target  instance.Target
	records instance.Records
	run     string // the id of a recorded run
}

func newNewTestCommand(modules *string) *cobra.Command {
	f := &newTest{}
	f.records.Target = &f.target
	names := exactly("MODULE", "NAME")
	cmd := &cobra.Command{
		Use:   "test [TREE] MODULE NAME",
		Short: "Write a test of a module, or of global, or one that holds a recorded run",
		Long: `Writes a file NAME_test.star beside the hooks of a module, or, when MODULE is global,
beside the global ones. Nothing is overwritten. The name of the file is printed.

With --from-run, and neither MODULE nor NAME, the test holds a recorded run: its hook is
run with the snapshots, events, values and answers of then, and must ask for the same.
Text that comes out of Secrets is *** in the file; a run of which that changes what it asks
for is refused. So is one whose hook asks for something else in TREE.`,
		Example: `  starling new test addons web count-pods
  starling new test addons --from-run k3f9-12`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.run == "":
				return names(cmd, args)
			case len(args) > 0:
				return fmt.Errorf("%s is not wanted with --from-run: the run says which hook it is of", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.run != "" {
				return f.fromRun(cmd, *modules)
			}
			if err := nameNotFolder(cmd, args); err != nil {
				return err
			}
			path, err := scaffold.Test(*modules, args[0], args[1])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		},
	}
	f.target.AddFlags(cmd.Flags())
	f.records.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.run, "from-run", "", "write a test that holds the recorded run of this `id`; see starling get runs")
	command.TreeBefore(cmd, modules, func() (least, most int) {
		if f.run != "" {
			return 0, 0
		}
		return 2, 2
	})
	return cmd
}

// fromRun writes a test of a recorded run, which passes.
func (f *newTest) fromRun(cmd *cobra.Command, modules string) error {
	r, err := f.records.Load(cmd, f.run)
	if err != nil {
		return err
	}
	text, err := testOf(cmd.Context(), r)
	if err != nil {
		return fmt.Errorf("run %s: %w", f.run, err)
	}
	t, err := tree.ReadDir(modules, tree.Options{})
	if err != nil {
		return err
	}
	file, err := testFileOf(t, r)
	if err != nil {
		return fmt.Errorf("run %s: %w", f.run, err)
	}
	path := filepath.Join(modules, filepath.FromSlash(file))
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already; remove it, and it is written anew", path)
	}
	if err := scaffold.WriteNew(path, text); err != nil {
		return err
	}
	switch failed, err := passes(cmd.Context(), modules, file); {
	case err != nil:
		return fmt.Errorf("run %s: its test in %s cannot run: %w", f.run, modules, errors.Join(err, os.Remove(path)))
	case failed != nil:
		return fmt.Errorf("run %s: the hook in %s does not do what it did then, so its test would not pass; starling replay %s %s shows the difference: %w",
			f.run, modules, modules, f.run, errors.Join(failed, os.Remove(path)))
	}
	fmt.Fprintln(cmd.OutOrStdout(), path)
	return nil
}

// testOf is the text of a test that holds a run, as starling fmt writes it.
func testOf(ctx context.Context, r *record.Record) ([]byte, error) {
	if r.AtCommit {
		return nil, errors.New("its hook has succeeded, and its commit has failed: a test without a cluster cannot show that")
	}
	run, lines, err := r.Written()
	if err != nil {
		return nil, err
	}
	governor := script.NewGovernor(script.GovernorOptions{})
	recorded, err := r.Generate(ctx, governor)
	if err != nil {
		return nil, err
	}
	full := run
	run = record.Slim(full)
	again, err := record.Rerun(ctx, run, recorded, governor)
	if err == nil && !slices.Equal(lines, again) {
		run = full
		again, err = record.Rerun(ctx, run, recorded, governor)
	}
	if err != nil {
		return nil, err
	}
	if run["random"] == true {
		lines = again // keys that a test has made anew
	}
	if !slices.Equal(lines, again) {
		return nil, fmt.Errorf("it asks for something else when its secrets are hidden, and no secret may stand in a test: %s", firstDifference(lines, again))
	}
	_, formatted, err := format.Read("the test", strings.NewReader(record.TestFile(r.Header, run, lines)))
	return formatted, err
}

// firstDifference is the first line that is not the same.
func firstDifference(then, now []string) string {
	for _, line := range record.Diff(then, now) {
		if after, ok := strings.CutPrefix(line, "+"); ok {
			return strings.TrimSpace(after)
		}
	}
	return "it asks for less"
}

var notOfFile = regexp.MustCompile(`[^a-z0-9]+`)

// testFileOf is where the test of a run goes: beside its hook, under a name with its id.
func testFileOf(t *tree.Tree, r *record.Record) (string, error) {
	dir := ""
	for _, m := range t.Modules {
		if m.Name == r.Module {
			dir = m.Dir + "/hooks"
		}
	}
	if t.Global != nil && r.Module == "global" {
		dir = t.Global.Dir
	}
	if dir == "" {
		return "", fmt.Errorf("it is of module %s, which the tree does not have", r.Module)
	}
	_, hook, _ := strings.Cut(r.Hook, "/")
	hook, _, _ = strings.Cut(strings.TrimPrefix(hook, "hooks/"), ".star:")
	name := strings.Trim(notOfFile.ReplaceAllString(strings.ToLower(hook+"_"+r.ID), "_"), "_")
	return dir + "/" + name + "_test.star", nil
}

// passes runs one file of tests. failed says which do not pass, err why they cannot run.
func passes(ctx context.Context, modules, file string) (failed, err error) {
	t, err := tree.ReadDir(modules, tree.Options{})
	if err != nil {
		return nil, err
	}
	g := generation.Load(ctx, generation.Options{Tree: t, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{})})
	var broken error
	err = testrunner.Run(ctx, testrunner.Options{Tree: t, Generation: g, Std: stdlib.FS, Renderer: process.NewRenderer(), Only: func(path string) bool { return path == file }}, func(f testrunner.File) {
		broken = f.Err
		for _, one := range f.Tests {
			failed = errors.Join(failed, one.Err)
		}
	})
	return failed, errors.Join(err, broken)
}
