// Package layers knows the values of all modules: what lies below, what the user has set,
// and what each subject of a hook has set. It says whose values move, and what a schema
// refuses of what a run asks for. It does no I/O.
package layers

import (
	"maps"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

// Options configures [Layers].
type Options struct {
	// Evaluate calls evaluate, which looks at something that others have written: what names
	// it, and parts identify it. It may refuse to.
	Evaluate func(what string, parts func() []string, evaluate func() error) error
}

// Layers is the state machine of all values.
type Layers struct {
	o       Options
	global  *Module
	modules map[string]*Module
	readers readers
	// switches are the `<camelName>Enabled` that global hooks have set.
	switches *values.Composer
}

// Module is the values of one module, or the global ones. They move with [Module.Show], when
// what a subject has set counts since then, and with [Layers.Configure].
type Module struct {
	in  *Layers
	gen *generation.Module

	values *values.Composer
	set    map[string][]effect.ValueOp // by subject

	composed map[string]any // the module's own values
	seen     map[string]any // with what the module reads of `global`
	version  int            // counts changes of seen
}

// New returns layers without a module.
func New(o Options) *Layers { return &Layers{o: o, modules: map[string]*Module{}, readers: readers{}} }

// Add adds a module, or the global values, without any value. It takes the place of the one
// of its name, which goes on by itself: global values move for it no more.
func (l *Layers) Add(gen *generation.Module) *Module {
	m := &Module{in: l, gen: gen, set: map[string][]effect.ValueOp{}}
	m.values = values.NewComposer(values.Section{Name: gen.Name, Key: gen.Key})
	if gen.Global {
		l.global, l.switches = m, values.NewComposer(values.Section{Name: gen.Name})
		return m
	}
	if before := l.modules[gen.Name]; before != nil {
		l.Drop(before)
	}
	l.modules[gen.Name] = m
	l.readers.add(m)
	return m
}

// Drop has global values move no more for a module.
func (l *Layers) Drop(m *Module) {
	if l.modules[m.gen.Name] == m {
		delete(l.modules, m.gen.Name)
		l.readers.drop(m)
	}
}

// Keep takes over what a subject had set when an earlier process ended. It counts from
// [Module.Renew] on.
func (m *Module) Keep(subject string, ops []effect.ValueOp) { m.set[subject] = ops }

// Renew puts other values below those that hooks set, see [Layers.Prepare]. Of these stay
// those of subjects that are there.
func (m *Module) Renew(gen *generation.Module, static *values.Composer, there map[string]bool) {
	maps.DeleteFunc(m.set, func(subject string, ops []effect.ValueOp) bool {
		_, derived := exporter(subject)
		return !there[subject] && !derived || len(ops) == 0
	})
	if m.in.modules[m.gen.Name] == m {
		m.in.readers.drop(m)
		defer m.in.readers.add(m)
	}
	m.gen = gen
	m.values = static.WithHooks(m.hooks(m.set, m.section))
	if m.isGlobal() {
		m.in.switches = values.NewComposer(values.Section{Name: m.gen.Name, Hooks: m.hooks(m.set, values.SwitchOps)})
	}
}

func (m *Module) isGlobal() bool { return m == m.in.global }

// hooks are layers by subject, as far as part takes them.
func (m *Module) hooks(set map[string][]effect.ValueOp, part func([]effect.ValueOp) []effect.ValueOp) []values.HookLayer {
	var out []values.HookLayer
	for _, subject := range slices.Sorted(maps.Keys(set)) {
		if ops := set[subject]; len(ops) > 0 {
			out = append(out, values.HookLayer{Hook: subject, Ops: part(ops)})
		}
	}
	return out
}

// section are the operations on the module's own section; of a global hook, those below
// `global`.
func (m *Module) section(ops []effect.ValueOp) []effect.ValueOp {
	if !m.isGlobal() {
		return ops
	}
	section, _, _ := values.SplitGlobal(ops) // checked as the run ended, or as it was read
	return section
}

// Layer is what a subject has set.
func (m *Module) Layer(subject string) []effect.ValueOp { return m.set[subject] }

// Relocate notes which run has set last what a subject has set, see [values.Relocate].
func (m *Module) Relocate(subject string, ops []effect.ValueOp) {
	if was := m.set[subject]; len(was) > 0 {
		m.set[subject] = values.Relocate(was, ops)
	}
}

// Set makes what a subject sets count. [Module.Show] shows it, together with what others set
// meanwhile: that costs as much as the values are large. Switches that move do so now.
func (m *Module) Set(subject string, ops []effect.ValueOp) (switches bool) {
	if m.set[subject] = ops; len(ops) == 0 {
		delete(m.set, subject)
	}
	m.values = m.values.WithHook(subject, m.section(ops))
	if !m.isGlobal() {
		return false
	}
	before := m.in.switches.Compose()
	m.in.switches = m.in.switches.WithHook(subject, values.SwitchOps(ops))
	return !object.Identical(before, m.in.switches.Compose())
}

// Show has the values show all that was set. It returns the names of the modules whose
// values are others then, "global" among them.
func (m *Module) Show() (moved []string) {
	now := m.values.Compose()
	switch below := now[values.GlobalKey] != nil || m.composed[values.GlobalKey] != nil; {
	case object.Identical(now, m.composed):
	case m.isGlobal():
		return m.in.globalMoved(now)
	case !below || m.compose(): // global values may hide what is below `global`
		m.composed = now
		m.moved()
		return m.in.export([]string{m.gen.Name})
	}
	return nil
}

// Configure puts what the user has set into the values. Those that this does not concern are not composed anew. It
// returns as [Module.Show] does, and modules whose own section is another: their hooks may hide it.
func (l *Layers) Configure(config values.Config) (moved []string) {
	look := map[string]*Module{}
	for name, m := range l.modules {
		if next := m.values.WithConfig(config.Sections[name]); next != m.values {
			m.values, m.seen, look[name] = next, nil, m
		}
	}
	if next := l.global.values.WithConfig(config.Global); next != l.global.values {
		was, now := l.global.composed, next.Compose()
		l.global.values, l.global.composed = next, now
		if !reflect.DeepEqual(was, now) {
			moved = append(moved, l.global.gen.Name)
			for _, m := range l.readers.of(was, now) {
				look[m.gen.Name] = m
			}
		}
	}
	return l.export(append(moved, compose(look)...))
}

// Compose composes all values anew, after other ones have come in below. It returns as
// [Module.Show] does.
func (l *Layers) Compose() (moved []string) {
	now := l.global.values.Compose()
	if !reflect.DeepEqual(now, l.global.composed) {
		moved = append(moved, l.global.gen.Name)
	}
	l.global.composed = now
	return l.exportAll(append(moved, compose(l.modules)...))
}

// compose composes the values of modules anew, and returns the names of those that have moved.
func compose(modules map[string]*Module) (moved []string) {
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if m := modules[name]; m.compose() {
			m.moved()
			moved = append(moved, name)
		}
	}
	return moved
}

