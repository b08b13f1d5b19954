package executor

import (
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// ofChildren has a watch show the children of a controller alone.
func (x *Executor) ofChildren(a engine.StartWatch) (labels string) {
	return reconcile.ControllerLabel + "=" + cluster.ControllerLabel(x.o.Instance, a.Hook.Controls())
}

// family is what a run of a controller knows of children; nil for any other hook.
func (x *Executor) family(a engine.RunHook, snapshots map[string][]starlark.Value) *hook.Family {
	if a.Hook.Controller == nil {
		return nil
	}
	f := cluster.FamilyOf(x.o.Instance, a.Hook.Controls(), snapshots, x.o.Client.Seal())
	f.Find = func(ref effect.Ref) (live map[string]any) {
		binding := builtins.FieldsOf(kindOf(ref), "").Name
		e, _, _ := x.o.Watches.Find(a.Watches[binding], ref.Namespace, ref.Name)
		if o, is := e.Result.(*object.Object); is {
			live = o.Map()
		}
		return live
	}
	return f
}

// bare are events without what they carry: a controller goes by what is there.
func bare(events []builtins.Event) []builtins.Event {
	out := slices.Clone(events)
	for i := range out {
		out[i].Result, out[i].Object = nil, nil
	}
	return out
}

func kindOf(ref effect.Ref) reconcile.Kind {
	return reconcile.Kind{APIVersion: ref.APIVersion, Kind: ref.Kind}
}
