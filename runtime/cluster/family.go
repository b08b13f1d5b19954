package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// ControllerLabel is the value of [reconcile.ControllerLabel] of a controller's children.
func ControllerLabel(in effect.Instance, hookID string) string {
	sum := sha256.Sum256([]byte(in.Label() + "/" + hookID))
	return hex.EncodeToString(sum[:16])
}

// FamilyOf is what a run of a controller knows of the children of its parent, which are in these snapshots.
func FamilyOf(in effect.Instance, hookID string, snapshots map[string][]starlark.Value, seal *effect.Seal) *hook.Family {
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
		Find: func(ref effect.Ref) map[string]any {
			for binding, rows := range snapshots {
				for _, v := range rows {
					if o, is := v.(*object.Object); is && strings.HasPrefix(binding, builtins.FieldsBinding) && effect.RefOf(o.Map()) == ref {
						return o.Map()
					}
				}
			}
			return nil
		},
		Fields:     func(h reconcile.Holder) hook.Fields { return fieldsOf(h, h.Manager(hookID)) },
		Same:       func(want, live map[string]any) bool { return Same(want, live, manager, "") },
		Owns:       func(want, live map[string]any) bool { return Owns(want, live, manager, "") },
		Applied:    func(live map[string]any) map[string]any { return appliedOf(live, manager, false) },
		Form:       func(want, live map[string]any) string { return Form(want, live, manager) },
		StatusSame: func(want, live map[string]any) bool { return Same(want, live, manager, "status") },
		StatusOf:   func(live map[string]any) (map[string]any, time.Time) { return StatusOf(live, manager) },
		Writer: func(live map[string]any) hook.Written {
			made, signed := Written(seal, live, manager)
			return hook.Written{Ours: made && (signed || seal.TakesUnsigned()), Unsigned: made && !signed, By: Taker(live, manager)}
		},
	}
}

// fieldsOf is what is known of the fields that a manager has for a holder.
func fieldsOf(h reconcile.Holder, manager string) hook.Fields {
	return hook.Fields{
		Manager: manager,
		Writer: func(live map[string]any, mark string) hook.Written {
			return hook.Written{Ours: apply.FieldsOf(live, manager, "").Owns("annotations", mark), By: Taker(live, manager)}
		},
		Same: func(want, live map[string]any) bool { return Same(want, live, manager, h.Subresource) },
		Owns: func(want, live map[string]any) bool { return Owns(want, live, manager, h.Subresource) },
		Rival: func(want, live map[string]any, mark string) hook.Rival {
			return Rival(want, live, manager, mark, h.Subresource)
		},
	}
}
