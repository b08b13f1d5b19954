package script

import (
	"fmt"

	"go.starlark.net/starlark"
)

// Builtins of the language that make a large value of a small one in one step, which
// nothing can interrupt, look at sizes first.

const (
	// maxKeys is the largest set that one call makes, some 140 MB of it.
	maxKeys = 1_000_000
	// maxPairs is the same for the tuples that enumerate and zip make.
	maxPairs = 1_000_000
	// maxPieces is into how many pieces a text is taken at once.
	maxPieces = 2_000_000
	// maxDigits is how many digits a text may have that becomes a number: reading
	// it takes time that grows with the square.
	maxDigits = 10_000
	// maxBits is how many bits the product of two numbers may have, for the same
	// reason.
	maxBits = 1 << 17
	// pairCost is about how many bytes a pair takes, with its place in a list.
	pairCost = 72
)

// sized is a builtin of the language that asks for the room that size says, or fails as
// that does.
func sized(name string, size func(args starlark.Tuple) (int, error)) *starlark.Builtin {
	own := starlark.Universe[name].(*starlark.Builtin)
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		n, err := size(args)
		if err == nil {
			err = room(t, n)
		}
		if err != nil {
			return nil, err
		}
		return own.CallInternal(t, args, kwargs)
	})
}

// weighed is a builtin whose result is weighed, or each element of it.
func weighed(own *starlark.Builtin) *starlark.Builtin {
	return starlark.NewBuiltin(own.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := own.CallInternal(t, args, kwargs)
		if err != nil {
			return nil, err
		}
		return v, weighAll(t, v)
	})
}

// boundedBuiltins are those whose results grow with their arguments.
func boundedBuiltins() starlark.StringDict {
	all := starlark.StringDict{
		"range":     starlark.NewBuiltin("range", boundedRange),
		"str":       sized("str", func(args starlark.Tuple) (int, error) { return firstText("str", args) }),
		"repr":      sized("repr", func(args starlark.Tuple) (int, error) { return firstText("repr", args) }),
		"int":       starlark.NewBuiltin("int", boundedInt),
		"bytes":     sized("bytes", bytesSize),
		"zip":       weighed(sized("zip", zipSize)),
		"enumerate": weighed(sized("enumerate", func(args starlark.Tuple) (int, error) { return firstSize("enumerate", args, maxPairs, pairCost) })),
		"tuple":     weighed(sized("tuple", func(args starlark.Tuple) (int, error) { return firstSize("tuple", args, maxElements, elementCost) })),
		"set":       starlark.NewBuiltin("set", boundedSet),
		"dict":      starlark.NewBuiltin("dict", boundedDict),
		"sorted":    starlark.NewBuiltin("sorted", boundedSorted),
		"min":       starlark.NewBuiltin("min", boundedExtreme),
		"max":       starlark.NewBuiltin("max", boundedExtreme),
		"getattr":   starlark.NewBuiltin("getattr", guardedGetattr),
	}
	for _, name := range []string{"list", "reversed"} {
		all[name] = sized(name, func(args starlark.Tuple) (int, error) { return firstSize(name, args, maxElements, elementCost) })
	}
	return all
}

// firstSize is what the elements of the first argument cost, if they are no more than the
// limit.
func firstSize(name string, args starlark.Tuple, limit, cost int) (int, error) {
	if len(args) == 0 {
		return 0, nil
	}
	n := max(starlark.Len(args[0]), 0)
	if n > limit {
		return 0, tooMany(name, n, limit)
	}
	return n * cost, nil
}

func firstText(name string, args starlark.Tuple) (int, error) {
	if len(args) != 1 {
		return 0, nil
	}
	return textSize(name, 0, args[0])
}

func bytesSize(args starlark.Tuple) (int, error) {
	if len(args) == 0 {
		return 0, nil
	}
	n := max(starlark.Len(args[0]), addedSize(args[0]), 0)
	if n > maxText {
		return 0, tooLong("bytes")
	}
	return 3 * n, nil
}

// zipSize counts the elements of all tuples, and the tuples themselves.
func zipSize(args starlark.Tuple) (int, error) {
	shortest := maxRange
	for _, arg := range args {
		if _, ok := arg.(starlark.Iterable); !ok {
			return 0, nil // zip itself says what is wrong
		}
		if n := starlark.Len(arg); n >= 0 {
			shortest = min(shortest, n)
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	if limit := 2 * maxPairs / (len(args) + 2); shortest > limit {
		return 0, tooMany("zip", shortest*len(args), limit*len(args))
	}
	return shortest * (len(args)*elementCost + pairCost - 2*elementCost), nil
}

// boundedInt refuses texts that take long to be read.
func boundedInt(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, base starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x?", &x, "base?", &base); err == nil {
		if s, ok := x.(starlark.String); ok && len(s) > maxDigits {
			return nil, fmt.Errorf("int: the text has %d characters, the limit is %d", len(s), maxDigits)
		}
	}
	return starlark.Universe["int"].(*starlark.Builtin).CallInternal(t, args, kwargs)
}

func boundedSet(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	n, err := firstSize(b.Name(), args, maxKeys, keyCost)
	if err == nil {
		err = room(t, n)
	}
	if err != nil {
		return nil, err
	}
	return watchedCall(t, starlark.Universe["set"].(*starlark.Builtin), args, kwargs, false)
}

func boundedRange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Universe["range"].(*starlark.Builtin).CallInternal(t, args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxRange {
		return nil, tooMany("range", n, maxRange)
	}
	return v, nil
}

// guardedGetattr is getattr, which is another way to a guarded method.
func guardedGetattr(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) >= 2 && len(kwargs) == 0 {
		if name, ok := args[1].(starlark.String); ok && guardedMethod(string(name)) {
			if v, err := attr(args[0], string(name)); err == nil {
				return v, nil
			}
		}
	}
	return starlark.Universe["getattr"].(*starlark.Builtin).CallInternal(t, args, kwargs)
}
