package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/suite"
	"github.com/starling-operator/starling/stdlib"
)

// testFlags are the flags of `starling test`.
type testFlags struct {
	run      string
	verbose  bool
	update   bool
	json     bool
	count    int
	parallel int
	explore  int
	seed     uint64
	cover    bool
}

// goFlags are those that may be written as Go people type them, with one dash.
var goFlags = []string{"run", "update", "json", "count", "parallel", "explore", "seed", "cover"}

func newTestCommand() *cobra.Command {
	f := &testFlags{}
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of module trees, in a simulated cluster",
		Long: `Runs the functions test_x(t) of *_test.star files, each in a simulated cluster of
its own: no cluster is needed, and none is touched. PATH is a test file, a folder of
one module or of a whole tree, or a folder with /... for all below it; the default is
./... .`,
		Example: `  starling test ./examples/...
  starling test -run ready -v addons/ingress-nginx`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.test(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.run, "run", "", "only tests whose names match this regular `expression`")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "name each test, and show what hooks log")
	fs.BoolVar(&f.update, "update", false, "write golden files instead of comparing with them")
	fs.BoolVar(&f.json, "json", false, "one JSON object a line: what `go test -json` says")
	fs.IntVar(&f.count, "count", 1, "run each test `n` times")
	fs.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "run `n` tests at a time")
	fs.IntVar(&f.explore, "explore", 0, "run each test also in `n` other orders of events, with failing calls and crashes; the end must be the same")
	fs.Uint64Var(&f.seed, "seed", 0, "run each test also in the order of this `seed`, which --explore has named")
	fs.BoolVar(&f.cover, "cover", false, "tell how many statements of each .star file the tests have run, and the lines of the others")
	return cmd
}

// likeGo lets the flags of `starling test` have one dash.
func likeGo(args []string) []string {
	if len(args) == 0 || args[0] != "test" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(goFlags, name) {
			out[i] = "-" + arg
		}
	}
	return out
}

// errTestsFailed is said by the tests themselves.
var errTestsFailed = errors.New("tests failed")

