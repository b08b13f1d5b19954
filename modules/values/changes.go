package values

import (
	"maps"
	"reflect"
	"slices"
)

// The kinds of a [Change].
const (
	ChangeAdd    = "add"
	ChangeUpdate = "update"
	ChangeRemove = "remove"
)

// Change is one value that differs between two states of a module's values. A list is one value.
type Change struct {
	// Path is Keys as people read them.
	Path string   `json:"path"`
	Keys []string `json:"keys"`
	// Kind is one of the Change constants.
	Kind string `json:"kind"`
	// Old and New are what was and what is there, with *** for what is known as secret; nil where nothing is.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
	// Secret: Old or New is, or holds, a secret.
	Secret bool `json:"secret,omitempty"`
	// Why is who gave the new value, or took the old one away; nil when nobody did: the layer that gave it is gone.
	Why *Source `json:"why,omitempty"`
}

// Changes returns what differs between the views of a module's values, as [ModuleView] and [GlobalView] make them, by
// path. x explains the new ones: who is behind each change, and what is secret. Secrets of the old values are known
// only where they are those of the new ones or stand at the same path.
func Changes(old, new map[string]any, x Explanation) []Change {
	entries := make(map[string]*Entry, len(x.Values))
	for i := range x.Values {
		entries[pathKey(x.Values[i].Keys)] = &x.Values[i]
	}
	var out []Change
	walkChanges(nil, old, new, func(path []string, kind string, old, new any) {
		c := Change{Path: PathString(path), Keys: path, Kind: kind, Old: old, New: new}
		var marks [][]string
		for end := len(path); end > 0; end-- {
			// A path that holds no value any more was replaced, with all that held it.
			if e := entries[pathKey(path[:end])]; e != nil {
				c.Why = &e.Chain[0].Source
				marks = marksIn(e.Chain[0].marks, path[end:])
				break
			}
		}
		var a, b bool
		c.Old, a = x.secrets.hide(old, marks)
		c.New, b = x.secrets.hide(new, marks)
		c.Secret = a || b
		out = append(out, c)
	})
	return out
}

// walkChanges calls f for each leaf that differs.
func walkChanges(path []string, old, new map[string]any, f func(path []string, kind string, old, new any)) {
	keys := map[string]bool{}
	for _, m := range []map[string]any{old, new} {
		for k := range m {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		p := append(slices.Clip(path), k)
		was, had := old[k]
		is, has := new[k]
		wasMap, _ := was.(map[string]any)
		isMap, _ := is.(map[string]any)
		switch {
		case reflect.DeepEqual(normal(was), normal(is)) && had == has:
		case len(wasMap) > 0 && len(isMap) > 0:
			walkChanges(p, wasMap, isMap, f)
		case len(wasMap) == 0 && len(isMap) == 0:
			kind := ChangeUpdate
			if !had {
				kind = ChangeAdd
			} else if !has {
				kind = ChangeRemove
			}
			f(p, kind, was, is)
		case len(wasMap) > 0: // a map has gone, or made room for something else
			walkChanges(p, wasMap, nil, f)
			if has && isMap == nil {
				f(p, ChangeAdd, nil, is)
			}
		default:
			if had && wasMap == nil {
				f(p, ChangeRemove, was, nil)
			}
			walkChanges(p, nil, isMap, f)
		}
	}
}
