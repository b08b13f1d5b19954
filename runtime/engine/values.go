package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// initValues gathers the module's static values, its schemas and the layers kept
// for its hooks. What is wrong with them makes the module broken, not the others.
func (e *Engine) initValues(m *module) {
	var why string
	if m.values, why = e.staticValues(m.name, m.gen); m.broken == "" {
		m.broken = why
	}
	m.addLayers()
}

// staticValues are those of a module that do not move, and what is wrong with them.
func (e *Engine) staticValues(name string, g *generation.Module) (c *values.Composer, broken string) {
	s := values.Section{Name: name, Key: g.Key}
	fail := func(err error) {
		if err != nil && broken == "" {
			broken = err.Error()
		}
	}
	if t := g.Tree; t != nil {
		if len(t.Values) > 0 {
			s.Static = append(s.Static, values.Layer{Name: "chart values.yaml", File: t.ValuesFile, Data: t.Values})
		}
		var err error
		s.ConfigSchema, s.Schema, err = g.Schemas()
		fail(err)
	}
	if section := section(e.tree, name, g.Global); section != nil {
		s.Static = append(s.Static, values.Layer{Name: "tree values.yaml", File: e.gen.Tree.ValuesFile, Data: section})
	}
	c = values.NewComposer(s)
	if broken == "" && g.Err == nil {
		if problems := c.CheckConfig(nil, nil); len(problems) > 0 {
			fail(problems[0])
		}
	}
	return c, broken
}

// section is what the tree's values.yaml says of a module.
func section(tree values.Config, name string, global bool) map[string]any {
	if global {
		return tree.Global
	}
	return tree.Sections[name]
}

// addLayers puts what hooks have set into the values.
func (m *module) addLayers() {
	layers := m.layers()
	for i, l := range layers {
		layers[i].Ops = m.sectionOps(l.Ops)
	}
	m.values = m.values.WithHooks(layers)
}

// layers are what hooks have set.
func (m *module) layers() []values.HookLayer {
	var out []values.HookLayer
	for _, h := range m.hooks {
		for s := range h.subjects {
			if len(s.layer) > 0 {
				out = append(out, values.HookLayer{Hook: s.id(), Ops: s.layer})
			}
		}
	}
	return out
}

// sectionOps are the operations on the module's own section; of a global hook,
// those below `global`.
func (m *module) sectionOps(ops []effect.ValueOp) []effect.ValueOp {
	if !m.gen.Global {
		return ops
	}
	section, _, _ := values.SplitGlobal(ops) // checked as the run ended, or as it was read
	return section
}

// recompose computes all values anew, after the global ones or the config moved.
func (e *Engine) recompose() {
	composed := e.global.values.Compose()
	if !reflect.DeepEqual(composed, e.global.composed) {
		e.nudge(e.global)
	}
	e.global.composed = composed
	e.global.view = map[string]any{globalName: e.global.composed}
	for _, m := range e.modules {
		e.recomposeModule(m)
	}
}

func (e *Engine) recomposeModule(m *module) {
	m.composed = m.values.Compose()
	view := values.ModuleView(m.composed, e.global.composed)
	if m.view != nil && reflect.DeepEqual(m.view, view) {
		return
	}
	e.moved(m, view)
}

// moved has a module look at its values, which are others now.
func (e *Engine) moved(m *module, view map[string]any) {
	m.view = view
	m.version++
	m.pass.want()
	e.nudge(m)
	e.touch(m)
}

// nudge shortens what waits long because it failed: with other values it may
// succeed.
func (e *Engine) nudge(m *module) {
	soon := e.now.Add(releaseRetry.Min)
	for _, next := range []*time.Time{&m.eval.next, &m.pass.next} {
		if next.After(soon) {
			*next = soon
		}
	}
	for _, h := range m.hooks {
		h.lane.NudgeAll(h.gen.ID, h.gen.Retry.Min)
	}
}

