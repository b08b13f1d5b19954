package simulation

import (
	"context"
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

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/testrunner"
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
	page     string
	lcov     string
	junit    string
	list     bool
	reading  command.Reading
}

// goFlags are those that may be written as Go people type them, with one dash.
var goFlags = []string{"verbose", "run", "update", "json", "count", "parallel", "explore", "seed", "cover", "cover-html", "cover-lcov", "junit", "list", "modules"}

func newTestCommand() *cobra.Command {
	f := &testFlags{}
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of module trees, in a simulated cluster",
		Long: `Runs the functions test_x(t) of *_test.star files, each in its own
simulated cluster: no cluster is needed, and none is touched. PATH is a test file, a folder of
one module or of a whole tree, or a folder with /... for all below it; the default is
./... .`,
		Example: `  starling test ./examples/...
  starling test -run ready -v addons/ingress-nginx
  starling test -list ./addons/...
  starling test -junit report.xml -cover-lcov lcov.info ./addons/...`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.test(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.run, "run", "", "only tests whose names match this regular `expression`")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "name each test, and show what hooks log")
	flags.BoolVar(&f.update, "update", false, "write golden files instead of comparing with them")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line, as go test -json does")
	flags.IntVar(&f.count, "count", 1, "run each test `n` times")
	flags.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "run `n` tests at a time")
	flags.IntVar(&f.explore, "explore", 0, "run each test also in `n` other orders of events, with failing calls and crashes; the end must be the same")
	flags.Uint64Var(&f.seed, "seed", 0, "run each test also in the order of this `seed`, which --explore has named; with --explore, its orders begin there")
	flags.BoolVar(&f.cover, "cover", false, "tell how many statements of each .star file the tests have run, and the lines of the others")
	f.reading.AddFlags(flags)
	flags.StringVar(&f.page, "cover-html", "", "write what --cover tells, and the files in colours, to the HTML page `file`")
	flags.StringVar(&f.lcov, "cover-lcov", "", "write what --cover tells to `file` in the form of lcov, for CI and editors")
	flags.StringVar(&f.junit, "junit", "", "write the results to `file` as JUnit XML, which Jenkins and GitLab read")
	flags.BoolVar(&f.list, "list", false, "print the tests that --run matches, and run none")
	command.TreeFlag(cmd, true)
	return cmd
}

// LikeGo lets the flags of `starling test` have one dash.
func LikeGo(args []string) []string {
	if len(args) == 0 || args[0] != "test" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break // what follows is no flag
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if name == "-v" { // go takes both
			out[i] = arg[1:]
		}
		if strings.HasPrefix(arg, "-") && slices.Contains(goFlags, name) {
			out[i] = "-" + arg
		}
	}
	return out
}

// errTestsFailed is said by the tests themselves.
var errTestsFailed = errors.New("tests failed")

func (f *testFlags) test(ctx context.Context, out, errs io.Writer, args []string) error {
	process.TuneTests()
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
	if f.list && f.junit+f.page+f.lcov != "" {
		return errors.New("--list runs no test, and --junit, --cover-html and --cover-lcov report on tests that have run; give one of both")
	}
	roots, err := testRoots(args)
	if err != nil {
		return err
	}
	var files reportFiles
	if !f.list {
		if files, err = f.reports(); err != nil {
			return err
		}
	}
	defer files.close()
	p := &testPrinter{out: out, errs: errs, verbose: f.verbose, json: f.json}
	report := p.file
	if f.list {
		f.count, f.cover, report = 1, false, p.list
	}
	began := time.Now()
	var coverage testrunner.Coverage
	fail := func(dir string, err error) error { // a report that is empty hides why
		p.junit.broken(dir, err)
		return errors.Join(err, files.write(&coverage, &p.junit, time.Since(began)))
	}
	shared, renderer := store.NewBuiltins(), process.NewRenderer()
	go shared.Warm() // while the trees load
	cache, governor := script.NewCache(), script.NewGovernor(script.GovernorOptions{Soft: process.TestHeap()})
	for _, root := range roots {
		o := f.reading.Options()
		o.Empty = true
		t, err := tree.ReadDir(root.dir, o)
		if err != nil {
			return fail(root.dir, err)
		}
		var cover *script.Cover
		if f.cover || files.covers() {
			cover, cache = script.NewCover(), script.NewCache()
		}
		gen := generation.Load(ctx, generation.Options{Tree: t, Std: stdlib.FS, Number: 1, Governor: governor, Cache: cache, Cover: cover})
		if !f.list {
			p.broken(root, gen)
		}
		p.root = root.dir
		if err := testrunner.Run(ctx, testrunner.Options{
			Tree: t, Generation: gen, Std: stdlib.FS, Only: func(file string) bool { return root.has(file) && !elsewhere(gen, file) }, Run: pattern, List: f.list, Count: f.count, Parallel: f.parallel, Explore: f.explore, Seed: f.seed,
			Told:   !f.json && f.junit == "", // a program may show each test for itself
			Golden: golden{root.dir, f.update}, Builtins: shared, Renderer: renderer, Cover: cover, Cache: cache,
		}, report); err != nil {
			return fail(root.dir, err)
		}
		if cover != nil {
			p.covered(coverage.Add(root.dir, cover, root.covers, testrunner.StdTested(t, root.files)))
		}
	}
	if f.cover || files.covers() {
		p.output("total", "coverage: "+coverage.Summary())
	}
	if err := files.write(&coverage, &p.junit, time.Since(began)); err != nil {
		return err
	}
	switch {
	case p.unlisted == 1:
		return errors.New("1 file cannot be read: its tests are not in the list")
	case p.unlisted > 0:
		return fmt.Errorf("%d files cannot be read: their tests are not in the list", p.unlisted)
	case p.failed > 0:
		return errTestsFailed
	case p.files == 0:
		if len(args) == 0 {
			args = []string{"./..."}
		}
		return fmt.Errorf("there are no *_test.star files in %s", strings.Join(args, ", "))
	case f.run != "" && p.tests == 0: // a typing error must not look like a success
		return fmt.Errorf("no test's name matches --run %s", f.run)
	}
	return nil
}

// elsewhere says whether a file is one of a module that --modules-selector leaves out.
func elsewhere(gen *generation.Generation, file string) bool {
	dir, _, _ := strings.Cut(file, "/")
	return slices.ContainsFunc(gen.Tree.Modules, func(m *tree.Module) bool { return m.Dir == dir && gen.Elsewhere[m.Name] })
}

// golden keeps golden files in testdata/ beside the test.
type golden struct {
	root   string
	update bool
}

// Compare implements [testrunner.Golden].
func (g golden) Compare(folder, name, text string) error {
	path := filepath.Join(g.root, filepath.FromSlash(folder), "testdata", name+".golden")
	if g.update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no golden file %s yet; `starling test -update` writes it", path)
	case err != nil:
		return fmt.Errorf("the golden file: cannot %w", err)
	}
	return testrunner.CompareText(text, string(want))
}
