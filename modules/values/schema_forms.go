package values

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A schema has three forms. The normal one has all that values are checked for. In the
// shape, alternatives (allOf, anyOf, oneOf) are put together: it says which fields there
// are, and what their defaults are. The structure is the shape as Kubernetes takes it in a
// CustomResourceDefinition, for rules in CEL and for lists that are sets or maps.

var alternativeKeys = []string{"allOf", "anyOf", "oneOf"}

// normalSchema copies a schema with one way to say each thing: a type is text ("integer,string"
// for a list of both), const is an enum. nested says that m stands in an alternative: only
// there additionalProperties: false tells values apart, for unknown fields are refused
// anyway.
func normalSchema(m map[string]any, nested bool) map[string]any {
	out := mapSchemas("", m, func(_, key string, c map[string]any) any {
		return normalSchema(c, nested || key == "not" || keywords[key] == schemaList)
	})
	maps.DeleteFunc(out, func(k string, v any) bool {
		_, known := keywords[k]
		return !known || k == "examples" || k == "const" || k == foreignRules ||
			k == "additionalProperties" && v == false && !nested || k == forHelm && nested
	})
	if v, given := m["type"]; given {
		types, null := typeList(v)
		if out["type"] = strings.Join(types, ","); null {
			out["nullable"] = true
		}
	}
	if one, ok := m["const"]; ok {
		if _, both := out["enum"]; both {
			all, _ := out["allOf"].([]any)
			out["allOf"] = append(slices.Clip(all), map[string]any{"enum": []any{one}})
		} else {
			out["enum"] = []any{one}
		}
	}
	if rules, ok := m[foreignRules].([]any); ok {
		own, _ := out[ownRules].([]any)
		own = slices.Clip(own)
		for _, rule := range rules {
			r, _ := rule.(map[string]any)
			own = append(own, map[string]any{"rule": r["expression"], "message": r["message"]})
		}
		out[ownRules] = own
	}
	return out
}

// mapSchemas copies a schema of the values at a path with what f makes of each schema in it, which is in the value of
// key.
func mapSchemas(at string, m map[string]any, f func(at, key string, c map[string]any) any) map[string]any {
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		child := func(at string, v any) any {
			if c, isSchema := v.(map[string]any); isSchema {
				return f(at, key, c)
			}
			return v
		}
		out[key] = m[key]
		switch kind := keywords[key]; v := m[key].(type) {
		case []any:
			if kind == schemaList {
				all := make([]any, len(v))
				for i, e := range v {
					all[i] = child(at, e)
				}
				out[key] = all
			}
		case map[string]any:
			switch kind {
			case schemaOne, schemaOrBool:
				out[key] = child(at+"[*]", v)
			case schemaMap:
				fields := make(map[string]any, len(v))
				for _, name := range slices.Sorted(maps.Keys(v)) {
					fields[name] = child(joinKey(at, name), v[name])
				}
				out[key] = fields
			}
		}
	}
	return out
}

// typeList takes what type says apart: names in order, and whether null is one beside
// others.
func typeList(v any) (types []string, null bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, false
	case []any:
		types = texts(v)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	if i := slices.Index(types, "null"); i >= 0 && len(types) > 1 {
		return slices.Delete(types, i, i+1), true
	}
	return types, false
}

// shape puts the alternatives of a normal schema together. Some are left in allOf without
// a content: they mark that the schema looks at a value as a whole.
func shape(m map[string]any) map[string]any {
	out := mapSchemas("", m, func(_, _ string, c map[string]any) any { return shape(c) })
	split, alternatives := m["not"] != nil, map[string]any(nil)
	for _, k := range alternativeKeys {
		l, _ := out[k].([]any)
		for _, e := range l {
			split = true
			if c, _ := e.(map[string]any); alternatives == nil {
				alternatives = c
			} else {
				unite(alternatives, c, true)
			}
		}
	}
	maps.DeleteFunc(out, func(k string, v any) bool { // the validator alone looks at these
		return keywords[k] == schemaList || k == "not" || k == "additionalProperties" && v == false
	})
	unite(out, alternatives, false)
	if split {
		out["allOf"] = []any{map[string]any{}}
	}
	if m["type"] == "null" {
		out["nullable"] = true
	}
	delete(out, "x-kubernetes-int-or-string")
	delete(out, "type")
	if types := typesOf(m); len(types) > 0 {
		out["type"] = strings.Join(types, ",")
	}
	return out
}

// unite adds the fields of a shape to another one. alike says that both are alternatives,
// so that neither says more than the other; else the fields of out count.
func unite(out, other map[string]any, alike bool) {
	for _, k := range []string{"properties", "patternProperties"} {
		fields, ok := other[k].(map[string]any)
		if !ok {
			continue
		}
		has, _ := out[k].(map[string]any)
		if has == nil {
			has = map[string]any{}
			out[k] = has
		}
		for name, v := range fields {
			uniteAt(has, name, v, alike)
		}
	}
	for _, k := range []string{"items", "additionalProperties"} {
		if v, ok := other[k]; ok {
			uniteAt(out, k, v, alike)
		}
	}
	for _, k := range []string{"nullable", open} {
		if other[k] == true {
			out[k] = true
		}
	}
}

