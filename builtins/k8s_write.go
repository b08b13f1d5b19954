package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Object writes. They are recorded, and made after the run has succeeded, in the
// order of the calls.

func k8sWriteSpecs() []Spec {
	return []Spec{
		{Name: "k8s.apply", Phases: PhaseRun, Effect: EffectWrite, call: callApply,
			Doc: "Applies an object server-side once the run has succeeded: makes it, or changes the fields that are given. Needs a grant of apply, write, or create and patch.",
			Params: []Param{
				{Name: "obj", Type: TypeDict, Doc: "The object: apiVersion, kind, metadata.name and the fields that are to be so. metadata.namespace defaults to the module's, in global hooks to the operator's; metadata.managedFields is left out."},
				{Name: "force", Type: TypeBool, Default: "True", Keyword: true, Doc: "Whether to take over fields that others own; False makes that an error."},
			}},
		{Name: "k8s.delete", Phases: PhaseRun, Effect: EffectWrite, call: callDelete,
			Doc: "Deletes an object once the run has succeeded; one that is not there is no error. Needs a grant of delete or write.",
			Params: []Param{
				{Name: "ref", Type: TypeRef, Doc: "The object, or a dict with apiVersion, kind, name and namespace (these two may be under metadata), or the API version of a reference that is written out: k8s.delete(\"v1\", \"ConfigMap\", name, namespace)."},
				{Name: "kind", Type: TypeString, Default: "None", Doc: "Kind of a reference that is written out."},
				{Name: "name", Type: TypeString, Default: "None", Doc: "Name of a reference that is written out."},
				{Name: "namespace", Type: TypeString, Default: "None", Doc: "Namespace of a reference that is written out; None: the module's, in global hooks the operator's."},
				{Name: "propagation", Type: TypeString, Default: `"background"`, Keyword: true, Doc: "What becomes of what the object owns: \"background\" and \"foreground\" delete it, \"orphan\" keeps it."},
			}},
	}
}

func callApply(c *call) (starlark.Value, error) {
	plain, err := object.ToPlainAt(c.arg("obj"), []string{"obj"})
	if err != nil {
		return nil, err
	}
	obj := plain.(map[string]any) // as its type was checked
	id, err := identity(obj)
	if err != nil {
		return nil, fmt.Errorf("obj: %w", err)
	}
	if _, isList := obj["items"].([]any); isList && strings.HasSuffix(id.Kind, "List") {
		return nil, fmt.Errorf("obj: %s holds many objects; apply each of them", id.Kind)
	}
	ref, namespaced, err := c.ref(id)
	if err != nil {
		return nil, fmt.Errorf("obj: %w", err)
	}
	if err := c.allowed("apply", ref, namespaced); err != nil {
		return nil, err
	}
	metadata := obj["metadata"].(map[string]any) // as identity has checked
	delete(metadata, "managedFields")            // the API server takes none in an apply
	delete(metadata, "namespace")
	if namespaced {
		metadata["namespace"] = ref.Namespace
	}
	return nil, c.record(effect.Write{
		Kind: effect.WriteApply, Ref: ref, Object: obj, Force: c.boolOr("force", true),
	})
}

func callDelete(c *call) (starlark.Value, error) {
	given, err := c.writtenRef()
	if err != nil {
		return nil, err
	}
	propagation := c.strOr("propagation", "background")
	switch propagation {
	case "background", "foreground", "orphan":
	default:
		return nil, fmt.Errorf(`propagation: %q is none; use "background", "foreground" or "orphan"`, clip(propagation))
	}
	ref, namespaced, err := c.ref(given)
	if err != nil {
		return nil, err
	}
	if err := c.allowed("delete", ref, namespaced); err != nil {
		return nil, err
	}
	return nil, c.record(effect.Write{Kind: effect.WriteDelete, Ref: ref, Propagation: propagation})
}

// writtenRef reads ref= in its three forms.
func (c *call) writtenRef() (effect.Ref, error) {
	apiVersion, written := starlark.AsString(c.arg("ref"))
	if written {
		if c.arg("kind") == nil || c.arg("name") == nil {
			return effect.Ref{}, errors.New(`a reference that is written out needs api version, kind and name: k8s.delete("v1", "ConfigMap", "name")`)
		}
		return effect.Ref{APIVersion: apiVersion, Kind: c.str("kind"), Name: c.str("name"), Namespace: c.str("namespace")}, nil
	}
	for _, p := range []string{"kind", "name", "namespace"} {
		if c.arg(p) != nil {
			return effect.Ref{}, fmt.Errorf("%s: the object names itself; leave this out", p)
		}
	}
	plain, err := object.ToPlain(c.arg("ref"))
	if err != nil {
		return effect.Ref{}, fmt.Errorf("ref: %w", err)
	}
	m := plain.(map[string]any) // as its type was checked
	if _, ok := m["metadata"]; !ok {
		m = map[string]any{
			"apiVersion": m["apiVersion"], "kind": m["kind"],
			"metadata": map[string]any{"name": m["name"], "namespace": m["namespace"]},
		}
	}
	ref, err := identity(m)
	if err != nil {
		return ref, fmt.Errorf("ref: %w", err)
	}
	return ref, nil
}

// identity reads which object obj is.
func identity(obj map[string]any) (effect.Ref, error) {
	var ref effect.Ref
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return ref, errors.New("metadata is missing or no dict")
	}
	if name, _ := metadata["name"].(string); name == "" && metadata["generateName"] != nil {
		return ref, errors.New("metadata.generateName makes another object on each run; give metadata.name")
	}
	for _, f := range []struct {
		path     string
		from     map[string]any
		key      string
		to       *string
		optional bool
	}{
		{"apiVersion", obj, "apiVersion", &ref.APIVersion, false},
		{"kind", obj, "kind", &ref.Kind, false},
		{"metadata.name", metadata, "name", &ref.Name, false},
		{"metadata.namespace", metadata, "namespace", &ref.Namespace, true},
	} {
		v := f.from[f.key]
		if v == nil {
			if f.optional {
				continue
			}
			return ref, fmt.Errorf("%s is missing", f.path)
		}
		s, ok := v.(string)
		if !ok || s == "" && !f.optional {
			return ref, fmt.Errorf("%s is no text", f.path)
		}
		*f.to = s
	}
	return ref, nil
}

// record keeps one write until the run has succeeded.
func (c *call) record(w effect.Write) error {
	w.Pos = c.pos()
	size := len(w.Ref.Name) + len(w.Ref.Namespace)
	if w.Object != nil {
		size += object.PlainSize(w.Object)
	}
	if err := c.run.spend(len(c.run.Effects.Writes), "object writes", size); err != nil {
		return err
	}
	c.run.Effects.Writes = append(c.run.Effects.Writes, w)
	return nil
}
