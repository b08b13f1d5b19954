package crd

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// The short schemas of crd(…), and the OpenAPI that they stand for.

const (
	// maxSchemaFields and maxSchemaDepth bound the schema of one version: dicts of Starlark may be part of each other.
	maxSchemaFields = 10_000
	maxSchemaDepth  = 30
)

// crdFieldName is the name of a field, as manifests write it.
var crdFieldName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$.-]{0,199}$`)

// fieldTypes are the types that have a name.
var fieldTypes = map[string]map[string]any{
	"string":        {"type": "string"},
	"integer":       {"type": "integer"},
	"number":        {"type": "number"},
	"boolean":       {"type": "boolean"},
	"time":          {"type": "string", "format": "date-time"},
	"int-or-string": {"x-kubernetes-int-or-string": true},
	"object":        {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	"any":           {"x-kubernetes-preserve-unknown-fields": true},
}

// schemaMaker makes the OpenAPI of one version.
type schemaMaker struct{ fields int }

// schema makes the schema of one field, which nobody else holds at its top. path is for errors.
func (m *schemaMaker) schema(path string, v starlark.Value, depth int) (s map[string]any, required bool, err error) {
	m.fields++
	if depth > maxSchemaDepth {
		return nil, false, fmt.Errorf("%s: fields lie in more than %d others", spec.Clip(path), maxSchemaDepth)
	}
	switch v := v.(type) {
	case starlark.String:
		s, err = typeNamed(string(v))
	case *starlark.Dict:
		s, err = m.object(path, v, depth)
		path = "" // it is in the error
	case *field:
		m.fields += v.fields
		s, required = maps.Clone(v.schema), v.required
	default:
		switch {
		case !spec.IsList(v):
			err = fmt.Errorf(`got %s, want a type, "string", a dict of fields, a list of one of them, or field(…)`, v.Type())
		case v.(starlark.Indexable).Len() != 1:
			err = fmt.Errorf("a list of %d elements; write the type of all elements as the only one", v.(starlark.Indexable).Len())
		default:
			var items map[string]any
			if items, _, err = m.schema(path+"[]", v.(starlark.Indexable).Index(0), depth+1); err != nil {
				return nil, false, err
			}
			s = map[string]any{"type": "array", "items": items}
		}
	}
	switch {
	case err != nil && path != "":
		err = fmt.Errorf("%s: %w", path, err)
	case err == nil && m.fields > maxSchemaFields:
		err = fmt.Errorf("it has more than %d fields", maxSchemaFields)
	}
	return s, required, err
}

// typeNamed is the schema of a type that is written as a text.
func typeNamed(text string) (map[string]any, error) {
	if rest, is := strings.CutPrefix(text, "[]"); is && len(text) < 100 {
		items, err := typeNamed(rest)
		return map[string]any{"type": "array", "items": items}, err
	}
	if rest, is := strings.CutPrefix(text, "map[string]"); is && len(text) < 100 {
		values, err := typeNamed(rest)
		return map[string]any{"type": "object", "additionalProperties": values}, err
	}
	if s, is := fieldTypes[text]; is {
		return maps.Clone(s), nil
	}
	names := slices.Sorted(maps.Keys(fieldTypes))
	if near := message.Nearest(text, names); near != "" {
		return nil, fmt.Errorf("%q is no type (did you mean %s?)", spec.Clip(text), near)
	}
	return nil, fmt.Errorf(`%q is no type; there are %s, and "[]" or "map[string]" before one`, spec.Clip(text), strings.Join(names, ", "))
}

// object is the schema of a dict of fields.
func (m *schemaMaker) object(path string, d *starlark.Dict, depth int) (map[string]any, error) {
	given, err := dictOf(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Clip(path), err)
	}
	if len(given) == 0 {
		return nil, fmt.Errorf(`%s: it holds no fields; "object" is a dict of any`, spec.Clip(path))
	}
	properties := map[string]any{}
	var required []string
	for _, item := range given {
		if !crdFieldName.MatchString(item.key) {
			return nil, fmt.Errorf("%s: %q is no name of a field", spec.Clip(path), spec.Clip(item.key))
		}
		s, must, err := m.schema(path+"."+item.key, item.value, depth+1)
		if err != nil {
			return nil, err
		}
		if properties[item.key] = s; must {
			required = append(required, item.key)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		names := make([]any, len(required))
		for i, name := range required {
			names[i] = name
		}
		s["required"] = names
	}
	return s, nil
}

// status is the schema of status=; nil: the kind has none. Conditions are owned one by one, so that several
// can set some.
func (m *schemaMaker) status(v starlark.Value) (map[string]any, error) {
	s := map[string]any{"type": "object", "properties": map[string]any{}}
	switch v := v.(type) {
	case nil, starlark.NoneType:
	case starlark.Bool:
		if !v {
			return nil, nil
		}
		return nil, errors.New("status: got True; write a dict of fields, or leave it out")
	default:
		var err error
		if s, _, err = m.schema("status", v, 0); err != nil {
			return nil, err
		}
	}
	properties, is := s["properties"].(map[string]any)
	if !is {
		return nil, errors.New("status: it holds no fields; write a dict of them")
	}
	text := func() map[string]any { return map[string]any{"type": "string"} }
	properties = maps.Clone(properties)
	s["properties"] = properties
	if properties["observedGeneration"] == nil {
		properties["observedGeneration"] = map[string]any{"type": "integer", "format": "int64"}
	}
	if properties["conditions"] == nil {
		properties["conditions"] = map[string]any{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
			"items": map[string]any{"type": "object", "required": []any{"status", "type"}, "properties": map[string]any{
				"type": text(), "reason": text(), "message": text(),
				"status":             map[string]any{"type": "string", "enum": []any{"True", "False", "Unknown"}},
				"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
				"observedGeneration": map[string]any{"type": "integer", "format": "int64"},
			}},
		}
	}
	return s, nil
}

// celRules reads a dict of rules, in its order.
func celRules(v starlark.Value) (out []any, err error) {
	given, err := dictOf(v)
	for _, item := range given {
		text, is := starlark.AsString(item.value)
		switch {
		case strings.TrimSpace(item.key) == "":
			return nil, errors.New("an expression is empty")
		case !is || text == "" || message.Line(text) != text:
			return nil, fmt.Errorf("%q: got %s, want a message in one line", spec.Clip(item.key), spec.Clip(item.value.String()))
		}
		out = append(out, map[string]any{"rule": item.key, "message": text})
	}
	return out, err
}

// hasDefaults says whether a field of an object has a default.
func hasDefaults(s map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		if p, is := p.(map[string]any); is && p["default"] != nil {
			return true
		}
	}
	return false
}

// entry is one entry of a dict.
type entry struct {
	key   string
	value starlark.Value
}

// dictOf are the entries of a dict in their order; nil has none.
func dictOf(v starlark.Value) (out []entry, err error) {
	if v == nil {
		return nil, nil
	}
	d, is := v.(*starlark.Dict)
	if !is {
		return nil, fmt.Errorf("got %s, want dict", v.Type())
	}
	for _, kv := range d.Items() {
		key, is := starlark.AsString(kv[0])
		if !is {
			return nil, fmt.Errorf("a key is a %s; write texts", kv[0].Type())
		}
		out = append(out, entry{key, kv[1]})
	}
	return out, nil
}

// didYouMean names a word that was probably meant: " (did you mean spec?)".
func didYouMean(name string, names []string) string {
	if near := message.Nearest(name, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}
