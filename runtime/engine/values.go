package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

// initValues gathers the module's static values, its schemas and the layers kept
// for its hooks. An error in them makes the module broken, not the others.
func (e *Engine) initValues(m *module) {
	var why string
	if m.values, why = e.staticValues(m.name, m.gen); m.broken == "" {
		m.broken = why
	}
	e.addLayers(m)
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
	err := e.marked("values of "+name, func() string { return staticDigest(s, g) }, func() error {
		c = values.NewComposer(s)
		if broken == "" && g.Err == nil {
			if problems := c.CheckConfig(nil, nil); len(problems) > 0 {
				return problems[0]
			}
		}
		return nil
	})
	fail(err)
	if c == nil { // it must not be evaluated
		c = values.NewComposer(values.Section{Name: s.Name, Key: s.Key})
	}
	return c, broken
}

// staticDigest identifies the values of a module that do not move, and its schemas.
func staticDigest(s values.Section, g *generation.Module) string {
	parts := []string{g.SchemasDigest()}
	for _, l := range s.Static {
		data, err := json.Marshal(l.Data)
		if err != nil {
			return "" // no number: its name alone identifies it
		}
		parts = append(parts, string(data))
	}
	return digestOf(parts...)
}

// section is what the tree's values.yaml says of a module.
func section(tree values.Config, name string, global bool) map[string]any {
	if global {
		return tree.Global
	}
	return tree.Sections[name]
}

// addLayers puts what hooks have set into the values.
func (e *Engine) addLayers(m *module) {
	layers := m.layers(func(s *subject) []effect.ValueOp { return s.layer })
	if m.gen.Global {
		switches := slices.Clone(layers)
		for i, l := range layers {
			switches[i].Ops = values.SwitchOps(l.Ops)
		}
		e.hookSwitches = values.NewComposer(values.Section{Name: globalName, Hooks: switches})
	}
	for i, l := range layers {
		layers[i].Ops = m.sectionOps(l.Ops)
	}
	m.values = m.values.WithHooks(layers)
}

