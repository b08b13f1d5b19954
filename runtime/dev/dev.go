// Package dev is the loop of who writes modules: after each change of a tree it checks
// it, runs the tests of what has changed, and says what has become different in a
// simulated cluster.
package dev

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

// Options configures a [Loop]. Builtins, Namespace, Name and Parallel are required.
type Options struct {
	// Builtins are the built-in kinds of the simulated clusters.
	Builtins *store.Builtins
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	// Namespace and Name are the instance.
	Namespace, Name string
	// Prepare puts into a new cluster what is taken to be there; nil: nothing.
	Prepare func(*sim.World) error
	// Update does the same in a cluster that lies over the last one: what has changed
	// since; nil: nothing does.
	Update func(*sim.World) error
	// Keep does in the last one what Update has done last; nil: nothing.
	Keep func(*sim.World) error
	// HTTP are files that answer http.get, by host.
	HTTP map[string]string
	// Env looks up an environment variable for a hook; nil: none may be read.
	Env func(name string) (string, error)
	// Parallel is how many tests run at a time.
	Parallel int
	// Golden reads golden files; nil: there are none.
	Golden testrunner.Golden
	// Log takes what hooks and the engine say in the simulated cluster; nil: nobody does.
	Log sim.Log
	// Version of the binary, for those who ask.
	Version string
}

// Loop is what is known of a tree from round to round. Rounds come one after the other; questions may come meanwhile.
type Loop struct {
	o     Options
	cache *script.Cache
	// checks is what the checks of a tree have in common with those of the tree before.
	checks *check.Cache
	// governor watches the memory of all that the trees run.
	governor *script.Governor
	gen      *generation.Generation       // of the last round
	tests    map[string][sha256.Size]byte // sums of the test files, with all that they load
	// failed are the test files that have failed in the last round: they run again.
	failed map[string]bool
	// world is a cluster in which the last tree that loads has settled, and a process goes on.
	world *sim.World
	on    map[string]bool // switches that are ours, by their keys in the config
	hosts *hosts

	// turn is held by who works on the world, or on what follows.
	turn     chan struct{}
	first    chan struct{} // closed once there is a world, or a reason why there is none
	patience time.Duration // firstRound but in tests
	began    sync.Once
	refused  atomic.Pointer[status.ReloadFailure] // nil: the world has the last tree
	inForce  atomic.Int64                         // number of the tree that the world has; 0: there is no world
	// ran is when hooks were last seen to have run, by their ids: the clock of the world stands still.
	ran     map[string]time.Time
	settled time.Time // when something happened last
}

// New makes a loop that has not seen a tree yet.
func New(o Options) *Loop {
	return &Loop{o: o, cache: script.NewCache(), checks: check.NewCache(), governor: script.NewGovernor(script.GovernorOptions{}), tests: map[string][sha256.Size]byte{}, failed: map[string]bool{}, on: map[string]bool{},
		hosts: &hosts{files: o.HTTP, asked: map[string]bool{}}, turn: make(chan struct{}, 1), first: make(chan struct{}), patience: firstRound, ran: map[string]time.Time{}}
}

// Round is what one look at a tree has shown.
type Round struct {
	// Check is what [check.Run] found.
	Check check.Result
	// Tests are the files that ran: those that are new or have changed, or load a file that
	// has, those of modules that have changed, and those that failed before.
	Tests []testrunner.File
	// Plan is what has become different since the last tree that loads; nil in the first
	// round, and while a module does not load.
	Plan *plan.Plan
	// Values are changed values that no release shows: "web: size".
	Values []string
	// Modules is how many have changed, of All.
	Modules, All int
	Took         time.Duration
}

// Unanswered are the hosts that hooks have asked in vain, each once.
func (l *Loop) Unanswered() []string {
	l.turn <- struct{}{}
	defer l.give()
	return l.hosts.news()
}

// Look looks at a tree. An error means that ctx has ended, or that the simulated cluster
// cannot be made; with the latter the round may be there, without a plan.
func (l *Loop) Look(ctx context.Context, t *tree.Tree) (*Round, error) {
	began := time.Now()
	o := generation.Options{
		Tree: t, Std: stdlib.FS, Number: 1, Previous: l.gen, Cache: l.cache, Governor: l.governor,
	}
	if l.gen != nil {
		o.Number = l.gen.Number + 1
	}
	gen := generation.Load(ctx, o)
	r := &Round{}
	changed := map[string]bool{}
	for _, m := range gen.All() {
		r.All++
		if l.gen == nil || !contains(l.gen, m) {
			r.Modules++
			changed[m.Tree.Dir] = true
		}
	}
	l.gen = gen
	var err error
	if r.Check, err = check.Run(ctx, check.Options{Tree: t, Renderer: l.o.Renderer, Cache: l.checks}); err != nil {
		return nil, err
	}
	if err := l.test(ctx, t, changed, r); err != nil {
		return nil, err
	}
	if brokenModules(gen) == nil && l.world != nil {
		if r.Plan, r.Values, err = l.plan(ctx); err != nil {
			l.Refuse(err)
			return r, err
		}
	}
	r.Took = time.Since(began)
	return r, nil
}

