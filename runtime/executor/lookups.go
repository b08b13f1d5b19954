package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
)

// errIncomplete ends a run that has looked at a watch which does not show all there is any more.
var errIncomplete = errors.New("the watch is not complete any more")

// Rows are those that a watch keeps.
type Rows interface {
	Snapshot(id string) []starlark.Value
	About(id, key string) []starlark.Value
	Find(id, namespace, name string) (found watch.Entry, there, known bool)
}

// RowsAt returns the rows of a watch at a place of an [effect.Lookup], sorted by namespace and name.
func RowsAt(rows Rows, id, place string) []starlark.Value {
	key, object := strings.CutPrefix(place, effect.AtObject(""))
	switch {
	case place == effect.Everywhere:
		return rows.Snapshot(id)
	case !object:
		return rows.About(id, place)
	}
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	if found, there, _ := rows.Find(id, namespace, name); there {
		return []starlark.Value{found.Result}
	}
	return nil
}

// shown are watches of objects that somebody hands over, by binding.
type shown map[string]*watch.Local

func (s shown) Snapshot(id string) []starlark.Value   { return s[id].Snapshot() }
func (s shown) About(id, key string) []starlark.Value { return s[id].About(key) }

func (s shown) Find(id, namespace, name string) (watch.Entry, bool, bool) {
	found, there := s[id].Find(namespace, name)
	return found, there, true
}

// RowsOf returns what answers the lookups of a controller out of objects that somebody hands over: those of one
// watch of reads=, without its filter and its index, at a time. The error is theirs, or that of objects.
func RowsOf(ctx context.Context, host func() *script.Host, h *generation.Hook, log builtins.Logger, now time.Time,
	objects func(read string, spec watch.Spec) ([]map[string]any, error)) (func(effect.Lookup) ([]starlark.Value, error), error) {
	watches := shown{}
	for _, b := range h.Bindings {
		if b.Watch.Read == "" {
			continue
		}
		spec := watchSpec(b.Name, b.Watch)
		found, err := objects(b.Watch.Read, spec)
		if err != nil {
			return nil, err
		}
		spec.Filter = hook.Filter(ctx, host, b.Watch, log)
		spec.Wakes, spec.WakesID = hook.Indexed(ctx, host, b.Watch, log)
		watches[b.Name] = watch.NewLocal(spec)
		watches[b.Name].Replace(found, now)
		if err, _ := watches[b.Name].Failure(); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Watch.Read, err)
		}
	}
	return func(l effect.Lookup) ([]starlark.Value, error) { return RowsAt(watches, l.Watch, l.At), nil }, nil
}

// lookups answers where a run of a controller looks. The rows are those of then: the engine hears of what
// moves from the beginning of the run on. Lost is set when an answer may lack rows.
func (x *Executor) lookups(a engine.RunHook, lost *atomic.Bool) func(effect.Lookup) ([]starlark.Value, error) {
	return func(l effect.Lookup) ([]starlark.Value, error) {
		if !a.Synced[l.Watch] { // its kind is not served
			return nil, nil
		}
		rows := RowsAt(x.o.Watches, a.Watches[l.Watch], l.At)
		if !x.o.Watches.Complete(a.Watches[l.Watch]) {
			lost.Store(true)
			return nil, errIncomplete
		}
		return rows, nil
	}
}

// reads says whether a binding is one of reads= of a controller.
func reads(h *generation.Hook, binding string) bool {
	b := h.Binding(binding)
	return b != nil && b.Watch.Read != ""
}
