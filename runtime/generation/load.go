package generation

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/crd"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

// defaultTimeout is module(timeout=)'s default, here for modules without a
// module.star.
const defaultTimeout = 10 * time.Minute

// slowAfter is how long a file may load before there is a log line.
const slowAfter = 5 * time.Second

// loader runs the files of one tree.
type loader struct {
	host  *script.Host
	log   func(path string) builtins.Logger
	roles map[string]builtins.Role
	tree  fs.FS
	// selector says which modules are loaded, nil: all. had says of those of the generation before whether
	// they were.
	selector labels.Selector
	had      map[string]bool

	mu       sync.Mutex
	files    map[string]*builtins.File // what each file declared when it ran last
	problems []tree.Problem
	reads    map[string]*reads.Reads // of global values, by file
}

func newLoader(o Options) *loader {
	if o.Log == nil {
		o.Log = func(string) builtins.Logger { return builtins.Silent{} }
	}
	l := &loader{log: o.Log, roles: rolesOf(o.Tree), tree: o.Tree.Files, selector: o.Tree.Selector, had: map[string]bool{}, files: map[string]*builtins.File{}, reads: map[string]*reads.Reads{}}
	so := script.Options{
		Files: o.Tree.Files, Std: o.Std, Governor: o.Governor, Cache: o.Cache, Cover: o.Cover, Context: l.context,
	}
	if o.Previous != nil {
		// Files with a role declare something, each time they run.
		before := rolesOf(o.Previous.Tree)
		so.Previous, so.Keep = o.Previous.Host, func(path string) bool {
			return l.roles[path] == builtins.RoleLib && before[path] == builtins.RoleLib
		}
	}
	if o.Previous != nil && l.selector != nil {
		for name := range o.Previous.Modules {
			l.had[name] = true
		}
		for name := range o.Previous.Elsewhere {
			l.had[name] = false
		}
	}
	l.host = script.New(so)
	return l
}

// rolesOf are the roles of the files of a tree that have one.
func rolesOf(t *tree.Tree) map[string]builtins.Role {
	roles := map[string]builtins.Role{}
	all := t.Modules
	if t.Global != nil {
		all = append(slices.Clip(all), t.Global)
	}
	for _, m := range all {
		if m.ModuleFile != "" {
			roles[m.ModuleFile] |= builtins.RoleModule
		}
		for _, path := range m.HookFiles {
			roles[path] |= builtins.RoleHooks
		}
	}
	return roles
}

// context says what a file may do while it loads. Its role follows from its path,
// and not from the file that loads it first.
func (l *loader) context(path string) *builtins.Context {
	file := &builtins.File{Path: path, Role: l.roles[path]}
	l.mu.Lock()
	l.files[path] = file
	l.mu.Unlock()
	return &builtins.Context{Phase: spec.InLoad, File: file, Log: l.log(path)}
}

// run loads a file and returns what it declared.
func (l *loader) run(ctx context.Context, path string) (starlark.StringDict, *builtins.File, error) {
	slow := time.AfterFunc(slowAfter, func() {
		l.log(path).Log(builtins.LevelWarn, fmt.Sprintf("%s has been loading for %s; a new module tree is in force once all its files are loaded, or have failed", path, slowAfter), nil)
	})
	defer slow.Stop()
	globals, err := l.host.Load(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return globals, l.files[path], nil
}

func (l *loader) problem(m *tree.Module, path, msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, tree.Problem{Path: path, Module: m.Name, Msg: msg})
}