func (f *testFlags) test(ctx context.Context, out io.Writer, args []string) error {
	pattern, err := regexp.Compile(f.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if f.explore < 0 {
		return errors.New("--explore must not be negative")
	}
	if f.count < 1 || f.parallel < 1 {
		return errors.New("--count and --parallel must be at least 1")
	}
	roots, err := testRoots(args)
	if err != nil {
		return err
	}
	p := &testPrinter{out: out, verbose: f.verbose, json: f.json}
	shared := store.NewBuiltins()
	go shared.Warm() // while the trees load
	cache := script.NewCache()
	for _, root := range roots {
		t, err := tree.ReadDir(root.dir, tree.Options{})
		if err != nil {
			return err
		}
		var cover *script.Cover
		if f.cover {
			cover, cache = script.NewCover(), script.NewCache()
		}
		gen := generation.Load(ctx, generation.Options{Tree: t, Std: stdlib.FS, Number: 1, Cache: cache, Cover: cover, Log: live.FileLog(zerolog.Nop())})
		p.broken(root, gen)
		p.root = root.dir
		if err := suite.Run(ctx, suite.Options{
			Tree: t, Generation: gen, Std: stdlib.FS, Only: root.has, Run: pattern, Count: f.count, Parallel: f.parallel, Explore: f.explore, Seed: f.seed,
			Golden: golden{root.dir, f.update}, Builtins: shared,
		}, p.file); err != nil {
			return err
		}
		p.covered(cover)
	}
	switch {
	case p.failed > 0:
		return errTestsFailed
	case p.files == 0:
		return fmt.Errorf("there are no *_test.star files in %s", strings.Join(args, ", "))
	}
	return nil
}

// testRoot is a module tree with the test files in it that were asked for.
type testRoot struct {
	dir   string
	files []string // by their paths in the tree
}

func (r testRoot) has(file string) bool { return slices.Contains(r.files, file) }

// testRoots finds the trees of test files: the folder above the module, or above
// global/, that holds a file.
func testRoots(args []string) ([]testRoot, error) {
	if len(args) == 0 {
		args = []string{"./..."}
	}
	var out []testRoot
	for _, arg := range args {
		dir, all := strings.CutSuffix(filepath.ToSlash(arg), "/...")
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: there is no such file or folder", arg)
		}
		if !info.IsDir() && !all {
			if !strings.HasSuffix(arg, "_test.star") {
				return nil, fmt.Errorf("%s: test files end in _test.star", arg)
			}
			out = addTest(out, arg)
			continue
		}
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(p, "_test.star") {
				out = addTest(out, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addTest adds a test file to the tree that it belongs to.
func addTest(roots []testRoot, file string) []testRoot {
	dir := treeOf(file)
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		rel = file
	}
	rel = filepath.ToSlash(rel)
	for i := range roots {
		if roots[i].dir == dir {
			if !roots[i].has(rel) {
				roots[i].files = append(roots[i].files, rel)
			}
			return roots
		}
	}
	return append(roots, testRoot{dir, []string{rel}})
}

// treeOf is the folder above the module that holds a file: a module's folder has a
// module.star, a chart or hooks/, or is global/.
func treeOf(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "global" || isModule(dir) || filepath.Dir(dir) == dir {
			return filepath.Dir(dir)
		}
	}
}

func isModule(dir string) bool {
	for _, name := range []string{"module.star", "Chart.yaml", "templates", "hooks", "chart"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// golden keeps golden files in testdata/ beside the test.
type golden struct {
	root   string
	update bool
}

// Compare implements [suite.Golden].
func (g golden) Compare(folder, name, text string) error {
	path := filepath.Join(g.root, filepath.FromSlash(folder), "testdata", name+".golden")
	if g.update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the golden file %s cannot be read; `starling test -update` writes it", path)
	}
	return suite.CompareText(text, string(want))
}

// testPrinter prints what tests came to, as go test does.
type testPrinter struct {
	out           io.Writer
	verbose, json bool
	root          string
	files, failed int
}

// broken shows the modules that do not load, once.
func (p *testPrinter) broken(root testRoot, gen *generation.Generation) {
	for _, name := range gen.Names {
		if err := gen.Modules[name].Err; err != nil {
			p.failed++
			p.event("fail", root.dir+"/"+name, "", 0, render(err))
			if !p.json {
				fmt.Fprintf(p.out, "FAIL\t%s\n%s", filepath.Join(root.dir, name), indent(render(err)))
			}
		}
	}
}

func (p *testPrinter) file(f suite.File) {
	p.files++
	path := filepath.ToSlash(filepath.Join(p.root, f.Path))
	passed := 0
	for _, r := range f.Tests {
		word, action := "PASS", "pass"
		if r.Err != nil {
			word, action = "FAIL", "fail"
		} else {
			passed++
		}
		text := ""
		if r.Err != nil || p.verbose {
			for _, line := range r.Log {
				if p.verbose || !strings.HasPrefix(line, "debug: ") {
					text += line + "\n"
				}
			}
		}
		if r.Err != nil {
			text += render(r.Err)
		}
		p.event(action, path, r.Name, r.Took, text)
		if !p.json && (r.Err != nil || p.verbose) {
			fmt.Fprintf(p.out, "--- %s: %s (%.2fs)\n%s", word, r.Name, r.Took.Seconds(), indent(text))
		}
	}
	word, action := "ok  ", "pass"
	if f.Failed() {
		p.failed++
		word, action = "FAIL", "fail"
	}
	text := ""
	if f.Err != nil {
		text = render(f.Err)
	}
	p.event(action, path, "", f.Took, text)
	if !p.json {
		fmt.Fprintf(p.out, "%s\t%s\t%d of %d tests\t%.2fs\n%s", word, path, passed, len(f.Tests), f.Took.Seconds(), indent(text))
	}
}

// covered tells what has run of the files of a tree.
func (p *testPrinter) covered(cover *script.Cover) {
	if cover == nil {
		return
	}
	for _, f := range cover.Files() {
		path := filepath.ToSlash(filepath.Join(p.root, f.Path))
		missed := ""
		if len(f.Missed) > 0 {
			missed = "\tnot run: " + ranges(f.Missed)
		}
		text := fmt.Sprintf("coverage: %.1f%% of %d statements%s", 100*float64(f.Ran)/float64(max(f.Statements, 1)), f.Statements, missed)
		p.event("output", path, "", 0, text+"\n")
		if !p.json {
			fmt.Fprintf(p.out, "\t%s\t%s\n", path, text)
		}
	}
}

// ranges writes lines as people do: 3-5, 9.
func ranges(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if j > i {
			out = append(out, fmt.Sprintf("%d-%d", lines[i], lines[j]))
		} else {
			out = append(out, fmt.Sprint(lines[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}

// event prints one object in the form of `go test -json`; Package is the file.
func (p *testPrinter) event(action, file, test string, took time.Duration, output string) {
	if !p.json {
		return
	}
	data, err := json.Marshal(struct {
		Action, Package string
		Test            string  `json:",omitempty"`
		Elapsed         float64 `json:",omitempty"`
		Output          string  `json:",omitempty"`
	}{action, file, test, took.Seconds(), output})
	if err == nil {
		fmt.Fprintf(p.out, "%s\n", data)
	}
}

// render is an error in its long form, with source lines and differences.
func render(err error) string {
	text := err.Error() + "\n"
	var at *script.Error
	if errors.As(err, &at) {
		text = at.Render()
	}
	return text + suite.Differences(err)
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
