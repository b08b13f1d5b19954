package layers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Values that a module exports are global ones, in a layer per module: who reads them is
// known, and their change concerns nobody else.

// exportsOf names the layer of what a module exports.
func exportsOf(module string) string { return values.LayerExports + " " + module }

// exporter is the module whose exports a layer holds.
func exporter(layer string) (module string, is bool) {
	return strings.CutPrefix(layer, values.LayerExports+" ")
}

// export has global values show what modules export that have moved. It returns them, and
// those that move by it.
func (l *Layers) export(moved []string) []string {
	differs := false
	for _, name := range moved {
		if m := l.modules[name]; m != nil && l.exported(name, m.exports()) {
			differs = true
		}
	}
	return l.showExports(moved, differs)
}

// exportAll is export for all modules, and for those that are gone.
func (l *Layers) exportAll(moved []string) []string {
	differs := false
	for layer := range l.global.set {
		if name, is := exporter(layer); is && l.modules[name] == nil && l.exported(name, nil) {
			differs = true
		}
	}
	for name, m := range l.modules {
		if l.exported(name, m.exports()) {
			differs = true
		}
	}
	return l.showExports(moved, differs)
}

// Unexport takes away what a module exports that is gone. It returns as [Module.Show] does.
func (l *Layers) Unexport(name string) (moved []string) {
	return l.showExports(nil, l.exported(name, nil))
}

// exported notes what a module exports, and says whether that differs from before.
func (l *Layers) exported(name string, ops []effect.ValueOp) bool {
	g, layer := l.global, exportsOf(name)
	if values.Equal(g.set[layer], ops) {
		return false
	}
	if g.set[layer] = ops; len(ops) == 0 {
		delete(g.set, layer)
	}
	g.values = g.values.WithHook(layer, g.section(ops))
	return true
}

func (l *Layers) showExports(moved []string, differs bool) []string {
	if !differs {
		return moved
	}
	now := l.global.values.Compose()
	if object.Identical(now, l.global.composed) {
		return moved
	}
	for _, name := range l.globalMoved(now) {
		if !slices.Contains(moved, name) {
			moved = append(moved, name)
		}
	}
	return moved
}

// Withhold has other modules see nothing of what this one exports, from the next [Layers.Compose] on: another
// instance has it. [Module.Renew] ends that.
func (m *Module) Withhold() {
	gen := *m.gen
	gen.Decl.Exports = nil
	m.gen = &gen
}

// maxExports bounds what one module exports, as JSON: charts that read it keep it with each revision.
const maxExports = 64 << 10

// tooMuch says why values of the module must not be exported; "" when they may be.
func (m *Module) tooMuch(all map[string]any) string {
	size := 0
	for _, text := range m.gen.Decl.Exports {
		v, _ := object.Get(all, object.Dotted(text).Resolve(all))
		data, _ := json.Marshal(v) // plain data always marshals
		size += len(data)
	}
	if size <= maxExports {
		return ""
	}
	return fmt.Sprintf("what module(exports = […]) names has %d KiB as JSON; other modules may be given 64 KiB: export less, such as the name of a Secret or a ConfigMap", (size+1023)>>10)
}

// exports are the operations that put what the module exports into the global values. More than it
// may export leaves what it exported before.
func (m *Module) exports() (ops []effect.ValueOp) {
	if len(m.gen.Decl.Exports) == 0 {
		return nil
	}
	if before := m.in.global.set[exportsOf(m.gen.Name)]; m.tooMuch(m.composed) != "" {
		return before
	}
	at := builtins.ExportsPath(m.gen.Name)
	// There is a map from the start on: templates need not ask for it.
	ops = append(ops, effect.ValueOp{Op: effect.OpMerge, Path: at, Value: map[string]any{}})
	secrets := m.Secrets().Texts()
	for _, text := range m.gen.Decl.Exports {
		path := object.Dotted(text).Resolve(m.composed)
		v, _ := object.Get(m.composed, path)
		if v == nil {
			continue
		}
		ops = append(ops, effect.ValueOp{Op: effect.OpSet, Path: slices.Concat(at, path), Value: v, Secrets: marks(v, secrets, nil)})
	}
	return ops
}

// marks are the paths in v at which texts stand that hold a secret.
func marks(v any, secrets []string, at []string) (out [][]string) {
	switch v := v.(type) {
	case string:
		if slices.ContainsFunc(secrets, func(s string) bool { return s != "" && strings.Contains(v, s) }) {
			out = append(out, slices.Clone(at))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, marks(v[key], secrets, append(slices.Clip(at), key))...)
		}
	case []any:
		for i, e := range v {
			out = append(out, marks(e, secrets, append(slices.Clip(at), strconv.Itoa(i)))...)
		}
	}
	return out
}
