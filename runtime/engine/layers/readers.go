package layers

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/object"
)

// readers are the modules by the keys below `global` that they read something of; those that
// read all, or may, are below anyKey.
type readers map[string]map[*Module]bool

const anyKey = ""

func (r readers) keys(m *Module) []string {
	keys, all := m.reads().Keys()
	if all {
		return []string{anyKey}
	}
	return keys
}

func (r readers) add(m *Module) {
	for _, k := range r.keys(m) {
		if r[k] == nil {
			r[k] = map[*Module]bool{}
		}
		r[k][m] = true
	}
}

func (r readers) drop(m *Module) {
	for _, k := range r.keys(m) {
		if delete(r[k], m); len(r[k]) == 0 {
			delete(r, k)
		}
	}
}

// of are the modules, in the order of their names, that may read something that differs.
func (r readers) of(was, now map[string]any) []*Module {
	found := maps.Clone(r[anyKey])
	if found == nil {
		found = map[*Module]bool{}
	}
	for k, before := range was {
		if after, still := now[k]; !still || !equal(before, after) {
			maps.Copy(found, r[k])
		}
	}
	for k := range now {
		if _, there := was[k]; !there {
			maps.Copy(found, r[k])
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b *Module) int { return strings.Compare(a.gen.Name, b.gen.Name) })
}

// equal is quick: maps that differ in memory may be equal all the same.
func equal(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, isMapToo := b.(map[string]any)
	if isMap && isMapToo {
		return object.Identical(x, y)
	}
	return reflect.DeepEqual(a, b)
}
