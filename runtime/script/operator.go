package script

import (
	"fmt"
	"math/bits"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// binary is x op y, once its size is known to fit and there is room for it.
func binary(t *starlark.Thread, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	n, err := resultSize(op, x, y)
	if err == nil {
		err = room(t, n)
	}
	if err != nil {
		return nil, err
	}
	v, err := tables(t, op, x, y)
	if v == nil && err == nil {
		v, err = starlark.Binary(op, x, y)
	}
	if result, ok := v.(starlark.Tuple); ok && err == nil {
		err = weigh(t, result)
	}
	return v, err
}

// resultSize returns about how many bytes x op y takes; 0 for what is small, or no
// operation at all, which the interpreter then says.
func resultSize(op syntax.Token, x, y starlark.Value) (int, error) {
	switch op {
	case syntax.PLUS:
		return held(x) + held(y), plusFits(x, y)
	case syntax.STAR:
		if _, ok := x.(starlark.Int); ok {
			x, y = y, x
		}
		return productSize(x, y)
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			return textSize("%", len(format), y)
		}
	case syntax.MINUS, syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX:
		switch x.(type) {
		case *starlark.Set, *starlark.Dict:
			n, m := max(starlark.Len(x), 0), max(starlark.Len(y), 0)
			if op == syntax.PIPE && n+m > 2*maxKeys {
				return 0, fmt.Errorf("%d and %d elements together are too many, the limit is %d", n, m, 2*maxKeys)
			}
			return (n + m) * keyCost, nil
		}
	}
	return 0, nil
}

// plusFits refuses a sum that gets too large: texts and lists that are doubled outgrow
// every memory within a few dozen steps.
func plusFits(x, y starlark.Value) error {
	n, limit, unit := addedSize(x), maxText, "bytes"
	if n == 0 {
		return nil
	}
	switch x.(type) {
	case *starlark.List, starlark.Tuple:
		limit, unit = maxElements, "elements"
	}
	if m := addedSize(y); n+m > limit {
		return fmt.Errorf("%d and %d %s together are too many, the limit is %d", n, m, unit, limit)
	}
	return nil
}

// addedSize is the size of what + may make larger; 0 for all else.
func addedSize(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	case *starlark.List:
		return v.Len()
	case starlark.Tuple:
		return len(v)
	}
	return 0
}

// productSize is the size of x taken so many times, where x may be a number, too.
func productSize(x, times starlark.Value) (int, error) {
	n, ok := times.(starlark.Int)
	if !ok {
		return 0, nil
	}
	size, limit, unit := addedSize(x), maxText, "bytes"
	switch x := x.(type) {
	case starlark.Int:
		return 0, productFits(x, n)
	case *starlark.List, starlark.Tuple:
		limit, unit = maxElements, "elements"
	}
	if size == 0 || n.Sign() <= 0 {
		return 0, nil
	}
	count, ok := n.Uint64()
	over, product := bits.Mul(uint(size), uint(count))
	if !ok || over != 0 || product > uint(limit) {
		return 0, fmt.Errorf("%d %s times %s are too many, the limit is %d", size, unit, n, limit)
	}
	return held(x) * int(count), nil
}

// productFits bounds the product of two numbers.
func productFits(x, y starlark.Int) error {
	if _, small := x.Int64(); small {
		return nil
	}
	if _, small := y.Int64(); small {
		return nil
	}
	if bits := x.BigInt().BitLen() + y.BigInt().BitLen(); bits > maxBits {
		return fmt.Errorf("the product would have %d bits, the limit is %d", bits, maxBits)
	}
	return nil
}

// operand is the right side of x op= y for a moment: the interpreter finds no such
// operation on x and asks the operand, which then knows both sides.
type operand struct {
	starlark.Value
	op     syntax.Token
	thread *starlark.Thread
}

// Binary does x op= y.
func (o operand) Binary(op syntax.Token, x starlark.Value, side starlark.Side) (starlark.Value, error) {
	if op != o.op || side != starlark.Right {
		return nil, nil
	}
	method, add := "", o.Value
	switch x := x.(type) {
	case *starlark.List:
		if _, ok := add.(starlark.Iterable); ok && op == syntax.PLUS {
			method = "extend"
		}
	case *starlark.Dict:
		if _, ok := add.(*starlark.Dict); ok && op == syntax.PIPE {
			method = "update"
		}
		_ = x
	}
	if method == "" {
		return binary(o.thread, op, x, add)
	}
	m, err := attr(x, method)
	if err == nil {
		_, err = m.(starlark.Callable).CallInternal(o.thread, starlark.Tuple{add}, nil)
	}
	return x, err
}

// modItem is x[i] %= y.
func modItem(t *starlark.Thread, x, i, y starlark.Value) error {
	var at starlark.Value
	switch x := x.(type) {
	case starlark.Mapping:
		v, found, err := x.Get(i)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("this key is not in the %s", x.Type())
		}
		at = v
	case starlark.Indexable:
		n, err := starlark.AsInt32(i)
		if err != nil {
			return fmt.Errorf("%s index: %w", x.Type(), err)
		}
		if n < 0 {
			n += x.Len()
		}
		if n < 0 || n >= x.Len() {
			return fmt.Errorf("%s index %s out of range, it has %d elements", x.Type(), i, x.Len())
		}
		at, i = x.Index(n), starlark.MakeInt(n)
	default:
		return fmt.Errorf("unhandled index operation %s[%s]", x.Type(), i.Type())
	}
	v, err := binary(t, syntax.PERCENT, at, y)
	if err != nil {
		return err
	}
	switch x := x.(type) {
	case starlark.HasSetKey:
		return x.SetKey(i, v)
	case starlark.HasSetIndex:
		n, _ := starlark.AsInt32(i)
		return x.SetIndex(n, v)
	}
	return fmt.Errorf("%s value does not support item assignment", x.Type())
}
