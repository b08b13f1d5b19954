// Package generation compiles a module tree into a generation: every .star file
// run once and frozen, every module with its declarations and hooks. A generation
// never changes; a change of the tree makes the next one.
package generation

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/script"
)

// Options configures [Load].
type Options struct {
	// Tree is what is compiled.
	Tree *tree.Tree
	// Std is the standard library, "@std//" in load statements.
	Std fs.FS
	// Number counts the generations of a process, from 1.
	Number int
	// Previous is the generation before: its modules are taken over, by their
	// pointers, where nothing of them has changed. Nil: there is none.
	Previous *Generation
	// Log returns the logger of a file's top level, by the file's path; nil: nobody listens.
	Log func(path string) builtins.Logger
	// Governor watches the memory of all runs; nil: no limit.
	Governor *script.Governor
	// Cover counts which statements run; nil: nobody does.
	Cover *script.Cover
	// Cache keeps compiled files between generations; nil: this one's own.
	Cache *script.Cache
	// Loading is told that a module is about to be loaded, with the digest of its code, and
	// says why it must not be; loaded is called at the end. Nil: nobody is told.
	Loading func(module, digest string) (loaded func(ok bool), err error)
}

// Generation is one compiled, frozen, numbered version of a module tree.
type Generation struct {
	Number int
	// Tree is what it was made from.
	Tree *tree.Tree
	// Host calls the functions of this generation.
	Host *script.Host
	// Global holds the global hooks; nil without a folder global/.
	Global *Module
	// Modules by name, broken ones among them.
	Modules map[string]*Module
	// Names are the keys of Modules, sorted.
	Names []string
	// Elsewhere are the modules of the tree that its selector leaves out: another instance may have them.
	Elsewhere map[string]bool
	// Problems are what is odd and stops nothing, in the order of paths.
	Problems []tree.Problem
	// Lists says that a file of the tree names global.enabledModules, so there is this value.
	Lists bool
	// Held says of modules that are as an earlier generation has them, by name, why: see
	// [Generation.Merge]. Unfit are new modules that could not be used yet.
	Held, Unfit map[string]string

	origins map[string]*Generation // of modules that are held
	hooks   map[string]*Hook
	found   map[string][]tree.Problem // of the files of each module
}

// Hook returns a hook by its id, nil when there is none.
func (g *Generation) Hook(id string) *Hook { return g.hooks[id] }

// All returns the modules in the order of their names, the global hooks first.
func (g *Generation) All() []*Module {
	var out []*Module
	if g.Global != nil {
		out = append(out, g.Global)
	}
	for _, name := range g.Names {
		out = append(out, g.Modules[name])
	}
	return out
}

// Hooks are those of all modules, in the order of [Generation.All].
func (g *Generation) Hooks() iter.Seq2[*Module, *Hook] {
	return func(yield func(*Module, *Hook) bool) {
		for _, m := range g.All() {
			for _, h := range m.Hooks {
				if !yield(m, h) {
					return
				}
			}
		}
	}
}

// Folders are those of the modules, with their errors.
func (g *Generation) Folders() (all []*tree.Module) {
	for _, m := range g.All() {
		folder := tree.Module{Name: m.Name}
		if m.Tree != nil {
			folder = *m.Tree
		}
		folder.Err = m.Err
		all = append(all, &folder)
	}
	return all
}

// Nodes are the modules as their order is made of them.
func (g *Generation) Nodes() []graph.Node {
	nodes := make([]graph.Node, 0, len(g.Names))
	for _, name := range g.Names {
		d := g.Modules[name].Decl
		nodes = append(nodes, graph.Node{Name: name, Weight: d.Weight, After: d.After, Requires: slices.Collect(builtins.Required(d.Requires))})
	}
	return nodes
}

// Module is one module, ready to run.
type Module struct {
	Name string
	// Key is the name in camel case.
	Key string
	// Global is true for the global hooks.
	Global bool
	// kinds that somebody has asked about, whether they report: see [Generation.Unheard].
	kinds *sync.Map
	// Tree is the folder, with the kinds that module.star declares among its CRDs.
	Tree *tree.Module
	// Decl is what module() said, with defaults filled in.
	Decl builtins.ModuleDecl
	// Hooks are sorted by id.
	Hooks []*Hook
	// Enabled is def enabled() of module.star, Readiness def readiness(), ChartValues
	// def chart_values(v), SettingsCheck def settings_check(old, new); nil without them.
	Enabled, Readiness, ChartValues, SettingsCheck starlark.Callable
	// SettingsDigest identifies the code of SettingsCheck; empty without it.
	SettingsDigest string
	// Err is what makes the module unusable: all its errors, each with its
	// place.
	Err error
	// ChartReads are the global values that the chart reads, Reads those and what all
	// scripts of the module read; nil: all of them.
	ChartReads, Reads *reads.Reads
	// ChartExports are those of other modules that the chart may read, see [reads.Exports].
	ChartExports *reads.Reads

	elsewhere bool // the selector leaves it out

	folder  *tree.Module // as it was read
	inputs  inputs       // nil: not all of its files could be loaded
	schemas *schemas     // nil: not read yet
}

