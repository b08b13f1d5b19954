package values

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// keyPattern is a pattern of patternProperties, or without an expression one of texts.
type keyPattern struct {
	*regexp.Regexp
	size int // how many instructions it has
}

// work is what it takes to match a key, in steps of [check].
func (p keyPattern) work(key string) int { return visitWork/10 + len(key)*(1+patternWork*p.size) }

// knownFields is which fields a shape has, what stands in gaps, and what Helm needs.
type knownFields struct {
	fields   map[string]*knownFields
	names    []string       // of fields, sorted
	patterns []knownPattern // in the order of their texts; the first one counts
	rest     *knownFields   // additionalProperties
	items    *knownFields
	all      bool // all fields are allowed
	embedded bool // an object of Kubernetes
	scalar   bool // no map and no list

	value    any // the default, nil for none
	nullable bool
	forHelm  []string // x-required-for-helm
	asks     bool     // it, or something below, has forHelm
}

type knownPattern struct {
	keyPattern
	*knownFields
}

// newKnownFields reads a shape. Its defaults get those inside them, so that whoever checks a default sees it as values
// will have it. They take from the room; once that is used up, defaults stay as they stand in the schema.
func newKnownFields(m map[string]any, keys map[string]keyPattern, room *room) *knownFields {
	types := splitTypes(m)
	needs, _ := m[forHelm].([]any)
	k := &knownFields{
		// Without a type and fields a shape takes every value.
		all: m[open] == true || m["additionalProperties"] == true ||
			len(types) == 0 && m["properties"] == nil && m["patternProperties"] == nil && m["additionalProperties"] == nil,
		embedded: m["x-kubernetes-embedded-resource"] == true,
		scalar:   len(types) > 0 && !slices.Contains(types, "object"),
		value:    m["default"], nullable: m["nullable"] == true, forHelm: texts(needs),
		fields: map[string]*knownFields{},
	}
	below := func(v any) *knownFields {
		c, isSchema := v.(map[string]any)
		if !isSchema {
			return nil
		}
		field := newKnownFields(c, keys, room)
		k.asks = k.asks || field.asks
		return field
	}
	k.asks = len(needs) > 0
	fields, _ := m["properties"].(map[string]any)
	k.names = slices.Sorted(maps.Keys(fields))
	for _, name := range k.names {
		k.fields[name] = below(fields[name])
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		k.patterns = append(k.patterns, knownPattern{keys[text], below(patterns[text])})
	}
	k.rest, k.items = below(m["additionalProperties"]), below(m["items"])
	if k.value == nil {
		return k
	}
	if whole := k.fill(k.value, room); !room.used() {
		k.value, m["default"] = whole, whole
	}
	return k
}

// of returns what is known of a field; nil: nothing, or the work is done.
func (k *knownFields) of(key string, work *int) *knownFields {
	if field, named := k.fields[key]; named {
		return field
	}
	for _, p := range k.patterns {
		if *work -= p.work(key); *work < 0 {
			return nil
		}
		if p.MatchString(key) {
			return p.knownFields
		}
	}
	return k.rest
}

const notSetYet = "is required before the chart can be rendered, and nobody has set it yet"

// missing is what x-required-for-helm asks for and is not there.
func (k *knownFields) missing(v any, path string) (out []Problem) {
	if k == nil || !k.asks {
		return nil
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			out = append(out, k.items.missing(e, joinIndex(path, i))...)
		}
	case map[string]any:
		for _, name := range k.forHelm {
			if v[name] == nil {
				out = append(out, Problem{Path: joinKey(path, name), Message: notSetYet})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			field := cmp.Or(k.fields[key], k.rest)
			out = append(out, field.missing(v[key], joinKey(path, key))...)
		}
	}
	return out
}

// unknowns are fields that a schema does not have.
type unknowns struct {
	found []Problem
	work  int // what is left of maxWork
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
			if len(u.found) >= maxProblems || u.work < 0 {
				return
			}
			p := joinKey(path, key)
			switch field := k.of(key, &u.work); {
			case u.work < 0:
				u.found = append(u.found, Problem{Message: tooMuch})
			case field != nil:
				u.look(v[key], field, p)
			case k.all, k.embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
			default:
				u.found = append(u.found, Problem{Path: p, Message: unknownMessage(key, k)})
			}
		}
	}
}

func unknownMessage(key string, k *knownFields) string {
	if hint := message.Nearest(key, k.names); hint != "" {
		return "unknown field" + didYouMean(hint)
	}
	names := slices.Clone(k.names)
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
