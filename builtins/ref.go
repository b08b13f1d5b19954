package builtins

import (
	"errors"
	"fmt"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// References to objects: an object, a dict with its identity, or written out as
// api version, kind, name and namespace.

// refParam is the parameter of a builtin that writes to one object. It comes first.
var refParam = spec.Required("ref", spec.Ref)

// unchangedParam is the fence of writes.
var unchangedParam = spec.Keyword("if_unchanged", spec.Dict, "None")

// target reads ref= in its three forms, and the uid, if the object came along.
func (c *call) target() (ref effect.Ref, uid string, err error) {
	if c.Written != nil {
		return *c.Written, "", nil
	}
	m, err := c.plainDict("ref")
	if err != nil {
		return ref, "", err
	}
	if _, ok := m["metadata"]; !ok {
		m = map[string]any{
			"apiVersion": m["apiVersion"], "kind": m["kind"],
			"metadata": map[string]any{"name": m["name"], "namespace": m["namespace"]},
		}
	}
	if ref, err = identity(m); err != nil {
		return ref, "", fmt.Errorf("ref: %w", err)
	}
	uid, _ = m["metadata"].(map[string]any)["uid"].(string)
	return ref, uid, nil
}

// plainDict returns a dict argument as plain data, nil when it was not given.
func (c *call) plainDict(name string) (map[string]any, error) {
	v := c.Arg(name)
	if v == nil {
		return nil, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain.(map[string]any), nil // as its type was checked
}

// identified reads an argument that is an object: which one it is, and its metadata; nil when it was not given.
func (c *call) identified(param string) (ref effect.Ref, namespaced bool, metadata map[string]any, err error) {
	m, err := c.plainDict(param)
	if m == nil || err != nil {
		return ref, false, nil, err
	}
	if ref, err = identity(m); err == nil {
		ref, namespaced, err = c.ref(ref)
	}
	if err != nil {
		return ref, false, nil, fmt.Errorf("%s: %w", param, err)
	}
	return ref, namespaced, m["metadata"].(map[string]any), nil
}

// owner reads owner= of the write of ref.
func (c *call) owner(ref effect.Ref, namespaced bool) (*effect.Owner, error) {
	id, inNamespace, metadata, err := c.identified("owner")
	if metadata == nil {
		return nil, err
	}
	if inNamespace && (!namespaced || ref.Namespace != id.Namespace) {
		return nil, fmt.Errorf("owner: %s can only own objects of its namespace, not %s", id, ref)
	}
	uid, _ := metadata["uid"].(string)
	return &effect.Owner{Ref: id, UID: uid}, nil
}

// unchanged reads if_unchanged= of the write of ref.
func (c *call) unchanged(ref effect.Ref) (*effect.Unchanged, error) {
	id, _, metadata, err := c.identified("if_unchanged")
	if metadata == nil {
		return nil, err
	}
	if !id.IsA(ref.APIVersion, ref.Kind) || id.Namespace != ref.Namespace || id.Name != ref.Name {
		return nil, fmt.Errorf("if_unchanged: it is %s, not %s", id, ref)
	}
	version, _ := metadata["resourceVersion"].(string)
	if version == "" {
		return nil, errors.New("if_unchanged: metadata.resourceVersion is missing; " +
			`give the object as k8s.get or a watch with keep = "object" has it`)
	}
	uid, _ := metadata["uid"].(string)
	return &effect.Unchanged{ResourceVersion: version, UID: uid}, nil
}

// identity reads which object obj is.
func identity(obj map[string]any) (effect.Ref, error) {
	var ref effect.Ref
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return ref, errors.New(`metadata is missing or no dict; write "metadata": {"name": "a"}`)
	}
	if name, _ := metadata["name"].(string); name == "" && metadata["generateName"] != nil {
		return ref, errors.New("metadata.generateName makes another object on each run; give metadata.name, or generate_name= to k8s.create")
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
			if f.key == "apiVersion" {
				kind, _ := obj["kind"].(string)
				if version, _ := spec.KindNamed(kind); version != "" {
					return ref, fmt.Errorf(`apiVersion is missing; write "apiVersion": %q`, version)
				}
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
