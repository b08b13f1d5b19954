package object

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// Repeated is a key that a list of an object has more than once. Server-side apply refuses such an object, whatever
// the cluster makes of it otherwise.
type Repeated struct {
	// List is where the list is: spec.template.spec.containers[0].env.
	List string
	// Field and Value are the key, or its first field: name and VARONE. Field is "" where an element is its own key.
	Field, Value string
	// Refused: there is no one element that means the same. Else OnePerKey has made one, and Text says which.
	Refused bool
	// Invalid: the API server refuses it in a create, too.
	Invalid bool
	// Text is for people, and says what to do.
	Text string
	// Lost are names of ports of a container that are not there any more; its own probes have the number instead.
	Lost []string
}

// String is a line for people: where, what, and what comes of it.
func (r Repeated) String() string { return r.List + " has " + r.Text }

// OnePerKey gives an object as server-side apply takes it: each key once in each list that has keys, where one element
// can mean what the cluster makes of all of them. It says which keys were there more than once. Known are lists of
// Kubernetes' own kinds, and those of schema, an OpenAPI schema of the kind of a CustomResourceDefinition; nil for
// none. obj is left as it is, and returned when it has no key twice.
func OnePerKey(obj, schema map[string]any) (map[string]any, []Repeated) {
	var k keyedLists
	apiVersion, _ := obj["apiVersion"].(string)
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	kind, _ := obj["kind"].(string)
	for _, lists := range [][]keyed{everyKind, byKind[group+"/"+kind]} {
		obj, _ = k.all(obj, "", lists)
	}
	if schema != nil {
		k.bySchema(obj, "", schema)
	}
	return obj, k.found
}

// keyed is a list whose elements have keys, or one with such lists in it.
type keyed struct {
	at string // from the map that it is in: "spec.ports"
	// keys are the fields that tell elements apart, "protocol=TCP" with what counts where it is missing; none: an
	// element is its own key. same makes one of the elements of one key, nil: the list may have several.
	keys []string
	same func(list []any, which []int) joined
	in   []keyed
}

// joined is what elements of one key become. at is the place in the list that the one takes; all: other elements of
// the list that change with it.
type joined struct {
	one     any
	at      int
	others  map[int]any
	text    string
	lost    []string
	refused bool
	invalid bool
}

type keyedLists struct{ found []Repeated }

// all looks at lists in a map, and says whether the map that it returns is another one.
func (k *keyedLists) all(m map[string]any, path string, lists []keyed) (_ map[string]any, changed bool) {
	for _, l := range lists {
		next, differs := replaced(m, strings.Split(l.at, "."), func(list []any) ([]any, bool) {
			at := strings.TrimPrefix(path+"."+l.at, ".")
			list, inner := k.elements(list, at, l.in)
			if l.same == nil {
				return list, inner
			}
			list, outer := k.one(list, at, l.keys, l.same)
			return list, inner || outer
		})
		m, changed = next, changed || differs
	}
	return m, changed
}

func (k *keyedLists) elements(list []any, path string, in []keyed) (_ []any, changed bool) {
	for i := 0; i < len(list) && len(in) > 0; i++ {
		element, is := list[i].(map[string]any)
		if !is {
			continue
		}
		before := len(k.found)
		next, differs := k.all(element, fmt.Sprintf("%s[%d]", path, i), in)
		for _, r := range k.found[before:] {
			if len(r.Lost) > 0 {
				next = byNumber(next, r)
			}
		}
		if differs {
			if !changed {
				list, changed = slices.Clone(list), true
			}
			list[i] = next
		}
	}
	return list, changed
}

// replaced is m with another list at a place; m itself is left as it is.
func replaced(m map[string]any, at []string, change func([]any) ([]any, bool)) (_ map[string]any, changed bool) {
	var next any
	switch v := m[at[0]].(type) {
	case map[string]any:
		if len(at) > 1 {
			next, changed = replaced(v, at[1:], change)
		}
	case []any:
		if len(at) == 1 {
			next, changed = change(v)
		}
	}
	if changed {
		m = maps.Clone(m)
		m[at[0]] = next
	}
	return m, changed
}

