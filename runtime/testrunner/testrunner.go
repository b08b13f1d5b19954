// Package testrunner runs the tests of a module tree: the functions test_x(t) of its
// *_test.star files, each in its own simulated cluster.
package testrunner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/condition"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/pki"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Options says what to run. Tree, Generation and Std are required.
type Options struct {
	Tree       *tree.Tree
	Generation *generation.Generation
	// Std is the standard library.
	Std fs.FS
	// Only picks the files, by their path in the tree; nil: all.
	Only func(path string) bool
	// Run picks the tests by name; nil: all.
	Run *regexp.Regexp
	// List has no test run: results have names alone.
	List bool
	// Count is how often each test is run, 0 means once.
	Count int
	// Parallel is how many tests run at a time, 0 means one.
	Parallel int
	// Explore runs each test in the orders of that many seeds, too: from Seed on, if it is set. Seed without Explore
	// runs it in the order of that one. See [ExploreError].
	Explore int
	Seed    uint64
	// Told says that people are told for themselves why modules of the Generation do not load: results leave it out.
	Told bool
	// Golden reads and writes golden files; nil: there are none.
	Golden Golden
	// Builtins are the built-in kinds of the simulated clusters; nil: made here.
	Builtins *store.Builtins
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	// Record takes the runs of hooks; nil: nobody does.
	Record func(*record.Trace)
	// Uncommitted is told of runs that Record has taken, and whose commit has failed
	// since; nil: nobody is.
	Uncommitted func(run uint64, err error)
	// Cover counts which statements run, Cache keeps compiled files; nil: nobody does.
	// They are those that the Generation was loaded with.
	Cover *script.Cover
	Cache *script.Cache

	conditions *condition.Compiler
	keys       *pki.Keys // of all tests
}

// Golden keeps the files of t.golden.
type Golden interface {
	// Compare compares a text with the golden file of this name in this folder of
	// the tree, or writes it.
	Compare(folder, name, text string) error
}

// File is what the tests of one file came to.
type File struct {
	// Path is the file's path in the tree.
	Path string
	// Err is why the file cannot be run.
	Err   error
	Tests []Result
	// Took is the time from the start of its first test to the end of its last.
	Took time.Duration
}

// Failed says that the file, or one of its tests, failed.
func (f *File) Failed() bool {
	return f.Err != nil || slices.ContainsFunc(f.Tests, func(r Result) bool { return r.Err != nil })
}

// Result is what one test came to.
type Result struct {
	Name string
	// Err is nil for a test that has passed, else a [script.Error] where there is a
	// place to name.
	Err error
	// Log is what hooks, the engine and the test have said, in order.
	Log  []string
	Took time.Duration
}

