package engine

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/engine/adoption"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
)

// A generation is put into the place of another one module by module: one that cannot be used, and
// could before, stays as it was, see package adoption. A module that has not changed is not touched:
// the pointer of its module is the same.

// draft is what a module of the next generation would be.
type draft struct {
	gen  *generation.Module
	same bool // it has not changed
	// values are those that do not move; nil: as they were.
	values *values.Composer
	own    string
}

// reload puts the next generation in force, or says why not.
func (e *Engine) reload(in Reload) {
	switch {
	case e.gen == nil:
		e.do(Refused{in.Generation, "nothing has been started yet"})
		return
	case noModule(in.Generation):
		e.do(Refused{in.Generation, errNoModule.Error()})
		return
	}
	hollow := e.gen.Tree.Hollow
	drafts := e.adoptNext(in.Generation)
	gen := e.gen
	e.do(Adopted{gen.Generation})
	for _, p := range gen.Unknown {
		e.do(Note{Level: builtins.LevelWarn, Module: p.Module, Message: p.String()})
	}
	for _, name := range slices.Sorted(maps.Keys(e.modules)) {
		switch m := e.modules[name]; {
		case gen.Modules[name] != nil || m.removed:
		case m.barred():
			m.absent(e.now, e.opts.Grace)
		default:
			e.remove(m)
		}
	}
	var changes []*change
	if c := e.renew(e.global, drafts[globalName]); c != nil {
		changes = append(changes, c)
	}
	for _, name := range gen.Names {
		m := e.modules[name]
		if m == nil {
			m = e.newModule(name, gen.Modules[name], Start{})
			m.incarnation, m.broken = e.op(), e.whyBroken(name, drafts[name].own) // an earlier one may have had its name
			e.modules[name] = m
			e.bar(m.hooks, in.Barred)
			continue
		}
		if m.removed {
			m.removed, m.stays = false, time.Time{} // its end, if that is under way, is waited for
			m.serves = nil                          // the driver has heard that it is gone
			for _, h := range m.hooks {
				h.review = nil
			}
		}
		if c := e.renew(m, drafts[name]); c != nil {
			changes = append(changes, c)
		}
	}
	e.arrange()
	for _, m := range e.all() {
		m.from = gen.Of(m.name)
	}
	e.applySections()
	e.valuesMoved(nil, e.layers.Compose(), nil) // a module that was edited moves without the user
	for _, c := range changes {
		e.bar(c.fresh, in.Barred)
		e.bar(c.edited, in.Barred)
		e.begun(c)
	}
	e.lookAtFolders(hollow)
	e.noteOrder()
	e.config.Anew()
	e.applyConfig()
}

// arrange puts the modules in order: those with a problem come last, and then those that are not
// in the tree. All have to be touched.
func (e *Engine) arrange() {
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(e.modules)) {
		if e.modules[name].removed {
			gone = append(gone, name)
		}
	}
	e.agenda.Arrange(append([]string{globalName}, e.gen.Order()...), gone)
}

// adoptNext makes the next generation the one in force, with modules that are held as they were.
func (e *Engine) adoptNext(next *generation.Generation) map[string]draft {
	before := e.gen
	e.gen = next.Whole()
	drafts := e.drafts(before)
	in := adoption.Input{Before: before.Generation, Next: next, Unusable: map[string]string{globalName: e.global.broken}, Errors: map[string]string{}, Changed: map[string]bool{}}
	for name, m := range e.modules {
		in.Unusable[name] = m.broken
	}
	for name, d := range drafts {
		in.Errors[name], in.Changed[name] = d.own, !d.same || d.values != nil
	}
	if gen := adoption.Decide(in); gen != next {
		e.gen = gen.Whole()
	}
	for name := range e.gen.Held {
		m := e.module(name)
		drafts[name] = draft{gen: m.gen, same: true, own: m.own}
	}
	for name, why := range e.gen.Unfit {
		d := drafts[name]
		d.gen, d.own = e.gen.Modules[name], why
		drafts[name] = d
	}
	return drafts
}

// drafts looks at all modules of the generation that e.gen is for now, each by itself.
func (e *Engine) drafts(before *generation.Whole) map[string]draft {
	out := map[string]draft{}
	look := func(name string, g *generation.Module, old *module) {
		if g == nil {
			g = noGlobal
		}
		d := draft{gen: g, same: old != nil && old.gen == g}
		switch moved := !reflect.DeepEqual(before.Section(g), e.gen.Section(g)); {
		case d.same && !moved:
			d.own = old.own
		default:
			d.values, d.own = e.staticValues(g)
			if g.Err != nil {
				d.own = message.List(g.Err.Error())
			}
		}
		out[name] = d
	}
	look(globalName, e.gen.Global, e.global)
	for _, name := range e.gen.Names {
		look(name, e.gen.Modules[name], e.modules[name])
	}
	return out
}

// noGlobal stands for the global hooks of a tree that has none. Nothing changes it.
var noGlobal = &generation.Module{Name: globalName, Key: globalName, Global: true}

func noModule(g *generation.Generation) bool { return len(g.Names) == 0 && g.Global == nil }

var errNoModule = errors.New("there is no module in it")

// Follow returns the generation that comes into force after another one, for a process that has
// not started yet: see [Reload].
func Follow(o Options, before, next *generation.Generation) (*generation.Generation, error) {
	if noModule(next) {
		return nil, errNoModule
	}
	e := New(o)
	e.gen = before.Whole()
	e.adopt(Start{Generation: before})
	e.adoptNext(next)
	return e.gen.Generation, nil
}