// Hook is one hook of a module.
type Hook struct {
	*builtins.HookDecl
	// Module is the module's name.
	Module string
	// ID is "<module>/<id in the module>", unique in the generation.
	ID string
	// Session says that it stands for what somebody types: see
	// [Generation.WithSession]. Free is true where grants do not bind it.
	Session, Free bool
	// Digest identifies the hook's code: that of its file and of all that it loads.
	// Hooks of one id and one digest do the same.
	Digest string
	// WritesStatus says that a controller writes the status of its parents.
	WritesStatus bool

	file string
}

// Controls is the id of the controller that the hook is, or whose parents it observes.
func (h *Hook) Controls() string {
	if h.Controller == nil || h.Decides() {
		return h.ID
	}
	return h.Module + "/" + h.Controller.Observes
}

// loaders is how many modules are compiled at once: compiling is pure computing.
const loaders = 4

// Load compiles a tree. It never fails as a whole: what is wrong with a module is
// in its Err, and the others are loaded all the same.
func Load(ctx context.Context, o Options) *Generation {
	l := newLoader(o)
	g := &Generation{
		Number: o.Number, Tree: o.Tree, Host: l.host,
		Modules: map[string]*Module{}, hooks: map[string]*Hook{},
		Problems: slices.Clone(o.Tree.Problems), Lists: o.Tree.Mentions(values.EnabledModules),
	}
	all := slices.Clone(o.Tree.Modules)
	if o.Tree.Global != nil {
		all = append(all, o.Tree.Global)
	}
	taken := g.takeOver(o.Previous, all)
	loaded := slices.Clone(taken)
	slots := make(chan struct{}, loaders)
	var busy sync.WaitGroup
	for i, t := range all {
		if taken[i] != nil {
			continue
		}
		slots <- struct{}{}
		busy.Go(func() {
			defer func() { <-slots }()
			loaded[i] = l.marked(ctx, o, t)
		})
	}
	busy.Wait()
	g.found = foundIn(l.problems)
	for i, m := range loaded {
		if taken[i] == nil && !m.elsewhere {
			m.remember(l.host)
			l.findReads(m)
		} else if taken[i] != nil && o.Previous.found[m.Name] != nil {
			g.found[m.Name] = o.Previous.found[m.Name]
		}
		if m.Global {
			g.Global = m
		} else {
			if g.Modules[m.Name] == nil { // else both have an Err that says so
				g.Names = append(g.Names, m.Name)
			}
			g.Modules[m.Name] = m
		}
		for _, h := range m.Hooks {
			g.hooks[h.ID] = h
		}
	}
	slices.Sort(g.Names)
	for _, found := range g.found {
		g.Problems = append(g.Problems, found...)
	}
	g.leaveOut()
	restore := g.unchecked(taken)
	g.checkReferences()
	g.checkReleases()
	g.checkPaths()
	g.checkConversions()
	g.checkPowers()
	g.checkConditions()
	g.checkLists()
	restore()
	slices.SortStableFunc(g.Problems, byPath)
	return g
}

// join adds an error to a module, once: files that load the same broken one all
// have its error.
func (m *Module) join(err error) {
	all, is := m.Err.(*problems)
	if !is {
		all = &problems{}
		if m.Err != nil {
			all.errs = []error{m.Err}
		}
	}
	text := err.Error()
	switch known := slices.ContainsFunc(all.errs, func(e error) bool { return slices.Contains(strings.Split(e.Error(), "\n"), text) }); {
	case known || len(all.errs) > mostProblems:
		return
	case len(all.errs) == mostProblems:
		err = errMoreProblems
	}
	m.Err = &problems{append(slices.Clip(all.errs), err)}
}

// mostProblems is how many problems of one module are told: a list that an author can make long has one for each element.
const mostProblems = 50

var errMoreProblems = errors.New("there are more problems of this kind")

// problems are those of one module.
type problems struct{ errs []error }

// Error has a line for each.
func (p *problems) Error() string { return errors.Join(p.errs...).Error() }

// Unwrap are all of them.
func (p *problems) Unwrap() []error { return p.errs }

// Only returns a generation with the global hooks and some modules of this one. It
// leaves out requirements of other modules, and what the tree's values say of those; a
// name that is not there is skipped.
func (g *Generation) Only(names ...string) *Generation {
	out := *g
	out.Modules, out.Names = map[string]*Module{}, nil
	for _, name := range names {
		m := g.Modules[name]
		if m == nil || out.Modules[name] != nil {
			continue
		}
		one := *m
		one.Decl.After, one.Decl.Requires = nil, nil
		out.Modules[name] = &one
		out.Names = append(out.Names, name)
	}
	slices.Sort(out.Names)
	if g.Tree != nil {
		t := *g.Tree
		t.Values = maps.Clone(t.Values)
		for name, m := range g.Modules {
			if out.Modules[name] == nil {
				delete(t.Values, m.Key)
				delete(t.Values, values.EnabledKey(m.Key))
			}
		}
		out.Tree = &t
	}
	return &out
}
