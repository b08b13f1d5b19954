package crd

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// A field of crd(…) with more than its type.

// field is field(…).
type field struct {
	spec.Opaque
	schema   map[string]any
	required bool
	// fields is how many there are, with those below it.
	fields int
}

// Field declares field(…).
func Field() spec.Spec {
	return spec.New("field", spec.InLoad, spec.NoEffect, callField, spec.Required("type", spec.Any),
		spec.Keyword("required", spec.Bool, "False"), spec.Keyword("default", spec.Any, "None"),
		spec.Keyword("enum", spec.List, "[]"), spec.Keyword("min", spec.Number, "None"),
		spec.Keyword("max", spec.Number, "None"), spec.Keyword("pattern", spec.String, "None"),
		spec.Keyword("format", spec.String, "None"), spec.Keyword("keys", spec.Strings, "[]"),
		spec.Keyword("rules", spec.Dict, "{}"), spec.Keyword("immutable", spec.Bool, "False"),
		spec.Keyword("nullable", spec.Bool, "False"), spec.Keyword("doc", spec.String, "None"))
}

func callField(c *spec.Call) (starlark.Value, error) {
	m := &schemaMaker{}
	s, _, err := m.schema("type", c.Arg("type"), 0)
	if err != nil {
		return nil, err
	}
	if err := fieldValues(c, s); err != nil {
		return nil, err
	}
	if err := fieldBounds(c, s); err != nil {
		return nil, err
	}
	if err := fieldKeys(c, s); err != nil {
		return nil, err
	}
	rules, err := celRules(c.Arg("rules"))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if c.BoolOr("immutable", false) {
		rules = append(rules, map[string]any{"rule": "self == oldSelf", "message": "it cannot be changed"})
	}
	if rules != nil {
		before, _ := s["x-kubernetes-validations"].([]any)
		s["x-kubernetes-validations"] = slices.Concat(before, rules)
	}
	if c.BoolOr("nullable", false) {
		s["nullable"] = true
	}
	if doc := c.Str("doc"); doc != "" {
		s["description"] = doc
	}
	return &field{"field", s, c.BoolOr("required", false), m.fields}, nil
}

// fieldValues reads default= and enum=.
func fieldValues(c *spec.Call, s map[string]any) error {
	var allowed []any
	if list, given := c.Arg("enum").(starlark.Indexable); given {
		for i := range list.Len() {
			v, err := valueOf(list.Index(i), s)
			if err != nil {
				return fmt.Errorf("enum: element %d: %w", i, err)
			}
			allowed = append(allowed, v)
		}
	}
	if allowed != nil {
		s["enum"] = allowed
	}
	if v := c.Arg("default"); v != nil && v != starlark.None {
		plain, err := valueOf(v, s)
		if err != nil {
			return fmt.Errorf("default: %w", err)
		}
		if allowed != nil && !slices.ContainsFunc(allowed, func(a any) bool { return fmt.Sprint(a) == fmt.Sprint(plain) }) {
			return fmt.Errorf("default: %s is not in enum", spec.Clip(v.String()))
		}
		s["default"] = plain
	}
	return nil
}

// valueOf is a value of a field as plain data; it must be of the field's type.
func valueOf(v starlark.Value, s map[string]any) (any, error) {
	plain, err := object.ToPlainWithin(v, maxCRD)
	if err != nil {
		return nil, err
	}
	got := ""
	switch p := plain.(type) {
	case string:
		got = "string"
	case bool:
		got = "boolean"
	case int64, uint64:
		got = "integer"
	case float64:
		if got = "number"; p == math.Trunc(p) {
			got = "integer"
		}
	case []any:
		got = "array"
	case map[string]any:
		got = "object"
	}
	want, typed := s["type"].(string)
	switch {
	case typed && got != want && !(want == "number" && got == "integer"):
		return nil, fmt.Errorf("got %s, want %s", v.Type(), want)
	case s["x-kubernetes-int-or-string"] == true && got != "string" && got != "integer":
		return nil, fmt.Errorf("got %s, want a number or a text", v.Type())
	}
	return plain, nil
}

// fieldBounds reads min=, max=, pattern= and format=.
func fieldBounds(c *spec.Call, s map[string]any) error {
	names := map[any][2]string{
		"string": {"minLength", "maxLength"}, "array": {"minItems", "maxItems"}, "object": {"minProperties", "maxProperties"},
		"integer": {"minimum", "maximum"}, "number": {"minimum", "maximum"},
	}[s["type"]]
	bounds := [2]*float64{}
	for i, param := range []string{"min", "max"} {
		v := c.Arg(param)
		if v == nil {
			continue
		}
		f, _ := starlark.AsFloat(v)
		whole := f == math.Trunc(f) && math.Abs(f) <= math.MaxInt32
		numbers := names[i] == "minimum" || names[i] == "maximum"
		switch {
		case names[i] == "":
			return fmt.Errorf("%s: only numbers, texts, lists and dicts have one", param)
		case math.IsNaN(f) || math.IsInf(f, 0):
			return fmt.Errorf("%s: %s is no number", param, v)
		case !numbers && (!whole || f < 0):
			return fmt.Errorf("%s: %s is no length", param, v)
		}
		bounds[i] = &f
		if s[names[i]] = f; whole {
			s[names[i]] = int64(f)
		}
	}
	if bounds[0] != nil && bounds[1] != nil && *bounds[0] > *bounds[1] {
		return errors.New("min is greater than max")
	}
	for _, param := range []string{"pattern", "format"} {
		if c.Arg(param) == nil {
			continue
		}
		if s["type"] != "string" {
			return fmt.Errorf("%s: only a text has one", param)
		}
		s[param] = c.Str(param)
	}
	if text, given := s["pattern"].(string); given {
		if _, err := regexp.Compile(text); err != nil {
			return fmt.Errorf("pattern: %s", message.Line(err.Error()))
		}
	}
	return nil
}

// fieldKeys reads keys=.
func fieldKeys(c *spec.Call, s map[string]any) error {
	keys := c.Strings("keys")
	if len(keys) == 0 {
		return nil
	}
	items, _ := s["items"].(map[string]any)
	properties, is := items["properties"].(map[string]any)
	if !is {
		return errors.New("keys: only a list of dicts has them")
	}
	required, _ := items["required"].([]any)
	var names []any
	for _, key := range keys {
		p, is := properties[key].(map[string]any)
		switch {
		case !is:
			return fmt.Errorf("keys: the elements have no field %s%s", spec.Clip(key), didYouMean(key, slices.Sorted(maps.Keys(properties))))
		case !slices.Contains(required, any(key)) && p["default"] == nil:
			return fmt.Errorf("keys: %s must be required or have a default", key)
		}
		names = append(names, key)
	}
	s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"] = "map", names
	return nil
}
