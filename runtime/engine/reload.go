package engine

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/generation"
)

// A generation is put into the place of another one as a whole, or not at all. A module that has
// not changed is not touched: the pointer of its module is the same.

// draft is what a module of the next generation would be.
type draft struct {
	gen  *generation.Module
	same bool // it has not changed
	// values are those that do not move; nil: as they were.
	values      *values.Composer
	own, broken string
}

// reload puts the next generation in force, or says why not.
func (e *Engine) reload(in Reload) {
	gen := in.Generation
	e.deferred = nil
	if e.gen == nil {
		e.do(Refused{gen, "nothing has been started yet"})
		return
	}
	if m := e.comesBack(gen); m != nil {
		e.deferred = &in
		e.note(builtins.LevelInfo, m, "", "it is in the module tree again; the tree is put in force once what is under way of its end is over")
		return
	}
	oldGen, oldTree := e.gen, e.tree
	var problems []values.Problem
	e.gen = gen
	e.tree, problems = values.ParseTree(gen.Tree.Values, gen.Tree.ValuesFile, known(gen))
	nodes := gen.Nodes()
	order := graph.New(nodes)
	drafts := e.drafts(oldTree, order)
	if why := refusal(e.brokenness(), brokennessOf(drafts), gen); why != "" {
		e.gen, e.tree = oldGen, oldTree
		e.do(Refused{gen, why})
		return
	}
	e.do(Adopted{gen})
	for _, p := range problems {
		e.do(Note{Level: builtins.LevelWarn, Module: p.Module, Message: p.String()})
	}
	e.reloads++
	e.graph = order
	for _, name := range slices.Sorted(maps.Keys(e.modules)) {
		if gen.Modules[name] == nil {
			e.remove(e.modules[name])
		}
	}
	e.arrange(nodes)
	var changes []*change
	if c := e.renew(e.global, drafts[globalName]); c != nil {
		changes = append(changes, c)
	}
	for _, name := range gen.Names {
		if m := e.modules[name]; m != nil {
			if c := e.renew(m, drafts[name]); c != nil {
				changes = append(changes, c)
			}
			continue
		}
		old, store := e.reclaim(name), persist.New(nil, releaseRetry)
		if old != nil {
			store = old.store
		}
		m := e.newModule(name, gen.Modules[name], store)
		m.turn = e.reloads
		if old != nil {
			m.pass.refs, m.sets = old.pass.refs, old.sets
		}
		m.broken = drafts[name].broken
		e.modules[name] = m
		if in.Quarantined != nil {
			e.bar(m.hooks, in.Quarantined)
		}
	}
	for _, m := range e.all() {
		m.from = gen
	}
	e.applySections()
	for _, c := range changes {
		if in.Quarantined != nil {
			e.bar(c.fresh, in.Quarantined)
			e.bar(c.edited, in.Quarantined)
		}
		e.begun(c)
	}
	e.lookAtFolders()
	e.noteOrder()
	e.touchAll()
	e.applyConfig()
}

// reloadDeferred does what had to wait.
func (e *Engine) reloadDeferred() {
	if e.deferred != nil && e.comesBack(e.deferred.Generation) == nil {
		e.reload(*e.deferred)
	}
}

// Withdraw forgets a generation that waits, see [Reload]: the tree is again that of the
// one in force.
func (e *Engine) Withdraw() { e.deferred = nil }

// comesBack returns a module that a generation has, and of which something is being taken
// away in this moment; nil without any.
func (e *Engine) comesBack(gen *generation.Generation) *module {
	for _, m := range e.leavers {
		if gen.Modules[m.name] != nil && e.occupied(m) {
			return m
		}
	}
	return nil
}

// arrange puts the modules in order: those with a problem come last.
func (e *Engine) arrange(nodes []graph.Node) {
	e.switches = nil
	e.order = e.graph.Order()
	for _, n := range nodes {
		e.switches = append(e.switches, values.EnabledKey(e.gen.Modules[n.Name].Key))
		if e.graph.Problems[n.Name] != nil {
			e.order = append(e.order, n.Name)
		}
	}
	slices.Sort(e.switches)
	e.work.arrange(e.order)
}

// drafts looks at all modules of the generation that e.gen is for now.
func (e *Engine) drafts(oldTree values.Config, order *graph.Graph) map[string]draft {
	out := map[string]draft{}
	look := func(name string, g *generation.Module, old *module) {
		if g == nil {
			g = noGlobal(name)
		}
		d := draft{gen: g, same: old != nil && (old.gen == g || name == globalName && old.gen.Tree == nil && g.Tree == nil)}
		switch moved := !reflect.DeepEqual(section(oldTree, name, g.Global), section(e.tree, name, g.Global)); {
		case d.same && !moved:
			d.own = old.own
		default:
			d.values, d.own = e.staticValues(name, g)
			if g.Err != nil {
				d.own = inOneLine(g.Err)
			}
		}
		d.broken = d.own
		if err := order.Problems[name]; err != nil && d.broken == "" {
			d.broken = err.Error()
		}
		out[name] = d
	}
	look(globalName, e.gen.Global, e.global)
	for _, name := range e.gen.Names {
		look(name, e.gen.Modules[name], e.modules[name])
	}
	return out
}

func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// noGlobal stands for the global hooks of a tree that has none.
func noGlobal(name string) *generation.Module {
	return &generation.Module{Name: name, Key: name, Global: true}
}

// brokenness says of all modules why they cannot be used; "" for those that can.
func (e *Engine) brokenness() map[string]string {
	out := map[string]string{globalName: e.global.broken}
	for name, m := range e.modules {
		out[name] = m.broken
	}
	return out
}

func brokennessOf(drafts map[string]draft) map[string]string {
	out := map[string]string{}
	for name, d := range drafts {
		out[name] = d.broken
	}
	return out
}

// refusal says why a generation must not be put in force: something that could be used
// would be broken, or may only look as if it were gone. A module that was broken before may stay
// so, and a new module that is broken does no harm to the others, unless it is one that
// was given another name.
func refusal(before, after map[string]string, gen *generation.Generation) string {
	if len(gen.Names) == 0 && gen.Global == nil {
		return "there is no module in it"
	}
	var reasons []string
	removed := ""
	for _, name := range slices.Sorted(maps.Keys(before)) {
		why, there := after[name]
		switch {
		case there && why != "" && before[name] == "":
			reasons = append(reasons, nameOf(name)+": "+why)
		case !there && slices.Contains(gen.Tree.Hollow, name):
			reasons = append(reasons, nameOf(name)+": its folder holds nothing of a module; remove the folder to uninstall it")
		case !there:
			removed = name
		}
	}
	if removed != "" {
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if _, known := before[name]; !known && after[name] != "" {
				reasons = append(reasons, fmt.Sprintf("module %s is gone, while a new one, %s, is broken: %s", removed, name, after[name]))
			}
		}
	}
	const shown = 3
	if more := len(reasons) - shown; more > 0 {
		reasons = append(reasons[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(reasons, "; ")
}

func nameOf(module string) string {
	if module == globalName {
		return "the global hooks"
	}
	return "module " + module
}

// Check says whether a generation may follow another one, for a process that has not
// started yet: see [Reload].
func Check(o Options, before, after *generation.Generation) error {
	of := func(gen *generation.Generation) map[string]string {
		e := New(o)
		e.gen = gen
		e.adopt(Start{Generation: gen})
		return e.brokenness()
	}
	if why := refusal(of(before), of(after), after); why != "" {
		return errors.New(why)
	}
	return nil
}
