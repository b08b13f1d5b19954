package hook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// filterLimits bound the filter's look at one object: it is in the way of every
// event of its watch.
var filterLimits = script.Limits{Steps: 1_000_000, Wall: time.Second}

// askedLimits bound the functions of module.star, which are asked again and again.
var askedLimits = script.Limits{Steps: 10_000_000, Wall: 5 * time.Second}

// Filter returns what a watch keeps of an object, nil for the object itself. The result that a
// filter returns is kept as plain data: nothing of the object stays behind it.
// Host is asked for anew for each object: a watch may outlive the generation that has
// brought it.
func Filter(ctx context.Context, host func() *script.Host, w *builtins.WatchBinding, log builtins.Logger) func(map[string]any) (starlark.Value, bool, error) {
	switch {
	case w.HoldsFields:
		return func(obj map[string]any) (starlark.Value, bool, error) {
			return object.New(reconcile.FieldsOf(obj)), true, nil
		}
	case w.Filter != nil:
		return func(obj map[string]any) (starlark.Value, bool, error) {
			v, err := ofObject(ctx, host(), w.Filter, obj, "filter", log)
			if v == starlark.None {
				return nil, false, nil
			}
			var plain any
			if err == nil {
				if plain, err = object.ToPlain(v); err != nil {
					err = fmt.Errorf("%s: the filter's result: %w", w.Pos, err)
				}
			}
			if err != nil {
				return nil, false, hideSecret(w, obj, err)
			}
			return object.FromPlain(plain), true, nil
		}
	case w.FilterFields != nil:
		paths := make([]object.Path, len(w.FilterFields))
		for i, f := range w.FilterFields {
			paths[i] = object.Dotted(f)
		}
		return func(obj map[string]any) (starlark.Value, bool, error) {
			return object.New(keepFields(obj, paths)), true, nil
		}
	}
	return nil
}

// ofObject calls a function of a watch with an object.
func ofObject(ctx context.Context, host *script.Host, fn starlark.Callable, obj map[string]any, name string,
	log builtins.Logger) (starlark.Value, error) {
	v, _, err := host.Call(ctx, fn, starlark.Tuple{object.New(obj)}, script.CallOptions{
		Name: name, Context: &builtins.Context{Phase: spec.InFilter, Log: log}, Limits: filterLimits,
	})
	return v, err
}

// hideSecret hides what a Secret holds in the error of a function that has looked at it.
func hideSecret(w *builtins.WatchBinding, obj map[string]any, err error) error {
	if !isSecret(w.APIVersion, w.Kind) {
		return err
	}
	var m object.Mask
	m.Data(obj)
	return maskErr(&m, err)
}

// keepFields returns the object with its identity, its labels and the paths alone. Maps
// of the object are put into the result as they are, and never written to: others may
// read them at the same time.
func keepFields(obj map[string]any, paths []object.Path) map[string]any {
	meta := effect.Only(effect.At[map[string]any](obj, "metadata"), "name", "namespace", "labels")
	out := map[string]any{"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta}
	whole := [][]string{{"metadata", "labels"}}
	all := make([][]string, len(paths))
	for i, p := range paths {
		all[i] = p.Resolve(obj)
	}
	// A text that holds others comes before them, which then are there already.
	slices.SortStableFunc(all, func(a, b []string) int { return len(a) - len(b) })
	for _, keys := range all {
		v, ok := object.Get(obj, keys)
		if !ok || slices.ContainsFunc(whole, func(w []string) bool { return len(w) <= len(keys) && slices.Equal(w, keys[:len(w)]) }) {
			continue
		}
		whole = append(whole, keys)
		object.Put(out, keys, v)
	}
	return out
}

// ChartValues returns what the chart sees of the values: all of them, below values_key= when the module asks for that,
// or what def chart_values(v) returns. Texts that secrets returns are hidden in its error. Where there are no global
// values, a chart that looks at the values as a whole gets no key for them, as from Helm.
func ChartValues(ctx context.Context, host *script.Host, m *generation.Module, view map[string]any, secrets func() []string, now time.Time, log builtins.Logger) (map[string]any, error) {
	out, err := chartValues(ctx, host, m, view, secrets, now, log)
	if global, is := out[values.GlobalKey].(map[string]any); !is || len(global) > 0 {
		return out, err
	}
	_, own := m.Tree.Values[values.GlobalKey]
	_, ofChart := m.Tree.ChartValues[values.GlobalKey]
	if _, whole := m.ChartReads.Keys(); own || ofChart || !whole { // a template that names one may rest on the map
		return out, err
	}
	out = maps.Clone(out)
	delete(out, values.GlobalKey)
	return out, err
}

func chartValues(ctx context.Context, host *script.Host, m *generation.Module, view map[string]any, secrets func() []string, now time.Time, log builtins.Logger) (map[string]any, error) {
	if key := m.Decl.ValuesKey; key != "" {
		nested := map[string]any{}
		for k, v := range view {
			if k != values.GlobalKey {
				nested[k] = v
			}
		}
		global, _ := view[values.GlobalKey].(map[string]any)
		view = values.ModuleView(m.BesideOwn(), global)
		view[key] = nested
	}
	if m.ChartValues == nil {
		return view, nil
	}
	s := &Seen{}
	s.known(secrets)
	v, _, err := host.Call(ctx, m.ChartValues, starlark.Tuple{object.FromPlain(view)}, script.CallOptions{
		Name: m.Name + "/chart_values",
		Context: &builtins.Context{Phase: spec.InFilter, Log: log, Run: &builtins.Run{
			Module: m.Name, Hook: "chart_values", Now: now,
			Compose: func([]effect.ValueOp) (map[string]any, error) { return view, nil },
		}},
		Limits: askedLimits,
	})
	if err != nil {
		return nil, s.Err(err)
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, s.Err(fmt.Errorf("chart_values(): %w", err))
	}
	out, ok := plain.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("module %s: chart_values() returned %s; it must return a dict", m.Name, v.Type())
	}
	return out, nil
}
