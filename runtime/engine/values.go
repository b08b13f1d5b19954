package engine

import (
	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
)

// staticValues are those of a module that do not move, and what is wrong with them: that makes the module broken, not
// the others.
func (e *Engine) staticValues(g *generation.Module) (static *values.Composer, broken string) {
	return e.layers.Prepare(g, e.gen.Section(g), e.gen.Tree.ValuesFile)
}

// renewValues puts other values below those that hooks have set.
func (m *module) renewValues(static *values.Composer) {
	there := map[string]bool{values.LayerEnabled: true}
	for _, h := range m.hooks {
		for _, s := range h.subjects.All() {
			there[s.ID()] = true
		}
	}
	m.values.Renew(m.gen, static, there)
}

// retrySoon shortens what waits long because it failed: with other values it may
// succeed.
func (t *turn) retrySoon(m *module) {
	if m.barred() {
		return
	}
	t.agenda.Moved(m.name)
	soon := t.now.Add(lane.Long.Min)
	m.pass.RetrySoon(soon)
	m.eval.Soon(soon)
	for _, h := range m.hooks {
		t.retryAll(h, h.gen.Retry.Min)
	}
}

// setLayer makes what a subject sets count. The next look at its module shows it: what sets it is an input about the
// module, or a look at it.
func (t *turn) setLayer(m *module, s *subjects.Subject, ops []effect.ValueOp, cause *effect.Cause) {
	if m.values.Set(s.ID(), ops) {
		t.switched++ // no module's values show a switch
	}
	m.moves = append(m.moves, cause)
}

// showLayers has the values of a module show all layers.
func (e *Engine) showLayers(m *module) {
	if len(m.moves) == 0 {
		return
	}
	causes := m.moves
	m.moves = nil
	e.valuesMoved(m, m.values.Show(), causes...)
}

// valuesMoved has modules look at their values, which are others now, each for all of these causes; by is the module
// whose hooks have set them, nil: none has.
func (e *Engine) valuesMoved(by *module, names []string, causes ...*effect.Cause) {
	for _, name := range names {
		m := e.any(name)
		if m.barred() {
			continue
		}
		var events []builtins.Event
		for _, cause := range causes {
			events = append(events, valuesEvent(cause))
		}
		for _, h := range m.hooks { // parents that have looked at values look again
			e.moved(h, "", nil, events...)
		}
		m.pass.Want(m == by, causes...) // of the global hooks nobody looks at it
		e.retrySoon(m)
		e.touch(m)
	}
}

// layer is what the last successful run about a subject left in the values.
func (m *module) layer(s *subjects.Subject) []effect.ValueOp { return m.values.Layer(s.ID()) }

// keptOf is what of a layer stays beside what the next run sets.
func (h *hook) keptOf(layer []effect.ValueOp) []effect.ValueOp {
	if !h.gen.KeepValues {
		return nil
	}
	return layer
}

// SecretTexts returns the secret texts of the values, and of what the subject remembers.
func (a *RunHook) SecretTexts() []string {
	texts := a.Secrets.Texts()
	for _, path := range a.StateSecrets {
		if text, ok := object.Inside(a.State, path).(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// hidden is a text about values without what hooks have set there as secrets.
func hidden(text string, secrets []string) string {
	var mask object.Mask
	for _, secret := range secrets {
		mask.Secret(secret)
	}
	return mask.Text(text)
}

func (v *View) resolveSwitch(m *module) values.Switch {
	out := values.ResolveSwitch(m.gen.Decl.Enabled, v.gen.Values.Switch(m.name),
		v.layers.Switch(values.EnabledKey(m.gen.Key)), v.config.Accepted().Switch(m.name))
	if out.Source == values.SourceConfig {
		out.From = v.config.SwitchFrom(m.name)
	}
	return out
}