// open lets all fields be.
const open = "x-kubernetes-preserve-unknown-fields"

func uniteAt(in map[string]any, k string, v any, alike bool) {
	was, there := in[k]
	a, isSchema := was.(map[string]any)
	b, also := v.(map[string]any)
	switch {
	case !there:
		in[k] = v
	case isSchema && also:
		unite(a, b, alike)
		one, other := splitTypes(a), splitTypes(b)
		switch {
		case alike && (len(one) == 0 || len(other) == 0): // one of them takes everything
			delete(a, "type")
			a[open] = true
		case alike:
			all := append(one, other...)
			slices.Sort(all)
			a["type"] = strings.Join(slices.Compact(all), ",")
		case len(one) == 0 && len(other) > 0:
			a["type"] = b["type"]
		}
	}
}

// splitTypes are the types that a normal schema or a shape names.
func splitTypes(m map[string]any) []string {
	text, _ := m["type"].(string)
	if text == "" || text == "null" {
		return nil
	}
	return strings.Split(text, ",")
}

// typesOf are the types that a normal schema allows, as far as it says: itself, by the
// values of its enum, or in its alternatives. nil: it does not say.
func typesOf(m map[string]any) []string {
	types := splitTypes(m)
	enum, _ := m["enum"].([]any)
	switch {
	case len(types) > 0:
	case m["x-kubernetes-int-or-string"] == true:
		return []string{"integer", "string"}
	case len(enum) > 0:
		for _, v := range enum {
			if v != nil {
				types = append(types, typeOf(v))
			}
		}
	default:
		for _, k := range alternativeKeys {
			if types = append(types, alternativeTypes(k, m[k])...); len(types) > 0 {
				break
			}
		}
	}
	slices.Sort(types)
	types = slices.Compact(types)
	if i := slices.Index(types, "integer"); i >= 0 && slices.Contains(types, "number") {
		types = slices.Delete(types, i, i+1)
	}
	return types
}

// alternativeTypes are the types of all alternatives, or nil when one does not say its own.
func alternativeTypes(key string, v any) []string {
	l, _ := v.([]any)
	var out []string
	for _, e := range l {
		c, _ := e.(map[string]any)
		types := typesOf(c)
		switch {
		case c["type"] == "null":
		case key == "allOf" && len(types) > 0:
			return types
		case key != "allOf" && len(types) == 0:
			return nil
		}
		out = append(out, types...)
	}
	return out
}

// typeOf is the type of plain data in the words of JSON schemas.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// structure is what Kubernetes takes of a shape. Fields that it has no form for, those of no
// type or several, of several patterns or beside named ones, are left open: the validator
// looks at them. fail hears of rules that would not be looked at.
func structure(path string, m map[string]any, fail func(path, format string, args ...any)) map[string]any {
	out := mapSchemas(path, m, func(at, key string, c map[string]any) any {
		if key == "patternProperties" || key == "allOf" {
			return c
		}
		return structure(at, c, fail)
	})
	delete(out, "patternProperties")
	switch types := splitTypes(m); {
	case slices.Equal(types, []string{"integer", "string"}):
		delete(out, "type")
		out["x-kubernetes-int-or-string"] = true
	case len(types) == 0 && m[open] == true:
	case len(types) != 1:
		delete(out, "type")
		out[open] = true
		if hasRules(m) {
			fail(path, "x-kubernetes-validations and x-kubernetes-list-type need one type, here and below, not %s", cmp.Or(strings.Join(types, ", "), "none"))
		}
	case types[0] == "array" && m["items"] == nil:
		out["items"] = map[string]any{open: true}
	}
	fields, _ := m["properties"].(map[string]any)
	patterns, _ := m["patternProperties"].(map[string]any)
	more := m["additionalProperties"]
	switch {
	case len(patterns) == 1 && len(fields) == 0 && more == nil:
		for _, v := range patterns {
			c, _ := v.(map[string]any)
			out["additionalProperties"] = structure(path+"[*]", c, fail)
		}
	case len(patterns) > 0, len(fields) > 0 && more != nil:
		delete(out, "additionalProperties")
		out[open] = true
		if hasRules(map[string]any{"patternProperties": patterns, "additionalProperties": more}) {
			fail(path, "x-kubernetes-validations and x-kubernetes-list-type do not work below additionalProperties beside properties, nor below several "+
				"patternProperties: write the rules beside them")
		}
	}
	return out
}

// hasRules says whether a shape has, in it or below, what the structure alone looks at.
func hasRules(m map[string]any) (has bool) {
	rules, _ := m[ownRules].([]any)
	kind := m["x-kubernetes-list-type"]
	has = len(rules) > 0 || kind != nil && kind != "atomic"
	mapSchemas("", m, func(_, _ string, c map[string]any) any { has = has || hasRules(c); return nil })
	return has
}
