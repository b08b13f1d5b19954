package builtins

import (
	"errors"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/runtime/object"
)

// ParseObjects reads the objects of a YAML or JSON text, as kubectl apply takes it: any
// number of documents, lists of kind List taken apart. Each has apiVersion, kind and a
// name.
func ParseObjects(text string) ([]map[string]any, error) {
	docs, err := data.DecodeYAML(text)
	if err != nil {
		return nil, err
	}
	return objectsOf(docs)
}

// objectsOf reads an object, or a list of objects.
func objectsOf(v starlark.Value) ([]map[string]any, error) {
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, err
	}
	list, ok := plain.([]any)
	if !ok {
		list = []any{plain}
	}
	out := make([]map[string]any, 0, len(list))
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, errors.New("want objects, lists of them, or YAML texts")
		}
		if items, ok := m["items"].([]any); ok && m["kind"] == "List" && m["apiVersion"] == "v1" {
			more, err := objectsOf(object.FromPlain(items))
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			continue
		}
		if _, err := identity(m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