// one makes one element of those of one key.
func (k *keyedLists) one(list []any, path string, keys []string, same func([]any, []int) joined) (_ []any, changed bool) {
	if len(list) < 2 {
		return list, false
	}
	places := make(map[string][]int, len(list))
	twice := false
	for i, element := range list {
		key, whole := keyOf(element, keys)
		if !whole {
			continue // that a field is missing or of another type is told elsewhere
		}
		places[key] = append(places[key], i)
		twice = twice || len(places[key]) > 1
	}
	if !twice {
		return list, false
	}
	list = slices.Clone(list)
	drop := map[int]bool{}
	for i, element := range list {
		key, whole := keyOf(element, keys)
		which := places[key]
		if !whole || len(which) < 2 || which[0] != i {
			continue
		}
		j := same(list, which)
		k.note(path, keys, key, len(which), j)
		if j.refused {
			continue
		}
		for _, n := range which {
			drop[n] = n != j.at
		}
		list[j.at], changed = j.one, true
		for n, other := range j.others {
			list[n] = other
		}
	}
	var rest []any
	for i, element := range list {
		if !drop[i] {
			rest = append(rest, element)
		}
	}
	return rest, changed
}

func (k *keyedLists) note(path string, keys []string, key string, n int, j joined) {
	times := "twice"
	if n > 2 {
		times = fmt.Sprintf("%d times", n)
	}
	r := Repeated{List: path, Refused: j.refused, Invalid: j.invalid, Lost: j.lost}
	r.Value, _, _ = strings.Cut(key, "\x00")
	what := message.Cut(strings.ReplaceAll(key, "\x00", "/"), 100)
	if len(keys) > 0 {
		r.Field, _, _ = strings.Cut(keys[0], "=")
		what = presets.ReplaceAllString(strings.Join(keys, "/"), "") + " " + what
	}
	r.Text = fmt.Sprintf("%s %s: %s", what, times, j.text)
	k.found = append(k.found, r)
}

var presets = regexp.MustCompile("=[^/]*")

// keyOf is the key of an element; whole says that it has all fields that make it.
func keyOf(element any, keys []string) (text string, whole bool) {
	if len(keys) == 0 {
		switch element.(type) {
		case nil, map[string]any, []any:
			return "", false
		}
		return fmt.Sprint(element), true
	}
	m, is := element.(map[string]any)
	parts := make([]string, len(keys))
	for i, field := range keys {
		v := m[field]
		if field, preset, has := strings.Cut(field, "="); has {
			if v = m[field]; v == nil {
				v = preset
			}
		}
		switch v.(type) {
		case nil, map[string]any, []any:
			return "", false
		}
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, "\x00"), is
}

// bySchema looks at the lists of a custom kind. The API server refuses a key twice, also without server-side apply.
func (k *keyedLists) bySchema(v any, path string, schema map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		rest, _ := schema["additionalProperties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if s, is := properties[name].(map[string]any); is {
				k.bySchema(v[name], Below(path, name), s)
			} else if rest != nil {
				k.bySchema(v[name], Below(path, name), rest)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		fields, _ := schema["x-kubernetes-list-map-keys"].([]any)
		switch schema["x-kubernetes-list-type"] {
		case "map":
			k.one(v, path, withDefaults(fields, items), refuse)
		case "set":
			k.one(v, path, nil, refuse)
		}
		for i, element := range v {
			k.bySchema(element, fmt.Sprintf("%s[%d]", path, i), items)
		}
	}
}

// withDefaults are fields of a key, with the default of each: an element that does not have the field has that one.
func withDefaults(fields []any, items map[string]any) (keys []string) {
	for _, field := range fields {
		name := fmt.Sprint(field)
		if preset, has := Get(items, []string{"properties", name, "default"}); has {
			name += "=" + fmt.Sprint(preset)
		}
		keys = append(keys, name)
	}
	return keys
}
