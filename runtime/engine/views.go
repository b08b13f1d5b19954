package engine

import (
	"maps"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/modules/values"
)

// view is what hooks and the chart of a module see.
func (e *Engine) view(m *module) map[string]any {
	if m == e.global {
		return map[string]any{globalName: m.composed}
	}
	return values.ModuleView(m.composed, e.global.composed)
}

// sees is the view of a module with nothing in `global` but what the module reads of it: as
// long as that stays the same, nothing of the module can differ.
func (e *Engine) sees(m *module) map[string]any {
	view := e.view(m)
	global, _ := view[values.GlobalKey].(map[string]any)
	view[values.GlobalKey] = m.gen.Reads.Of(global)
	return view
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
