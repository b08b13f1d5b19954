package script

import (
	"fmt"
	"unsafe"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// A comparison goes through all that two values hold, in one step, and through a part once
// for each place that holds it: a list of ten lists that are one list of ten, and so on ten
// deep, takes for ever. So it is counted here, with the results and the errors of the
// language.

const (
	// maxCompared is how many values one operator may look at, some tenths of a second of
	// it; 64 bytes of text count as one.
	maxCompared = 10_000_000
	// comparedBetween is how many values lie between two looks at the limits of the run,
	// where a comparison is part of something larger.
	comparedBetween = 100_000
	// plainText is how long a text may be with which every element of a list may be
	// compared without being counted.
	plainText = 1 << 10
)

// comparison counts what is compared.
type comparison struct {
	left int
	more func() (int, error) // how many values more may be compared; nil: none
}

// boundedComparison is one that ends with an error where it would take too long.
func boundedComparison() *comparison { return &comparison{left: maxCompared} }

// comparison is one that goes on until the run ends.
func (r *run) comparison() *comparison {
	return &comparison{left: comparedBetween, more: func() (int, error) { return comparedBetween, r.look() }}
}

// look returns why the run may not go on, nil when it may. It is a checkpoint.
func (r *run) look() error {
	if r == nil {
		return nil
	}
	if err := r.room(0); err != nil {
		return err
	}
	return r.cancelled()
}

func (c *comparison) count(n int) error {
	if c.left -= n; c.left >= 0 {
		return nil
	}
	if c.more == nil {
		return fmt.Errorf("more than %d values would be compared", maxCompared)
	}
	more, err := c.more()
	c.left = max(c.left, 0) + more
	return err
}

// compare is starlark.CompareDepth.
func (c *comparison) compare(op syntax.Token, x, y starlark.Value, depth int) (bool, error) {
	if depth < 1 {
		return starlark.CompareDepth(op, x, y, depth) // it says so
	}
	if err := c.count(1); err != nil {
		return false, err
	}
	switch x := x.(type) {
	case starlark.Int:
		if y, ok := y.(starlark.Int); ok && equality(op) {
			if n, small := x.Int64(); small {
				m, ok := y.Int64()
				return (ok && n == m) == (op == syntax.EQL), nil
			}
		}
		if err := c.numbers(x, y); err != nil {
			return false, err
		}
	case starlark.Float:
		if y, ok := y.(starlark.Int); ok {
			if err := c.numbers(y, x); err != nil {
				return false, err
			}
		}
	case starlark.String:
		if y, ok := y.(starlark.String); ok {
			if err := c.texts(op, string(x), string(y)); err != nil {
				return false, err
			}
			if equality(op) {
				return (x == y) == (op == syntax.EQL), nil
			}
		}
	case starlark.Bytes:
		if y, ok := y.(starlark.Bytes); ok {
			if err := c.texts(op, string(x), string(y)); err != nil {
				return false, err
			}
		}
	case *starlark.List:
		if y, ok := y.(*starlark.List); ok {
			return c.sequences(op, x, y, depth)
		}
	case starlark.Tuple:
		if y, ok := y.(starlark.Tuple); ok {
			return c.sequences(op, x, y, depth)
		}
	case *starlark.Dict:
		if y, ok := y.(*starlark.Dict); ok && equality(op) {
			same, err := c.dicts(x, y, depth)
			return same == (op == syntax.EQL), err
		}
	case *starlark.Set:
		if y, ok := y.(*starlark.Set); ok {
			return c.sets(op, x, y, depth)
		}
	case *starlarkstruct.Struct:
		if y, ok := y.(*starlarkstruct.Struct); ok && equality(op) {
			same, err := c.structs(x, y, depth)
			return same == (op == syntax.EQL), err
		}
	}
	return starlark.CompareDepth(op, x, y, depth)
}

func equality(op syntax.Token) bool { return op == syntax.EQL || op == syntax.NEQ }

// numbers counts what comparing an int with another number takes: with a float it is by way
// of fractions.
func (c *comparison) numbers(x starlark.Int, y starlark.Value) error {
	n := 0
	if _, small := x.Int64(); !small {
		n = 32
	}
	if _, ok := y.(starlark.Float); ok {
		n = 20 + 16*n
	}
	if n == 0 {
		return nil
	}
	return c.count(n)
}

// texts counts what comparing two texts takes.
func (c *comparison) texts(op syntax.Token, x, y string) error {
	n := min(len(x), len(y))
	if n < 64 || len(x) != len(y) && equality(op) || unsafe.StringData(x) == unsafe.StringData(y) {
		return nil
	}
	return c.count(n / 64)
}

func (c *comparison) sequences(op syntax.Token, x, y starlark.Indexable, depth int) (bool, error) {
	if x.Len() != y.Len() && equality(op) {
		return op == syntax.NEQ, nil
	}
	for i := 0; i < x.Len() && i < y.Len(); i++ {
		a, b := x.Index(i), y.Index(i)
		if same, err := c.compare(syntax.EQL, a, b, depth-1); err != nil {
			return false, err
		} else if same {
			continue
		}
		if equality(op) {
			return op == syntax.NEQ, nil
		}
		return c.compare(op, a, b, depth-1)
	}
	return starlark.Compare(op, starlark.MakeInt(x.Len()), starlark.MakeInt(y.Len()))
}

func (c *comparison) dicts(x, y *starlark.Dict, depth int) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	for key, a := range x.Entries() {
		if err := c.key(key); err != nil {
			return false, err
		}
		b, found, _ := y.Get(key)
		if !found {
			return false, nil
		}
		if same, err := c.compare(syntax.EQL, a, b, depth-1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// sets compares as the language does, which looks for the elements of one set in the other.
func (c *comparison) sets(op syntax.Token, x, y *starlark.Set, depth int) (bool, error) {
	n, m := x.Len(), y.Len()
	switch op {
	case syntax.EQL, syntax.NEQ:
		same := n == m
		for e := range x.Elements() {
			if !same {
				break
			}
			if err := c.key(e); err != nil {
				return false, err
			}
			same, _ = y.Has(e)
		}
		return same == (op == syntax.EQL), nil
	case syntax.GE, syntax.GT:
		if n < m || op == syntax.GT && n == m {
			return false, nil
		}
		return c.common(x, y, m, true)
	case syntax.LE, syntax.LT:
		if n > m || op == syntax.LT && n == m {
			return false, nil
		}
		return c.common(x, y, n, false)
	}
	return starlark.CompareDepth(op, x, y, depth)
}

// common reports whether a set has so many elements of another one. With all it ends at the
// first one that it does not have.
func (c *comparison) common(in, of *starlark.Set, want int, all bool) (bool, error) {
	n := 0
	for x := range of.Elements() {
		if n == want && !all {
			break
		}
		if err := c.key(x); err != nil {
			return false, err
		}
		found, err := in.Has(x)
		if err != nil {
			return false, err
		}
		if found {
			n++
		} else if all {
			break
		}
	}
	return n == want, nil
}

func (c *comparison) structs(x, y *starlarkstruct.Struct, depth int) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	same, err := starlark.Equal(x.Constructor(), y.Constructor())
	if err != nil {
		return false, fmt.Errorf("error comparing struct constructors %v and %v: %w", x.Constructor(), y.Constructor(), err)
	}
	if !same {
		return false, nil
	}
	for i := range x.Len() {
		name, a := x.AttrAt(i)
		other, b := y.AttrAt(i)
		if name != other {
			return false, nil
		}
		if same, err := c.compare(syntax.EQL, a, b, depth-1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// key counts what hashing a key takes, and comparing it with one other.
func (c *comparison) key(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.String:
		return c.count(4 + len(v)/16)
	case starlark.Bytes:
		return c.count(4 + len(v)/16)
	case starlark.Tuple:
		for _, x := range v {
			if err := c.key(x); err != nil {
				return err
			}
		}
	case *starlarkstruct.Struct:
		for _, x := range v.Entries() {
			if err := c.key(x); err != nil {
				return err
			}
		}
	}
	return c.count(4)
}
