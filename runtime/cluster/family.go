package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
)

// ControllerLabel is the value of [reconcile.ControllerLabel] of a controller's children.
func ControllerLabel(in effect.Instance, hookID string) string {
	sum := sha256.Sum256([]byte(in.Label() + "/" + hookID))
	return hex.EncodeToString(sum[:16])
}

// FamilyOf is what a run of a controller knows of the children of its parent, which are in these snapshots.
func FamilyOf(in effect.Instance, hookID string, snapshots map[string][]starlark.Value) *hook.Family {
	manager := effect.Manager(hookID)
	return &hook.Family{
		Controller: ControllerLabel(in, hookID),
		Children: func(yield func(map[string]any) bool) {
			for _, rows := range snapshots {
				for _, v := range rows {
					if o, is := v.(*object.Object); is && !yield(o.Map()) {
						return
					}
				}
			}
		},
		Same:       func(want, live map[string]any) bool { return Same(want, live, manager) },
		Owns:       func(want, live map[string]any) bool { return Owns(want, live, manager) },
		StatusSame: func(want, live map[string]any) bool { return StatusSame(want, live, manager) },
		StatusOf:   func(live map[string]any) (map[string]any, time.Time) { return StatusOf(live, manager) },
		Writer: func(live map[string]any) (w hook.Written) {
			w.Ours, w.At = Written(live, manager)
			if takers := Takers(live, manager); len(takers) > 0 {
				w.By = takers[0]
			}
			return w
		},
	}
}
