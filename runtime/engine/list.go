package engine

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// The names of the modules that are on are a global value, as if a global hook had called values.default:
// so layers, readers and explanations know of it. It is there in trees that mention it.

// listed are the modules that are on, in their order: those before a module, or all for "". A module that
// waits, or with which something is wrong, is among them while its release is there. Known is false while
// one of them is not decided.
func (v *View) listed(before string) (names []any, known bool) {
	names = []any{}
	for _, name := range v.order() {
		if name == before {
			break
		}
		switch m := v.modules[name]; {
		case m.verdict.Is == verdicts.Undecided:
			return nil, false
		case m.verdict.Is == verdicts.IsOn, m.verdict.Is == verdicts.Stays && m.pass.Installed():
			names = append(names, name)
		}
	}
	return names, true
}

// listModules makes the names of the modules that are on a value, once all are decided. Global hooks come
// first in each sweep: so modules that move in one sweep are one change.
func (e *Engine) listModules(global *module) {
	if !e.gen.Lists {
		return
	}
	if names, known := e.listed(""); known {
		ops := []effect.ValueOp{{Op: effect.OpDefault, Path: []string{values.GlobalKey, values.EnabledModules}, Value: names}}
		if !values.Equal(global.values.Layer(values.LayerEnabled), ops) {
			global.values.Set(values.LayerEnabled, ops)
			e.valuesMoved(nil, global.values.Show(), nil)
		}
	}
	e.touchAll(func(m *module) bool { // enabled() and readiness() may wait for those before it
		return !m.removed && m.asks() && m.verdict.Asks && !m.eval.Done && !m.eval.Running
	})
}

// readsList says whether the module may read which modules are on.
func (g *ground) readsList(m *module) bool {
	if _, set := g.config.Accepted().Global[values.EnabledModules]; set || !g.gen.Lists {
		return false
	}
	keys, all := m.gen.Reads.Keys()
	return all || slices.Contains(keys, values.EnabledModules)
}

// unlisted says whether the module reads which modules are on, while that is not known: a chart that was
// rendered without it could take objects away.
func (v *View) unlisted(m *module) bool {
	return v.gen.Lists && len(v.global.values.Layer(values.LayerEnabled)) == 0 && v.readsList(m)
}

// viewOfEnabled are the values that enabled() sees. Which modules are on hangs on its answer: it sees those
// before it in the order, once they are decided.
func (v *View) viewOfEnabled(m *module) (view map[string]any, known bool) {
	view = m.values.View()
	if !v.readsList(m) {
		return view, true
	}
	names, known := v.listed(m.name)
	global := map[string]any{}
	if all, isMap := view[values.GlobalKey].(map[string]any); isMap {
		maps.Copy(global, all)
	}
	global[values.EnabledModules] = names
	view[values.GlobalKey] = global
	return view, known
}
