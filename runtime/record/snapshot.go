package record

import (
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/codec"
)

// A snapshot is kept as a list of parts, each with the values of some neighbours. Where
// a part ends depends on the value that it ends with and on nothing else: one object
// more, or another one, changes one part, and all others are there already.

const (
	// perPart is how many values a part has in the mean, maxPerPart how many at most.
	perPart    = 16
	maxPerPart = 64
)

// list is the snapshot of one watch as it was kept last. A row of a watch is never
// changed, and no tuple, so a value that is the same needs no second look.
type list struct {
	values []starlark.Value
	name   Name
	used   int                     // the generation of the last run that has used it
	ends   map[starlark.Value]bool // whether a part ends with it
	parts  map[starlark.Value]kept // by the first value of each
}

// kept is one part of a snapshot.
type kept struct {
	values []starlark.Value
	name   Name
}

// snapshot keeps a snapshot and returns the name of the list of its parts.
func (p *packer) snapshot(tx *tx, id string, values []starlark.Value) (Name, error) {
	last := p.lists[id]
	if last == nil {
		last = &list{}
	}
	if same(last.values, values) && last.parts != nil && tx.use(last.name) {
		last.used = p.generation
		return last.name, nil
	}
	next := &list{values: values, used: p.generation, ends: make(map[starlark.Value]bool, len(values)), parts: map[starlark.Value]kept{}}
	var refs []Name
	for from := 0; from < len(values); {
		to, err := p.end(last, next, from)
		if err != nil {
			return Name{}, err
		}
		one := kept{values: values[from:to:to]}
		if before, ok := last.parts[values[from]]; ok && same(before.values, one.values) && tx.use(before.name) {
			one.name = before.name
		} else if one.name, err = p.neighbours(tx, one.values); err != nil {
			return Name{}, err
		}
		next.parts[values[from]] = one
		refs = append(refs, one.name)
		from = to
	}
	var err error
	next.name, err = tx.part(nil, refs)
	p.lists[id] = next
	return next.name, err
}

// end returns where the part that begins at from ends.
func (p *packer) end(last, next *list, from int) (int, error) {
	for i := from; i < len(next.values); i++ {
		key := next.values[i]
		ends, known := last.ends[key]
		if !known {
			v, err := codec.ValueOf(next.values[i])
			if err != nil {
				return 0, err
			}
			plain, err := codec.Write(v)
			if err != nil {
				return 0, err
			}
			ends = p.store.key.nameOf(plain, nil)[0]%perPart == 0
		}
		next.ends[key] = ends
		if ends || i-from+1 == maxPerPart {
			return i + 1, nil
		}
	}
	return len(next.values), nil
}

// neighbours keeps values as one part.
func (p *packer) neighbours(tx *tx, values []starlark.Value) (Name, error) {
	out, err := codec.ValuesOf(values)
	if err != nil {
		return Name{}, err
	}
	plain, err := codec.Write(out)
	if err != nil {
		return Name{}, err
	}
	return tx.part(plain, nil)
}

// same says that two lists hold the same values, not only equal ones.
func same(a, b []starlark.Value) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}