func (l *loader) module(ctx context.Context, t *tree.Module, global bool) *Module {
	m := &Module{kinds: &sync.Map{}, Name: t.Name, Key: t.Key, Global: global, Tree: t, folder: t, Err: t.Err, Decl: builtins.ModuleDecl{Timeout: defaultTimeout}}
	if t.ModuleFile == "" {
		m.checkChart()
	} else {
		l.moduleFile(ctx, m, t.ModuleFile)
	}
	m.Decl.Release = cmp.Or(m.Decl.Release, t.Name)
	if m.Decl.Weight == nil {
		m.Decl.Weight = t.Weight
	}
	if m.elsewhere = !l.selects(m); m.elsewhere {
		return m
	}
	for _, path := range t.HookFiles {
		l.hookFile(ctx, m, path)
	}
	slices.SortFunc(m.Hooks, func(a, b *Hook) int { return cmp.Compare(a.ID, b.ID) })
	m.schemas = newSchemas(t)
	m.ChartReads, m.ChartExports = chartReads(t.Chart)
	m.joinConversions()
	m.checkQueues()
	m.checkSecrets()
	m.checkStatus()
	for _, h := range m.Hooks {
		for _, b := range h.Bindings {
			switch {
			case global && b.Startup != nil && b.Startup.WhenOff:
				m.join(fmt.Errorf("%s: hook %s: startup(when_off = True) is for hooks of modules; global hooks are always on", h.Pos, h.HookDecl.ID))
			case b.Stage == nil:
			case b.Stage.Stage.Global() != global:
				m.join(fmt.Errorf("%s: hook %s: %s is for %s", h.Pos, h.HookDecl.ID, b.Stage.Stage,
					map[bool]string{true: "hooks of modules; this is a global one", false: "global hooks; this is one of a module"}[global]))
			case t.Chart == nil && (b.Stage.Stage == builtins.StageBeforeHelm || b.Stage.Stage == builtins.StageAfterHelm):
				l.problem(t, h.Pos, fmt.Sprintf("hook %s: %s never comes, the module has no chart", h.ID, b.Stage.Stage))
			}
		}
	}
	return m
}

func (l *loader) moduleFile(ctx context.Context, m *Module, path string) {
	globals, file, err := l.run(ctx, path)
	if err != nil {
		m.join(err)
		return
	}
	if file.Module != nil {
		m.Decl = *file.Module
	}
	m.filterCRDs()
	m.declareKinds(file.CRDs)
	m.checkChart()
	m.checkOwnValues()
	for _, f := range []struct {
		to     *starlark.Callable
		name   string
		params int
	}{
		{&m.Enabled, "enabled", 0}, {&m.Readiness, "readiness", 0},
		{&m.ChartValues, "chart_values", 1}, {&m.SettingsCheck, "settings_check", 2},
	} {
		if *f.to, err = function(globals, path, f.name, f.params); err != nil {
			m.join(err)
		}
	}
	if m.Global {
		m.refuseFunctions(globals, path)
	}
}

// refuseFunctions says of functions in global/module.star that nobody would call them.
func (m *Module) refuseFunctions(globals starlark.StringDict, path string) {
	m.Enabled, m.Readiness, m.ChartValues, m.SettingsCheck = nil, nil, nil, nil
	for _, f := range []struct{ name, why string }{
		{"enabled", "the global hooks are always on"},
		{"readiness", "modules wait for the first runs of global hooks, and for no more; let a hook set a global value, and enabled() of a module wait for it"},
		{"chart_values", "there is no chart here"},
		{"settings_check", "schemas check the global values"},
	} {
		if globals[f.name] != nil {
			m.join(fmt.Errorf("%s: %s is for modules; %s", path, f.name, f.why))
		}
	}
}

// filterCRDs leaves out the files of crds/ that module(crd_filter=) names.
func (m *Module) filterCRDs() {
	if len(m.Decl.CRDFilter) == 0 {
		return
	}
	folder := *m.Tree
	folder.CRDs = slices.DeleteFunc(slices.Clone(folder.CRDs), func(f tree.File) bool {
		return slices.ContainsFunc(m.Decl.CRDFilter, func(pattern string) bool {
			is, _ := path.Match(pattern, path.Base(f.Path)) // module() has checked the pattern
			return is
		})
	})
	m.Tree = &folder
}

// declareKinds puts the kinds that module.star declares beside those of crds/.
func (m *Module) declareKinds(kinds []crd.Definition) {
	if len(kinds) == 0 {
		return
	}
	folder := *m.Tree
	folder.CRDs = slices.Clone(folder.CRDs)
	for _, k := range kinds {
		folder.CRDs = append(folder.CRDs, tree.File{Path: k.Pos, Data: k.Data})
	}
	m.Tree = &folder
}

// function returns a function of a module.star that Starling calls by its name.
func function(globals starlark.StringDict, path, name string, params int) (starlark.Callable, error) {
	v, ok := globals[name]
	if !ok {
		return nil, nil
	}
	fn, ok := v.(*starlark.Function)
	if !ok {
		return nil, fmt.Errorf("%s: %s is a %s; starling calls it, so it must be a function: def %s(%s): return …", path, name, v.Type(), name, [...]string{"", "v", "old, new"}[params])
	}
	if fn.NumParams() != params || fn.HasVarargs() || fn.HasKwargs() {
		return nil, fmt.Errorf("%s: def %s must take %s", fn.Position(), name, [...]string{"no parameters", "one parameter, the values", "two parameters, the section as it is and as it would be"}[params])
	}
	return fn, nil
}

