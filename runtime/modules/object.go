// Package modules knows the Module objects: their definition, what their specs ask for, which
// status they should have, and it keeps them so. There is one object per module of an instance,
// made by Starling; users write its spec, Starling its status.
package modules

import (
	"encoding/json"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/object"
)

const (
	// APIVersion and Kind are those of Module objects.
	APIVersion = effect.ModuleAPIVersion
	Kind       = effect.ModuleKind
	// ReconcileAnnotation is [effect.ReconcileAnnotation].
	ReconcileAnnotation = effect.ReconcileAnnotation
)

// Object is a Module object, as far as it is watched. Spec and Status are JSON texts with sorted
// keys: a thousand objects are held in little memory, and two are compared with ==.
type Object struct {
	Name, UID  string
	Generation int64
	// Version is the resourceVersion.
	Version string
	// Label is the value of [effect.InstanceLabel]; empty: it has none.
	Label string
	// Reconcile is the value of [ReconcileAnnotation]; empty: it has none.
	Reconcile string
	Deleting  bool
	// Instance is spec.instance; empty: it has none. Says: the spec asks for anything else.
	Instance string
	Says     bool
	// Spec and Status are empty where the object has none.
	Spec, Status string
}

// Filter keeps of an object what [Read] reads.
func Filter(obj map[string]any) (starlark.Value, bool, error) {
	metadata, spec := effect.At[map[string]any](obj, "metadata"), effect.At[map[string]any](obj, "spec")
	says := false
	for field := range spec {
		says = says || field != "instance"
	}
	return object.New(map[string]any{
		"name": metadata["name"], "uid": metadata["uid"], "generation": metadata["generation"], "version": metadata["resourceVersion"],
		"deleting":  metadata["deletionTimestamp"] != nil,
		"label":     effect.At[any](metadata, "labels", effect.InstanceLabel),
		"reconcile": effect.At[any](metadata, "annotations", ReconcileAnnotation),
		"instance":  spec["instance"], "says": says, "spec": textOf(spec), "status": textOf(effect.At[map[string]any](obj, "status")),
	}), true, nil
}

// Read reads what [Filter] has kept.
func Read(kept starlark.Value) Object {
	o, _ := kept.(*object.Object)
	if o == nil {
		return Object{}
	}
	m := o.Map()
	text := func(key string) string { return effect.At[string](m, key) }
	return Object{
		Name: text("name"), UID: text("uid"), Generation: effect.At[int64](m, "generation"), Version: text("version"),
		Label: text("label"), Reconcile: text("reconcile"), Deleting: m["deleting"] == true,
		Instance: text("instance"), Says: m["says"] == true, Spec: text("spec"), Status: text("status"),
	}
}

// textOf is plain JSON data as a text; two are the same when their texts are. It is empty without data.
func textOf(plain map[string]any) string {
	if len(plain) == 0 {
		return ""
	}
	data, _ := json.Marshal(plain) // with sorted keys; it came as JSON
	return string(data)
}

// Owner names the instance that the object belongs to; empty: none yet. A spec.instance counts
// before the label, so that a user can hand an object over.
func (o Object) Owner(own effect.Instance) (name string, ours bool) {
	switch us := nameOf(own); {
	case o.Instance != "":
		return o.Instance, o.Instance == us
	case o.Label == own.Label():
		return us, true
	}
	return o.Label, false
}

// Others says whether another instance takes its config from a ConfigMap: one of the objects belongs to the instance
// of that name.
func Others(objects map[string]Object, own effect.Instance, ref effect.Ref) bool {
	of := effect.Instance{Namespace: ref.Namespace, Name: ref.Name}
	if ref.APIVersion != "v1" || ref.Kind != "ConfigMap" || of == own {
		return false
	}
	for _, o := range objects {
		if _, is := o.Owner(of); is {
			return true
		}
	}
	return false
}

// nameOf names an instance as spec.instance does.
func nameOf(i effect.Instance) string { return i.Namespace + "/" + i.Name }

// Config is what the spec asks of the engine.
func (o Object) Config() engine.ConfigObject {
	var spec struct {
		Values  *json.RawMessage
		Enabled *bool
		Paused  bool
		Drift   string
	}
	_ = json.Unmarshal([]byte(o.Spec), &spec) // the definition has seen to the types
	out := engine.ConfigObject{Generation: o.Generation, Enabled: spec.Enabled, Paused: spec.Paused, Drift: spec.Drift}
	if spec.Values != nil {
		out.Values = string(*spec.Values)
	}
	return out
}

// ref names the object of a module.
func ref(module string) effect.Ref {
	return effect.Ref{APIVersion: APIVersion, Kind: Kind, Name: module}
}
