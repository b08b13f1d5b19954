package script

import (
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// comparedGuard gives what is compared back, in a wrapper that counts where that may take
// long: ⟨[==]⟩[x] == y is x == y. A guard that is indexed costs less than one that is called.
type comparedGuard struct{ guardValue }

// Get returns x or its wrapper.
func (comparedGuard) Get(x starlark.Value) (v starlark.Value, found bool, err error) {
	switch x.(type) {
	case *starlark.List, starlark.Tuple, *starlark.Dict, *starlark.Set, *starlarkstruct.Struct:
		return compared{x}, true, nil
	}
	return x, true, nil
}

// compared is the left side of a comparison for a moment.
type compared struct{ starlark.Value }

// CompareSameType counts what it looks at.
func (x compared) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return boundedComparison().compare(op, x.Value, y, depth)
}

// searchedGuard is the same for y in ⟨[in]⟩[x].
type searchedGuard struct{ guardValue }

// Get returns x or its wrapper.
func (searchedGuard) Get(x starlark.Value) (v starlark.Value, found bool, err error) {
	switch x := x.(type) {
	case *starlark.List:
		return searched{x}, true, nil
	case starlark.Tuple:
		return searched{x}, true, nil
	}
	return x, true, nil
}

// searched is the right side of in for a moment.
type searched struct{ starlark.Indexable }

// Has reports whether y is an element.
func (x searched) Has(y starlark.Value) (bool, error) {
	found, err := boundedComparison().index(x.Indexable, y)
	return found >= 0, err
}

// index returns where y is first in x, -1 where it is not.
func (c *comparison) index(x starlark.Indexable, y starlark.Value) (int, error) {
	for i := range x.Len() {
		same, err := c.compare(syntax.EQL, x.Index(i), y, starlark.CompareLimit)
		if err != nil {
			return -1, err
		}
		if same {
			return i, nil
		}
	}
	return -1, nil
}

// scalar reports whether a value may be compared with each of many without being counted.
func scalar(v starlark.Value) bool {
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float:
		return true
	case starlark.String:
		return len(v) <= plainText
	}
	return false
}
