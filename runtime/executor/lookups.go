package executor

import (
	"errors"
	"strings"
	"sync/atomic"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
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
