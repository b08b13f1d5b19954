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
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
)

// Reading implements [builtins.World].
func (w *world) Reading(ctx context.Context, desired starlark.Callable, objects map[string][]map[string]any) (o builtins.LookupsOptions, err error) {
	h := w.controllerOf(desired)
	if h == nil {
		if len(objects) > 0 {
			err = errors.New("no controller of the module has this function as its desired, so nobody knows what it reads")
		}
		return o, err
	}
	var names []string
	host := func() *script.Host { return w.o.Generation.Host }
	o.Rows, err = executor.RowsOf(ctx, host, h, lines{w.say}, w.Now(), func(read string, _ watch.Spec) ([]map[string]any, error) {
		names = append(names, read)
		return objects[read], nil
	})
	if err != nil {
		return o, err
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
		if of, is := h.Fn.(*starlark.Function); is && h.Decides() && of.Position().String() == fn.Position().String() {
			return h
		}
	}
	return nil
}
