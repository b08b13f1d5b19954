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
	patterns []knownPattern // in the order of their texts
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

// of returns all that is known of a field; nil: nothing, or the work is done. The first one has the defaults.
func (k *knownFields) of(key string, work *int) (out []*knownFields) {
	if field, named := k.fields[key]; named {
		out = append(out, field)
	}
	for _, p := range k.patterns {
		if *work -= p.work(key); *work < 0 {
			return nil
		}
		if p.MatchString(key) {
			out = append(out, p.knownFields)
		}
	}
	if out == nil && k.rest != nil {
		out = append(out, k.rest)
	}
	return out
}

// first is the first of them; nil: there is none.
func (k *knownFields) first(key string, work *int) *knownFields {
	for _, field := range k.of(key, work) {
		return field
	}
	return nil
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

// look takes all that is known of a value: a field is known when one of them has it.
func (u *unknowns) look(v any, path string, known ...*knownFields) {
	known = slices.DeleteFunc(slices.Clone(known), func(k *knownFields) bool { return k == nil })
	switch v := v.(type) {
	case []any:
		var items []*knownFields
		for _, k := range known {
			items = append(items, k.items)
		}
		for i, e := range v {
			u.look(e, joinIndex(path, i), items...)
		}
	case map[string]any:
		if slices.ContainsFunc(known, func(k *knownFields) bool { return k.scalar }) {
			return // Validate says that it is no object
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(u.found) >= maxProblems || u.work < 0 {
				return
			}
			p := joinKey(path, key)
			var fields []*knownFields
			free := true
			for _, k := range known {
				fields = append(fields, k.of(key, &u.work)...)
				free = free && (k.all || k.embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key))
			}
			switch {
			case u.work < 0:
				u.found = append(u.found, Problem{Message: tooMuch})
			case fields != nil:
				u.look(v[key], p, fields...)
			case !free:
				u.found = append(u.found, Problem{Path: p, Message: unknownMessage(key, known)})
			}
		}
	}
}

func unknownMessage(key string, known []*knownFields) string {
	var names, patterns []string
	for _, k := range known {
		names = append(names, k.names...)
		for _, p := range k.patterns {
			patterns = append(patterns, fmt.Sprintf("fields that match %q", p.String()))
		}
	}
	if hint := message.Nearest(key, names); hint != "" {
		return "unknown field" + didYouMean(hint)
	}
	names = append(names, patterns...)
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
