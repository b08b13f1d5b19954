package builtins

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// References to objects: an object, a dict with its identity, or written out as
// api version, kind, name and namespace.

// refParam is the parameter of a builtin that writes to one object. It comes first.
var refParam = required("ref", TypeRef)

// unchangedParam is the fence of writes.
var unchangedParam = keyword("if_unchanged", TypeDict, "None")

// refParts are what follows the api version of a reference that is written out.
var refParts = [...]string{"kind", "name", "namespace"}

// takeRef takes the parts of a reference that is written out from the arguments, so
// that they need no parameters.
func (c *call) takeRef(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
	var first starlark.Value
	if len(args) > 0 {
		first = args[0]
	}
	parts := map[string]starlark.Value{}
	var others []starlark.Tuple
	for _, kv := range kwargs {
		name, _ := starlark.AsString(kv[0])
		if slices.Contains(refParts[:], name) {
			parts[name] = kv[1]
			continue
		}
		if name == "ref" && first == nil {
			first = kv[1]
		}
		others = append(others, kv)
	}
	apiVersion, written := first.(starlark.String)
	if !written {
		for _, part := range refParts {
			if parts[part] != nil && first != nil {
				return nil, nil, fmt.Errorf("%s: the object names itself; leave this out", part)
			}
		}
		return args, others, nil
	}
	for i, part := range refParts {
		if i+1 >= len(args) {
			break
		}
		if parts[part] != nil {
			return nil, nil, fmt.Errorf("%s is given twice", part)
		}
		parts[part] = args[i+1]
	}
	if len(args) > len(refParts)+1 {
		return nil, nil, errors.New("what follows a reference that is written out goes by keyword")
	}
	ref := effect.Ref{APIVersion: string(apiVersion)}
	for part, to := range map[string]*string{"kind": &ref.Kind, "name": &ref.Name, "namespace": &ref.Namespace} {
		switch v := parts[part].(type) {
		case nil, starlark.NoneType:
		case starlark.String:
			*to = string(v)
		default:
			return nil, nil, fmt.Errorf("%s: got %s, want string", part, v.Type())
		}
	}
	if parts["kind"] == nil || parts["name"] == nil {
		return nil, nil, fmt.Errorf(`a reference that is written out needs api version, kind and name: %s("v1", "ConfigMap", "name")`, c.spec.Name)
	}
	c.written = &ref
	return args[:min(len(args), 1)], others, nil
}

// target reads ref= in its three forms, and the uid, if the object came along.
func (c *call) target() (ref effect.Ref, uid string, err error) {
	if c.written != nil {
		return *c.written, "", nil
	}
	plain, err := object.ToPlain(c.arg("ref"))
	if err != nil {
		return ref, "", fmt.Errorf("ref: %w", err)
	}
	m := plain.(map[string]any) // as its type was checked
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

// owner reads owner= of the write of ref.
func (c *call) owner(ref effect.Ref, namespaced bool) (*effect.Owner, error) {
	v := c.arg("owner")
	if v == nil {
		return nil, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, fmt.Errorf("owner: %w", err)
	}
	m := plain.(map[string]any) // as its type was checked
	id, err := identity(m)
	if err != nil {
		return nil, fmt.Errorf("owner: %w", err)
	}
	id, inNamespace, err := c.ref(id)
	if err != nil {
		return nil, fmt.Errorf("owner: %w", err)
	}
	if inNamespace && (!namespaced || ref.Namespace != id.Namespace) {
		return nil, fmt.Errorf("owner: %s can only own objects of its namespace, not %s", id, ref)
	}
	uid, _ := m["metadata"].(map[string]any)["uid"].(string)
	return &effect.Owner{Ref: id, UID: uid}, nil
}

// unchanged reads if_unchanged= of the write of ref.
func (c *call) unchanged(ref effect.Ref) (*effect.Unchanged, error) {
	v := c.arg("if_unchanged")
	if v == nil {
		return nil, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, fmt.Errorf("if_unchanged: %w", err)
	}
	m := plain.(map[string]any) // as its type was checked
	id, err := identity(m)
	if err != nil {
		return nil, fmt.Errorf("if_unchanged: %w", err)
	}
	if id, _, err = c.ref(id); err != nil {
		return nil, fmt.Errorf("if_unchanged: %w", err)
	}
	if !sameKind(id, ref) || id.Namespace != ref.Namespace || id.Name != ref.Name {
		return nil, fmt.Errorf("if_unchanged: it is %s, not %s", id, ref)
	}
	metadata := m["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	if version == "" {
		return nil, errors.New(`if_unchanged: metadata.resourceVersion is missing; give the object as k8s.get or a watch with keep = "object" has it`)
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
				if version, _ := kindNamed(kind); version != "" {
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
