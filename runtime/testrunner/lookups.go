package testrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
)

// shown are watches of objects that a test hands over, by binding.
type shown map[string]*watch.Local

func (s shown) Snapshot(id string) []starlark.Value   { return s[id].Snapshot() }
func (s shown) About(id, key string) []starlark.Value { return s[id].About(key) }

func (s shown) Find(id, namespace, name string) (watch.Entry, bool, bool) {
	found, there := s[id].Find(namespace, name)
	return found, there, true
}

// Reading implements [builtins.World].
func (w *world) Reading(ctx context.Context, desired starlark.Callable, objects map[string][]map[string]any) (o builtins.LookupsOptions, err error) {
	h := w.controllerOf(desired)
	if h == nil {
		if len(objects) > 0 {
			err = errors.New("no controller of the module has this function as its desired, so nobody knows what it reads")
		}
		return o, err
	}
	watches, names := shown{}, []string{}
	for _, b := range h.Bindings {
		if b.Watch.Read == "" {
			continue
		}
		host, log := func() *script.Host { return w.o.Generation.Host }, lines{w.say}
		spec := watch.Spec{ID: b.Name, APIVersion: b.Watch.APIVersion, Kind: b.Watch.Kind, Filter: hook.Filter(ctx, host, b.Watch, log)}
		spec.Wakes, spec.WakesID = hook.Indexed(ctx, host, b.Watch, log)
		watches[b.Name] = watch.NewLocal(spec)
		watches[b.Name].Replace(objects[b.Watch.Read], w.Now())
		if err, _ := watches[b.Name].Failure(); err != nil {
			return o, fmt.Errorf("%s: %w", b.Watch.Read, err)
		}
		names = append(names, b.Watch.Read)
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("%s does not read %q (it reads: %s)", h.ID, name, strings.Join(names, ", "))
		}
	}
	o.Bindings = h.Bindings
	o.Namespaced = func(apiVersion, kind string) bool {
		k, known := w.w.Store().KindOf(schema.FromAPIVersionAndKind(apiVersion, kind))
		return known && k.Namespaced
	}
	o.Rows = func(l effect.Lookup) ([]starlark.Value, error) { return executor.RowsAt(watches, l.Watch, l.At), nil }
	return o, nil
}

// controllerOf returns the controller of the module that has a function as its desired, or nil. The test has
// loaded the file once more, so it is another function of the same place.
func (w *world) controllerOf(desired starlark.Callable) *generation.Hook {
	fn, is := desired.(*starlark.Function)
	m := w.o.Generation.Modules[w.module]
	if w.module == "global" {
		m = w.o.Generation.Global
	}
	if !is || m == nil {
		return nil
	}
	for _, h := range m.Hooks {
		if of, is := h.Fn.(*starlark.Function); is && h.Controller != nil && of.Position().String() == fn.Position().String() {
			return h
		}
	}
	return nil
}