// layers are what hooks have set.
func (m *module) layers(of func(*subject) []effect.ValueOp) []values.HookLayer {
	var out []values.HookLayer
	for _, h := range m.hooks {
		for s := range h.subjects {
			if layer := of(s); len(layer) > 0 {
				out = append(out, values.HookLayer{Hook: s.id(), Ops: layer})
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

// recompose computes all values anew, after the config or what is kept moved.
func (e *Engine) recompose() {
	now := e.global.values.Compose()
	if !reflect.DeepEqual(now, e.global.composed) {
		e.retrySoon(e.global)
	}
	e.global.composed = now
	for _, m := range e.modules {
		e.recomposeModule(m)
	}
}

// globalMoved makes global values count that are others than those before. Modules that do
// not read what differs are not looked at; for one that reads all, something is known to.
func (e *Engine) globalMoved(now map[string]any) {
	e.retrySoon(e.global)
	e.global.composed = now
	for _, m := range e.modules {
		if m.composed == nil || m.composed[values.GlobalKey] != nil {
			e.recomposeModule(m)
		} else if m.gen.Reads == nil || !reflect.DeepEqual(m.gen.Reads.Of(now), m.seen[values.GlobalKey]) {
			e.moved(m, e.sees(m))
		}
	}
}

func (e *Engine) recomposeModule(m *module) {
	m.composed = m.values.Compose()
	seen := e.sees(m)
	if m.seen != nil && reflect.DeepEqual(m.seen, seen) {
		return
	}
	e.moved(m, seen)
}

// moved has a module look at its values, which are others now.
func (e *Engine) moved(m *module, seen map[string]any) {
	m.seen = seen
	m.version++
	m.pass.want(e.cause)
	e.retrySoon(m)
	e.touch(m)
}

// retrySoon shortens what waits long because it failed: with other values it may
// succeed.
func (e *Engine) retrySoon(m *module) {
	e.planWake(m)
	soon := e.now.Add(releaseRetry.Min)
	for _, next := range []*time.Time{&m.eval.retry.At, &m.pass.retry.At} {
		if next.After(soon) {
			*next = soon
		}
	}
	for _, h := range m.hooks {
		h.lane.RetryAllSoon(h.gen.ID, h.gen.Retry.Min)
	}
}

// moves are changes of layers that the values of their module do not show yet: those of one
// write are shown at once, for that costs as much as the values are large.
type moves struct {
	any   bool
	cause *effect.Cause // of the shortest row of runs that has led to them
	own   bool          // all are of hooks of the module's pass
}

func (x *moves) add(cause *effect.Cause, own bool) {
	if !x.any || x.cause.Compare(cause) > 0 {
		x.cause = cause
	}
	x.any, x.own = true, own && (x.own || !x.any)
}

// setLayer makes the layer of a subject count. The next look at its module shows it.
func (e *Engine) setLayer(s *subject, ops []effect.ValueOp, cause *effect.Cause, own bool) {
	m := s.hook.module
	s.layer = ops
	m.values = m.values.WithHook(s.id(), m.sectionOps(ops))
	m.moves.add(cause, own)
	e.touch(m)
	if m != e.global {
		return
	}
	before := e.hookSwitches.Compose()
	e.hookSwitches = e.hookSwitches.WithHook(s.id(), values.SwitchOps(ops))
	if reflect.ValueOf(before).Pointer() != reflect.ValueOf(e.hookSwitches.Compose()).Pointer() {
		e.touchAll() // no module's values show it
	}
}

// showLayers has the values of a module show all layers.
func (e *Engine) showLayers(m *module) {
	if !m.moves.any {
		return
	}
	shown, version := m.moves, m.version
	m.moves = moves{}
	e.cause = shown.cause
	now := m.values.Compose()
	switch below := now[values.GlobalKey] != nil || m.composed[values.GlobalKey] != nil; {
	case reflect.ValueOf(now).Pointer() == reflect.ValueOf(m.composed).Pointer():
	case m == e.global:
		e.globalMoved(now)
	case below: // which the global values may hide
		e.recomposeModule(m)
	default: // known to differ, so what others have set need not be compared
		m.composed = now
		e.moved(m, e.sees(m))
	}
	e.cause = nil
	if shown.own {
		m.pass.own += m.version - version
	}
}

// composer returns what a run about the subject sees as values. The function holds
// nothing that changes.
func (e *Engine) composer(s *subject) func([]effect.ValueOp) (map[string]any, error) {
	m := s.hook.module
	own, id, global := m.values, s.id(), e.global.composed
	kept := s.hook.keptOf(s.layer)
	if m != e.global {
		return func(ops []effect.ValueOp) (map[string]any, error) {
			v, err := own.For(id, slices.Concat(kept, ops))
			if err != nil {
				return nil, err
			}
			return values.ModuleView(v, global), nil
		}
	}
	others := onlySwitches(e.hookSwitches.WithHook(id, nil))
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

// secrets returns the texts of a module's values that hooks have set as secrets. The
// function holds nothing that changes.
func (e *Engine) secrets(m *module) func() []string {
	own, global := m.values, e.global.values
	return func() []string {
		if own == global {
			return own.SecretTexts()
		}
		return append(own.SecretTexts(), global.SecretTexts()...)
	}
}

// secretsOf is secrets for a run about the subject, with those that it remembers.
func (e *Engine) secretsOf(s *subject) func() []string {
	values, state, at := e.secrets(s.hook.module), s.state, s.stateSecrets
	return func() []string {
		texts := values()
		for _, path := range at {
			if text, ok := object.Inside(state, path).(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
}

// hidden is a text about a module's values without what hooks have set there as secrets.
func (e *Engine) hidden(m *module, text string) string {
	var mask object.Mask
	for _, secret := range e.secrets(m)() {
		mask.Secret(secret)
	}
	return mask.Text(text)
}

// onlySwitches are the `<camelName>Enabled` that global hooks have set.
func onlySwitches(c *values.Composer) map[string]bool {
	out := map[string]bool{}
	for name, v := range c.Compose() {
		out[name] = v == true
	}
	return out
}

func (e *Engine) resolveSwitch(m *module) values.Switch {
	var hooks *bool
	if on, ok := e.hookSwitches.Compose()[values.EnabledKey(m.gen.Key)].(bool); ok {
		hooks = &on
	}
	return values.ResolveSwitch(m.gen.Decl.Enabled, e.tree.Switch(m.name), hooks, e.config.Accepted().Switch(m.name))
}

// check says whether the values that a run asks for may come into force.
func (e *Engine) check(p *proposal, r *run) error {
	s, m := r.subject, r.hook.module
	ops := slices.Concat(s.hook.keptOf(p.of(s)), r.effects.Values)
	if len(ops) == 0 {
		return nil
	}
	if err := p.conflict(s, ops); err != nil {
		return err
	}
	var problems []values.Problem
	digest := func() string { return digestOf(s.hook.gen.Digest, m.gen.SchemasDigest()) }
	err := e.marked("values of hook "+s.hook.gen.ID, digest, func() error {
		if problems = p.values.CheckHook(s.id(), m.sectionOps(ops)); len(problems) > 0 {
			return problems[0]
		}
		return nil
	})
	if err != nil && len(problems) == 0 {
		return err
	}
	if len(problems) > 0 {
		texts := make([]string, 0, len(problems))
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		return fmt.Errorf("values refused: %s", strings.Join(texts, "; "))
	}
	return nil
}

// conflict says whether another hook of the module sets what ops set.
func (p *proposal) conflict(s *subject, ops []effect.ValueOp) error {
	m := s.hook.module
	if !m.gen.Global {
		return p.values.Conflict(s.id(), ops)
	}
	section, _, err := values.SplitGlobal(ops)
	if err != nil {
		return err
	}
	if p.values.Conflict(s.id(), section) == nil && p.switches.Conflict(s.id(), values.SwitchOps(ops)) == nil {
		return nil
	}
	return values.Conflict(m.layers(p.of), s.id(), ops) // with paths as the hook has them
}
