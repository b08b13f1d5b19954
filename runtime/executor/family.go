package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// controllerLabel is the value of [reconcile.ControllerLabel] of a controller's children.
func (x *Executor) controllerLabel(hookID string) string {
	sum := sha256.Sum256([]byte(x.o.Instance.Label() + "/" + hookID))
	return hex.EncodeToString(sum[:16])
}

// ofChildren has a watch show the children of a controller alone.
func (x *Executor) ofChildren(a engine.StartWatch) (labels string) {
	return reconcile.ControllerLabel + "=" + x.controllerLabel(a.Hook.ID)
}

// uidOf is the uid of a parent, "" where there is none.
func uidOf(parent starlark.Value) string {
	whole, is := parent.(*object.Object)
	if !is {
		return ""
	}
	meta, _ := whole.Map()["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

// family is what a run of a controller knows of children.
func (x *Executor) family(a engine.RunHook, snapshots map[string][]starlark.Value) *hook.Family {
	if a.Hook.Controller == nil {
		return nil
	}
	manager := effect.Manager(a.Hook.ID)
	return &hook.Family{
		Controller: x.controllerLabel(a.Hook.ID),
		Children: func(yield func(map[string]any) bool) {
			for _, rows := range snapshots {
				for _, v := range rows {
					if o, is := v.(*object.Object); is && !yield(o.Map()) {
						return
					}
				}
			}
		},
		Same:       func(want, live map[string]any) bool { return cluster.Same(want, live, manager) },
		Owns:       func(want, live map[string]any) bool { return cluster.Owns(want, live, manager) },
		StatusSame: func(want, live map[string]any) bool { return cluster.StatusSame(want, live, manager) },
		StatusOf:   func(live map[string]any) (map[string]any, time.Time) { return cluster.StatusOf(live, manager) },
		Writer: func(live map[string]any) (w hook.Written) {
			w.Ours, w.At = cluster.Written(live, manager)
			if takers := cluster.Takers(live, manager); len(takers) > 0 {
				w.By = takers[0]
			}
			return w
		},
	}
}