// Tests finds the test files of a tree, sorted.
func Tests(t *tree.Tree) ([]string, error) {
	var out []string
	err := fs.WalkDir(t.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, "_test.star") {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// Run runs the tests and reports each file as it is done, in the order of their paths.
func Run(ctx context.Context, o Options, report func(File)) error {
	files, err := Tests(o.Tree)
	if err != nil {
		return err
	}
	o.conditions, o.keys = &condition.Compiler{}, &pki.Keys{}
	if o.Builtins == nil {
		o.Builtins = store.NewBuiltins()
	}
	slots := make(chan struct{}, max(o.Parallel, 1))
	var done []chan File
	for _, file := range files {
		if o.Only != nil && !o.Only(file) {
			continue
		}
		ch := make(chan File, 1)
		done = append(done, ch)
		go func() { ch <- runFile(ctx, o, file, slots) }()
	}
	for _, ch := range done {
		report(<-ch)
	}
	return ctx.Err()
}

// runFile runs the tests of one file.
func runFile(ctx context.Context, o Options, file string, slots chan struct{}) File {
	out := File{Path: file}
	role := builtins.RoleLib
	if moduleOf(o.Tree, file) == "" {
		role = builtins.RoleModule | builtins.RoleHooks
		if o, out.Err = alone(ctx, o, file); out.Err != nil {
			return out
		}
	}
	host := script.New(script.Options{Files: o.Tree.Files, Std: o.Std, Governor: o.Generation.Host.Governor(), Cover: o.Cover, Cache: o.Cache, Context: loading(file, role)})
	globals, err := host.Load(ctx, file)
	if err != nil {
		out.Err = err
		return out
	}
	names := globals.Keys()
	slices.SortFunc(names, func(a, b string) int { return line(globals[a]) - line(globals[b]) })
	var tests []string
	for _, name := range names {
		if fn, ok := globals[name].(*starlark.Function); ok && strings.HasPrefix(name, "test_") && (o.Run == nil || o.Run.MatchString(name)) {
			if fn.NumParams() != 1 {
				out.Err = errors.Join(out.Err, fmt.Errorf("%s: %s must take one parameter, t", fn.Position(), name))
				continue
			}
			for range max(o.Count, 1) {
				tests = append(tests, name)
			}
		}
	}
	out.Tests = make([]Result, len(tests))
	var busy sync.WaitGroup
	var began time.Time // of its first test: the tests of other files come before
	for i, name := range tests {
		if o.List {
			out.Tests[i].Name = name
			continue
		}
		slots <- struct{}{}
		if i == 0 {
			began = time.Now()
		}
		busy.Go(func() {
			defer func() { <-slots }()
			out.Tests[i] = runTest(ctx, o, host, file, name, globals[name].(*starlark.Function))
		})
	}
	busy.Wait()
	if len(tests) > 0 && !o.List {
		out.Took = time.Since(began)
	}
	return out
}

func line(v starlark.Value) int {
	if fn, ok := v.(*starlark.Function); ok {
		return int(fn.Position().Line)
	}
	return 0
}

// loading lets a test file, with its own role, load what hooks load, hook files
// among them. Their declarations were heard when the generation was loaded.
func loading(test string, role builtins.Role) func(path string) *builtins.Context {
	return func(p string) *builtins.Context {
		file := &builtins.File{Path: p, Role: builtins.RoleModule | builtins.RoleHooks}
		if p == test {
			file.Role = role
		}
		return &builtins.Context{Phase: spec.InLoad, File: file, Log: builtins.Silent{}}
	}
}

// testLimits bound one test: it is code that people trust less than their hooks while
// they write it.
var testLimits = script.Limits{Steps: 100_000_000, Wall: time.Minute}

// runTest runs one test in its own world.
func runTest(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function) Result {
	out := Result{Name: name}
	began := time.Now()
	w, err := newWorld(o, file, nil, func(text string) { out.Log = append(out.Log, text) })
	if err != nil {
		out.Err = err
		return out
	}
	defer w.w.Stop()
	limited, cancel := context.WithTimeout(ctx, testLimits.Wall)
	defer cancel()
	_, _, out.Err = host.Call(limited, fn, starlark.Tuple{builtins.NewTest()}, script.CallOptions{
		Name: file + ":" + name, Limits: testLimits,
		Context: &builtins.Context{Phase: spec.InTest, Test: &builtins.Test{World: w, Ctx: limited}, Log: lines{w.say}},
	})
	if limited.Err() != nil && ctx.Err() == nil || out.Err != nil && strings.Contains(out.Err.Error(), "would exceed context deadline") {
		out.Err = late(out.Err)
	}
	w.unasked()
	if out.Err == nil {
		out.Err = w.ended()
	}
	if out.Err == nil && (o.Explore > 0 || o.Seed > 0) {
		out.Err = explore(ctx, o, host, file, name, fn) // each order has the time of a test
	}
	out.Took = time.Since(began)
	return out
}

// late is the error of a test whose time is over: what it was about to do tells of that in its own way, or not.
func late(err error) error {
	var limit *script.LimitError
	if errors.As(err, &limit) {
		return err
	}
	text := fmt.Sprintf("the time of the test is over: it has %s of real time; move the clock less far, or make several tests of it", testLimits.Wall)
	var at *script.Error
	if !errors.As(err, &at) {
		return errors.New(text)
	}
	told := *at
	told.Msg, told.Hint = text, ""
	return &told
}

// told says that people know why a module does not load.
func (o *Options) told(module string) bool {
	m := o.Generation.Modules[module]
	return o.Told && m != nil && m.Err != nil
}

type lines struct{ say func(string) }

func (l lines) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.say(format(level, "", "", msg, fields))
}

// alone makes a file that is in no module, a test of a library, a module by itself.
func alone(ctx context.Context, o Options, file string) (Options, error) {
	o.Tree = o.Tree.Alone(file)
	o.Generation = generation.Load(ctx, generation.Options{
		Tree: o.Tree, Std: o.Std, Number: 1, Governor: o.Generation.Host.Governor(), Cache: o.Cache, Cover: o.Cover,
	})
	return o, o.Generation.Modules[tree.AloneName].Err
}

// moduleOf returns the module that a file of the tree belongs to; "global" for the
// global hooks, "" for none.
func moduleOf(t *tree.Tree, file string) string {
	dir, _, _ := strings.Cut(file, "/")
	if t.Global != nil && t.Global.Dir == dir {
		return "global"
	}
	for _, m := range t.Modules {
		if m.Dir == dir || m.ModuleFile == file {
			return m.Name
		}
	}
	return ""
}
