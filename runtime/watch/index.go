package watch

import (
	"slices"

	"go.starlark.net/starlark"
)

// index names the rows of a view by the keys that they wake, sorted. Nil: nobody has asked since all rows
// came anew.
type index map[string][]objectKey

func (x index) add(r *row) {
	if x == nil || r.wakes == nil {
		return
	}
	for _, key := range r.wakes.Keys {
		if i, found := slices.BinarySearchFunc(x[key], r.objectKey, compareKeys); !found {
			x[key] = slices.Insert(x[key], i, r.objectKey)
		}
	}
}

func (x index) drop(r *row) {
	if x == nil || r.wakes == nil {
		return
	}
	for _, key := range r.wakes.Keys {
		i, found := slices.BinarySearchFunc(x[key], r.objectKey, compareKeys)
		switch {
		case !found:
		case len(x[key]) == 1:
			delete(x, key)
		default:
			x[key] = slices.Delete(x[key], i, i+1)
		}
	}
}

// insert puts the row of an object that has none at its place.
func (v *view) insert(i int, next *row) {
	v.index.add(next)
	v.rows = slices.Insert(v.rows, i, next)
}

// exchange puts a row in the place of that of the same object.
func (v *view) exchange(i int, next *row) {
	if current := v.rows[i]; !current.wakes.Equal(next.wakes) {
		v.index.drop(current)
		v.index.add(next)
	}
	v.rows[i] = next
}

// about returns the values of the rows that wake a key. Those that wake all are not among them.
func (v *view) about(key string) []starlark.Value {
	if v.index == nil {
		v.index = make(index)
		for _, r := range v.rows {
			v.index.add(r)
		}
	}
	named := v.index[key]
	out := make([]starlark.Value, 0, len(named))
	for _, name := range named {
		_, r := v.find(name)
		out = append(out, r.value)
	}
	return out
}
