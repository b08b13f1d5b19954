package spec

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// refParts are what follows the api version of a reference that is written out.
var refParts = [...]string{"kind", "name", "namespace"}

// takeRef takes the parts of a reference that is written out from the arguments, so that they need no parameters.
func (c *Call) takeRef(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, error) {
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
		return nil, nil, fmt.Errorf(`a reference that is written out needs api version, kind and name: %s("v1", "ConfigMap", "name")`, c.Spec.Name)
	}
	c.Written = &ref
	return args[:min(len(args), 1)], others, nil
}
