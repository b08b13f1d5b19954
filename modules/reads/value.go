package reads

import (
	"maps"
	"slices"
	"strings"
)

// value is what is known of a value in a template. The zero one has nothing to do with the
// global values, or all of it is read already.
type value struct {
	// root: it may be what a chart's templates get: .Values, .Release and so on.
	root bool
	// values: it may be the values of a chart or of a subchart.
	values bool
	// global are the places below `global` at which it may be, as keysOf knows them.
	global map[string]bool
	// keys: it may be a dict or list that a template has made, with these under known keys.
	keys map[string]value
}

const (
	// maxKeys bounds each of the maps of a value, maxNested how deep values lie in values.
	maxKeys   = 200
	maxNested = 4
	// maxDeep is how many keys a place may have.
	maxDeep = 20
)

func (v value) plain() bool { return !v.root && !v.values && len(v.global) == 0 && len(v.keys) == 0 }

// join returns what may be one or the other. Grown says that b adds to a; fits is false for a
// value that becomes too large to be followed.
func join(a, b value, nested int) (out value, grown, fits bool) {
	if b.plain() {
		return a, false, true
	}
	if nested > maxNested {
		return value{}, true, false
	}
	out = value{root: a.root || b.root, values: a.values || b.values, global: a.global, keys: a.keys}
	grown = out.root != a.root || out.values != a.values
	for place := range b.global {
		if !out.global[place] {
			if len(out.global) == len(a.global) {
				out.global = maps.Clone(a.global)
			}
			if out.global == nil {
				out.global = map[string]bool{}
			}
			out.global[place], grown = true, true
		}
	}
	cloned := false
	for _, k := range slices.Sorted(maps.Keys(b.keys)) {
		below, more, ok := join(a.keys[k], b.keys[k], nested+1)
		if !ok {
			return value{}, true, false
		}
		if !more {
			continue
		}
		if !cloned {
			if out.keys, cloned = maps.Clone(a.keys), true; out.keys == nil {
				out.keys = map[string]value{}
			}
		}
		out.keys[k], grown = below, true
	}
	return out, grown, len(out.global) <= maxKeys && len(out.keys) <= maxKeys
}

// below is the place of a key in the map at a place.
func below(place, key string) string { return place + "\x00" + key }

// keysOf are the keys of a place.
func keysOf(place string) []string {
	if place == "" {
		return nil
	}
	return strings.Split(place[1:], "\x00")
}