// globalMoved makes global values count that are others than those before. Modules that do
// not read what differs are not looked at, and cost nothing.
func (l *Layers) globalMoved(now map[string]any) []string {
	was := l.global.composed
	l.global.composed = now
	moved := []string{l.global.gen.Name}
	for _, m := range l.readers.of(was, now) {
		if m.readsMoved() {
			m.moved()
			moved = append(moved, m.gen.Name)
		}
	}
	return moved
}

// readsMoved says, after a change of the global values, whether something is another than
// was seen. Of one that reads all, and has nothing below `global` itself, that is known.
func (m *Module) readsMoved() bool {
	switch {
	case m.composed == nil || m.composed[values.GlobalKey] != nil:
		return m.compose()
	case m.reads() == nil:
		return true
	}
	return !reflect.DeepEqual(m.reads().Of(m.in.global.composed), m.seen[values.GlobalKey])
}

// compose composes a module's own values. It says whether they, or what the module reads of
// the global ones, differ from what was seen last.
func (m *Module) compose() bool {
	m.composed = m.values.Compose()
	return m.seen == nil || !reflect.DeepEqual(m.seen, m.sees())
}

func (m *Module) moved() {
	m.seen = m.sees()
	m.version++
}

// View is what hooks and the chart see.
func (m *Module) View() map[string]any {
	if m.isGlobal() {
		return map[string]any{values.GlobalKey: m.composed}
	}
	return values.ModuleView(m.composed, m.in.global.composed)
}

// sees is the view with nothing in `global` but what the module reads of it: as long as that
// stays the same, nothing of the module can differ.
func (m *Module) sees() map[string]any {
	view := m.View()
	global, _ := view[values.GlobalKey].(map[string]any)
	view[values.GlobalKey] = m.reads().Of(global)
	return view
}

func (m *Module) reads() *reads.Reads { return m.gen.Reads }

// Seen is what was seen last: what others compare with what they have worked with. Only read.
func (m *Module) Seen() map[string]any { return m.seen }

// Version counts the changes of what is seen.
func (m *Module) Version() int { return m.version }

// Outdate counts as one: whoever has worked with the values does not know of another
// version of the module.
func (m *Module) Outdate() { m.version++ }