// setLayer makes the layer of a subject count.
func (e *Engine) setLayer(s *subject, ops []effect.ValueOp) {
	m := s.hook.module
	s.layer = ops
	m.values = m.values.WithHook(s.id(), m.sectionOps(ops))
	if m != e.global {
		now := m.values.Compose()
		switch below := now[values.GlobalKey] != nil || m.composed[values.GlobalKey] != nil; {
		case reflect.ValueOf(now).Pointer() == reflect.ValueOf(m.composed).Pointer():
		case below: // which the global values may hide
			e.recomposeModule(m)
		default: // known to differ, so what others have set need not be compared
			m.composed = now
			e.moved(m, values.ModuleView(now, e.global.composed))
		}
		return
	}
	e.recompose()
	// A switch may have moved, which no module's values show.
	e.touchAll()
}

// composer returns what a run about the subject sees as values. The function holds
// nothing that changes.
func (e *Engine) composer(s *subject) func([]effect.ValueOp) (map[string]any, error) {
	m := s.hook.module
	own, id, global := m.values, s.id(), e.global.composed
	kept := s.withKept(nil)
	if m != e.global {
		return func(ops []effect.ValueOp) (map[string]any, error) {
			v, err := own.For(id, slices.Concat(kept, ops))
			if err != nil {
				return nil, err
			}
			return values.ModuleView(v, global), nil
		}
	}
	others := e.hookSwitches(s)
	return func(ops []effect.ValueOp) (map[string]any, error) {
		section, switches, err := values.SplitGlobal(slices.Concat(kept, ops))
		if err != nil {
			return nil, err
		}
		v, err := own.For(id, section)
		if err != nil {
			return nil, err
		}
		return values.GlobalView(v, others, switches), nil
	}
}

// hookSwitches are the `<camelName>Enabled` that global hooks have set, those of
// one subject aside.
func (e *Engine) hookSwitches(except *subject) map[string]bool {
	out := map[string]bool{}
	for _, h := range e.global.hooks {
		for s := range h.subjects {
			if s == except || len(s.layer) == 0 {
				continue
			}
			_, switches, _ := values.SplitGlobal(s.layer)
			maps.Copy(out, switches)
		}
	}
	return out
}

func (e *Engine) resolveSwitch(m *module) values.Switch {
	var hooks *bool
	if on, ok := e.hookSwitches(nil)[values.EnabledKey(m.gen.Key)]; ok {
		hooks = &on
	}
	return values.ResolveSwitch(m.gen.Decl.Enabled, e.tree.Switch(m.name), hooks, e.config.accepted.Switch(m.name))
}

// check says whether the values that a run asks for may come into force.
func (e *Engine) check(s *subject, ops []effect.ValueOp) error {
	m := s.hook.module
	if len(ops) == 0 {
		return nil
	}
	if err := e.conflict(s, ops); err != nil {
		return err
	}
	if problems := m.values.CheckHook(s.id(), m.sectionOps(ops)); len(problems) > 0 {
		texts := make([]string, 0, len(problems))
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		return fmt.Errorf("values refused: %s", strings.Join(texts, "; "))
	}
	return nil
}

// conflict says whether another hook of the module sets what ops set.
func (e *Engine) conflict(s *subject, ops []effect.ValueOp) error {
	m := s.hook.module
	if !m.gen.Global {
		return m.values.Conflict(s.id(), ops)
	}
	if _, _, err := values.SplitGlobal(ops); err != nil {
		return err
	}
	return values.Conflict(m.layers(), s.id(), ops) // switches too, which no section holds
}

// firstDifference names the first path at which two values differ.
func firstDifference(a, b any) string {
	ma, aok := a.(map[string]any)
	mb, bok := b.(map[string]any)
	if !aok || !bok {
		return ""
	}
	keys := map[string]bool{}
	for k := range ma {
		keys[k] = true
	}
	for k := range mb {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if reflect.DeepEqual(ma[k], mb[k]) {
			continue
		}
		if rest := firstDifference(ma[k], mb[k]); rest != "" {
			return k + "." + rest
		}
		return k
	}
	return ""
}
