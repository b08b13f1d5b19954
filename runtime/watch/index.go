package watch

import "slices"

// index has the rows of a view by the keys that they wake, sorted. Nil: nobody has asked since all rows
// came anew.
type index map[string][]*row

// add puts a row under those of its keys that are asked for; nil: all.
func (x index) add(r *row, asked func(key string) bool) {
	if x == nil || r.wakes == nil {
		return
	}
	for _, key := range r.wakes.Keys {
		if asked != nil && !asked(key) {
			continue
		}
		if i, found := x.find(key, r); !found {
			x[key] = slices.Insert(x[key], i, r)
		}
	}
}

func (x index) drop(r *row) {
	if x == nil || r.wakes == nil {
		return
	}
	for _, key := range r.wakes.Keys {
		i, found := x.find(key, r)
		switch {
		case !found:
		case len(x[key]) == 1:
			delete(x, key)
		default: // the key is that of a row which stays: it may lie in the memory of its result
			rest := slices.Delete(x[key], i, i+1)
			at, _ := slices.BinarySearch(rest[0].wakes.Keys, key)
			x[rest[0].wakes.Keys[at]] = rest
		}
	}
}

// find returns the place of the object of a row.
func (x index) find(key string, r *row) (int, bool) {
	return slices.BinarySearchFunc(x[key], r, compareRows)
}

// insert puts the row of an object that has none at its place.
func (v *view) insert(i int, next *row) {
	v.index.add(next, v.Asked)
	v.rows = slices.Insert(v.rows, i, next)
}

// exchange puts a row in the place of that of the same object.
func (v *view) exchange(i int, next *row) {
	v.index.drop(v.rows[i])
	v.index.add(next, v.Asked)
	v.rows[i] = next
}

// about returns the rows that wake a key, sorted, until something changes. Those that wake all are not among them.
func (v *view) about(key string) []*row {
	if v.index == nil {
		v.index = make(index)
		for _, r := range v.rows {
			v.index.add(r, v.Asked)
		}
	}
	return v.index[key]
}