// plan says what the tree changes in the last cluster, which stays as it is, and which values beside those of releases.
func (l *Loop) plan(ctx context.Context) (p *plan.Plan, changed []string, err error) {
	if err := l.take(ctx); err != nil {
		return nil, nil, err
	}
	defer l.give()
	fork, err := l.world.Fork()
	if err != nil {
		return nil, nil, err
	}
	fork.Use(l.gen)
	if l.o.Update != nil {
		if err := l.o.Update(fork); err != nil {
			return nil, nil, err
		}
	}
	if err := l.switchOn(fork, l.gen); err != nil {
		return nil, nil, err
	}
	if p, err = plan.Make(ctx, fork); err != nil {
		return nil, nil, err
	}
	spare(p)
	for _, name := range fork.Modules() {
		before := l.world.Values(name)
		if _, chart := fork.ModuleRef(name); chart || before == nil {
			continue
		}
		for _, c := range values.Changes(before, fork.Values(name), values.Explanation{}) {
			changed = append(changed, name+": "+c.Path)
		}
	}
	return p, changed, nil
}

// Settle prepares the next round, after people have seen this one: a cluster in which the
// tree has settled.
func (l *Loop) Settle(ctx context.Context) error {
	if l.gen == nil {
		return nil
	}
	if err := brokenModules(l.gen); err != nil {
		l.Refuse(err)
		return nil // what loaded last stays what the next one is compared with
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	if l.world == nil || l.follow(ctx) != nil { // such as a module that seems to have another name
		if err := l.begin(ctx); err != nil {
			l.refuse(err)
			return err
		}
	}
	l.refused.Store(nil)
	l.inForce.Store(int64(l.gen.Number))
	l.noteRuns()
	if problems := l.world.Status().Config.Problems; len(problems) > 0 {
		return fmt.Errorf("the user's config: %s", strings.Join(problems, "; "))
	}
	return nil
}

// follow has the cluster of the round before go on with this one's tree, as a process does
// that reloads it: what has not changed is not touched.
func (l *Loop) follow(ctx context.Context) error {
	if l.o.Keep != nil {
		if err := l.o.Keep(l.world); err != nil {
			return err
		}
	}
	if err := l.world.Reload(ctx, l.gen); err != nil {
		return err
	}
	if err := l.switchOn(l.world, l.gen); err != nil { // modules that are new
		return err
	}
	return l.world.Settle(ctx)
}

// begin makes a new cluster.
func (l *Loop) begin(ctx context.Context) error {
	w, err := sim.New(sim.Options{Generation: l.gen, Builtins: l.o.Builtins, Namespace: l.o.Namespace, Name: l.o.Name, Renderer: l.o.Renderer, HTTP: l.hosts, Env: l.o.Env, Log: l.o.Log, Now: time.Now()})
	if err != nil {
		return err
	}
	if l.o.Prepare != nil {
		if err := l.o.Prepare(w); err != nil {
			return err
		}
	}
	if err := l.switchOn(w, l.gen); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	l.world = w
	l.answers()
	return nil
}

// switchOn has all modules work that nobody has switched on or off. It takes back its
// switches of modules that are gone.
func (l *Loop) switchOn(w *sim.World, g *generation.Generation) error {
	before, err := w.UserConfig()
	if err != nil {
		return err
	}
	said := len(before)
	there := map[string]bool{}
	for _, name := range g.Names {
		there[values.EnabledKey(g.Modules[name].Key)] = true
	}
	maps.DeleteFunc(l.on, func(key string, _ bool) bool { return before[key] != "true" }) // somebody else's since
	maps.DeleteFunc(before, func(key, _ string) bool { return l.on[key] && !there[key] })
	if len(before) < said {
		if err := w.Configure(before); err != nil {
			return err
		}
	}
	if err := w.SwitchOn(g.Names...); err != nil {
		return err
	}
	after, err := w.UserConfig()
	for key := range after {
		if _, known := before[key]; !known {
			l.on[key] = true
		}
	}
	return err
}

func contains(g *generation.Generation, m *generation.Module) bool {
	return g.Global == m || g.Modules[m.Name] == m
}

// test runs the test files that something has happened to.
func (l *Loop) test(ctx context.Context, t *tree.Tree, changed map[string]bool, r *Round) error {
	tests, run := map[string][sha256.Size]byte{}, map[string]bool{}
	err := fs.WalkDir(t.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.star") {
			return err
		}
		tests[p] = l.sources(p)
		_, known := l.tests[p]
		run[p] = !known || tests[p] != l.tests[p] || l.failed[p]
		for dir := path.Dir(p); dir != "." && !run[p]; dir = path.Dir(dir) {
			run[p] = changed[dir]
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.tests, l.failed = tests, map[string]bool{}
	return testrunner.Run(ctx, testrunner.Options{
		Tree: t, Generation: l.gen, Std: stdlib.FS, Only: func(p string) bool { return run[p] },
		Parallel: l.o.Parallel, Golden: l.o.Golden, Builtins: l.o.Builtins, Renderer: l.o.Renderer, Cache: l.cache,
	}, func(f testrunner.File) {
		r.Tests = append(r.Tests, f)
		l.failed[f.Path] = f.Failed()
	})
}

// sources is the sum of a test file and of all that it loads. A file that cannot be read fails the
// test.
func (l *Loop) sources(file string) [sha256.Size]byte {
	h := sha256.New()
	files, err := l.gen.Host.Sources(file)
	if err != nil {
		fmt.Fprint(h, err)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%d:%s%d:", len(path), path, len(files[path]))
		h.Write(files[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
