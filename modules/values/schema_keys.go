package values

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// keyPattern is a pattern of patternProperties.
type keyPattern struct {
	*regexp.Regexp
	size int // how many instructions it has
}

// work is what it takes to match a key, in steps of [check].
func (p keyPattern) work(key string) int { return visitWork/10 + len(key)*(1+patternWork*p.size) }

// keyPatterns compiles all patterns of keys of a schema in its normal form, once each.
func keyPatterns(m map[string]any, found map[string]keyPattern) {
	patterns, _ := m["patternProperties"].(map[string]any)
	for text := range patterns {
		if _, done := found[text]; done {
			continue
		}
		if re, err := regexp.Compile(text); err == nil { // the parser has said it of others
			found[text] = keyPattern{Regexp: re, size: patternSize(text)}
		}
	}
	for k, v := range m {
		switch keywords[k] {
		case schemaOne, schemaOrBool:
			if c, ok := v.(map[string]any); ok {
				keyPatterns(c, found)
			}
		case schemaList:
			l, _ := v.([]any)
			for _, e := range l {
				if c, ok := e.(map[string]any); ok {
					keyPatterns(c, found)
				}
			}
		case schemaMap:
			fields, _ := v.(map[string]any)
			for _, e := range fields {
				if c, ok := e.(map[string]any); ok {
					keyPatterns(c, found)
				}
			}
		}
	}
}

// knownFields is which fields a shape has.
type knownFields struct {
	fields   map[string]*knownFields
	patterns []knownPattern
	rest     *knownFields // additionalProperties
	items    *knownFields
	all      bool // all fields are allowed
	embedded bool // an object of Kubernetes
	scalar   bool // no map and no list
}

type knownPattern struct {
	keyPattern
	*knownFields
}

func newKnownFields(m map[string]any, keys map[string]keyPattern) *knownFields {
	types := splitTypes(m)
	k := &knownFields{
		all:      m[open] == true || m["additionalProperties"] == true || len(types) == 0 && saysNothingOfFields(m),
		embedded: m["x-kubernetes-embedded-resource"] == true,
		scalar:   len(types) > 0 && !slices.Contains(types, "object"),
	}
	fields, _ := m["properties"].(map[string]any)
	for name, v := range fields {
		if k.fields == nil {
			k.fields = map[string]*knownFields{}
		}
		c, _ := v.(map[string]any)
		k.fields[name] = newKnownFields(c, keys)
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		c, _ := patterns[text].(map[string]any)
		k.patterns = append(k.patterns, knownPattern{keys[text], newKnownFields(c, keys)})
	}
	if c, ok := m["additionalProperties"].(map[string]any); ok {
		k.rest = newKnownFields(c, keys)
	}
	if c, ok := m["items"].(map[string]any); ok {
		k.items = newKnownFields(c, keys)
	}
	return k
}

// saysNothingOfFields says that a shape names no field: without a type it takes every value.
func saysNothingOfFields(m map[string]any) bool {
	return m["properties"] == nil && m["patternProperties"] == nil && m["additionalProperties"] == nil
}

// unknowns are fields that a schema does not have.
type unknowns struct {
	found []Problem
	work  int
}

func (u *unknowns) look(v any, k *knownFields, path string) {
	if k == nil {
		return
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			u.look(e, k.items, joinIndex(path, i))
		}
	case map[string]any:
		if k.scalar {
			return // Validate says that it is no object
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(u.found) >= maxProblems || u.work > maxWork {
				return
			}
			u.field(v[key], k, path, key)
		}
	}
}

func (u *unknowns) field(v any, k *knownFields, path, key string) {
	p := joinKey(path, key)
	if field, ok := k.fields[key]; ok {
		u.look(v, field, p)
		return
	}
	for _, pattern := range k.patterns {
		if u.work += pattern.work(key); u.work > maxWork {
			u.found = append(u.found, Problem{Message: tooMuch})
			return
		}
		if pattern.MatchString(key) {
			u.look(v, pattern.knownFields, p)
			return
		}
	}
	switch {
	case k.rest != nil:
		u.look(v, k.rest, p)
	case k.all:
	case k.embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
	default:
		u.found = append(u.found, Problem{Path: p, Message: unknownMessage(key, k)})
	}
}

func unknownMessage(key string, k *knownFields) string {
	names := slices.Sorted(maps.Keys(k.fields))
	if hint := message.Nearest(key, names); hint != "" {
		return "unknown field" + didYouMean(hint)
	}
	for _, p := range k.patterns {
		names = append(names, fmt.Sprintf("fields that match %q", p.String()))
	}
	const few = 8
	switch {
	case len(names) == 0:
		return "unknown field; the schema has no fields here (add properties, additionalProperties or " +
			"x-kubernetes-preserve-unknown-fields: true to it)"
	case len(names) > few:
		return "unknown field; the schema does not have it"
	}
	return "unknown field; the schema has " + strings.Join(names, ", ")
}