// firstFunction is the name of a function of a file, or f.
func firstFunction(globals starlark.StringDict) string {
	for _, name := range globals.Keys() {
		if fn, ok := globals[name].(*starlark.Function); ok && fn.NumParams() == 1 {
			return name
		}
	}
	return "f"
}

func (l *loader) hookFile(ctx context.Context, m *Module, path string) {
	globals, file, err := l.run(ctx, path)
	if err != nil {
		m.join(err)
		return
	}
	if len(file.Hooks) == 0 {
		l.problem(m.Tree, path, fmt.Sprintf("registers no hook: end it with hook(%s, on = [startup()]), or move what others load to lib/", firstFunction(globals)))
	}
	for _, decl := range file.Hooks {
		h := &Hook{HookDecl: decl, Module: m.Name, ID: m.Name + "/" + decl.ID, file: path}
		if i := slices.IndexFunc(m.Hooks, func(other *Hook) bool { return other.ID == h.ID }); i >= 0 {
			m.join(fmt.Errorf("%s: hook %s is registered at %s too; give one of them name=", decl.Pos, decl.ID, m.Hooks[i].Pos))
			continue
		}
		m.Hooks = append(m.Hooks, h)
	}
}

// MaxQueues is how many queues the hooks of one module may name: each is a line of runs
// beside the others.
const MaxQueues = 8

// checkQueues refuses a module with too many lines of work.
func (m *Module) checkQueues() {
	queues := map[string]bool{}
	for _, h := range m.Hooks {
		if h.Queue != "" && h.Controller == nil {
			queues[h.Queue] = true
		}
		if len(queues) > MaxQueues {
			m.join(fmt.Errorf("%s: hook %s: queue %s is one more than the %d queues that the hooks of a module may have; let hooks share one",
				h.Pos, h.HookDecl.ID, h.Queue, MaxQueues))
			return
		}
	}
}

// checkReferences looks at what modules say of each other. Modules that requires= names
// must exist; after= only orders.
func (g *Generation) checkReferences() {
	for _, name := range g.Names {
		m := g.Modules[name]
		for other := range builtins.Required(m.Decl.Requires) {
			if g.Elsewhere[other] {
				m.join(fmt.Errorf("%s: requires=: %s; what it requires must be in the same instance: select both here, or neither", m.Decl.Pos, g.NotHere(other)))
			} else if g.Modules[other] == nil {
				m.join(fmt.Errorf("%s: requires=: there is no module %s%s", m.Decl.Pos, other, g.didYouMean(other)))
			}
		}
		for _, other := range m.Decl.After {
			if g.Elsewhere[other] {
				g.Problems = append(g.Problems, tree.Problem{
					Path: m.Decl.Pos, Module: name, Msg: "after=: " + g.NotHere(other) + "; this one does not wait for it",
				})
			} else if g.Modules[other] == nil {
				g.Problems = append(g.Problems, tree.Problem{
					Path: m.Decl.Pos, Module: name, Msg: "after=: there is no module " + other + g.didYouMean(other),
				})
			}
		}
	}
}

// checkReleases refuses modules that would fight over one Helm release.
func (g *Generation) checkReleases() {
	type release struct{ namespace, name string }
	owners := map[release]*Module{}
	for _, name := range g.Names {
		m := g.Modules[name]
		if m.Tree.Chart == nil {
			continue
		}
		r := release{m.Decl.Namespace, m.Decl.Release}
		other := owners[r]
		if other == nil {
			owners[r] = m
			continue
		}
		for _, pair := range [][2]*Module{{m, other}, {other, m}} {
			at := cmp.Or(pair[0].Decl.Pos, pair[0].Tree.Dir)
			pair[0].join(fmt.Errorf("%s: module %s has the release %s in the same namespace too; give one release= or namespace=", at, pair[1].Name, r.name))
		}
	}
}

func (g *Generation) didYouMean(name string) string {
	if near := message.Nearest(name, g.Names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

func byPath(a, b tree.Problem) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Msg, b.Msg))
}
