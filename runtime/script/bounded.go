package script

import (
	"fmt"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
)

// Builtins of the language that make a large value of a small one in one step, which
// nothing can interrupt, look at sizes first.

const (
	// maxKeys is the largest set or dict that one call makes, some 200 MB of it.
	maxKeys = 1_000_000
	// maxPairs is the same for the tuples that enumerate makes.
	maxPairs = 2_000_000
	// maxPieces is into how many pieces a text is taken at once.
	maxPieces = 2_000_000
	// maxDigits is how many digits a text may have that becomes a number: reading
	// it takes time that grows with the square.
	maxDigits = 10_000
	// maxBits is how many bits the product of two numbers may have, for the same
	// reason.
	maxBits = 1 << 17
)

// bounded returns a builtin of the language that asks check first.
func bounded(name string, check func(args starlark.Tuple) error) *starlark.Builtin {
	own := starlark.Universe[name].(*starlark.Builtin)
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := check(args); err != nil {
			return nil, err
		}
		return own.CallInternal(thread, args, kwargs)
	})
}

// boundedBuiltins are those whose results grow with their arguments.
func boundedBuiltins() starlark.StringDict {
	all := starlark.StringDict{
		"range": starlark.NewBuiltin("range", boundedRange),
		"str":   boundedText("str"),
		"repr":  boundedText("repr"),
		"zip":   bounded("zip", zipFits),
		"int":   bounded("int", intFits),
	}
	for name, limit := range map[string]int{"list": maxElements, "tuple": maxElements, "sorted": maxElements, "reversed": maxElements, "enumerate": maxPairs, "set": maxKeys} {
		all[name] = bounded(name, func(args starlark.Tuple) error { return lengthFits(name, args, limit) })
	}
	return all
}

// lengthFits refuses a first argument with more elements than the limit.
func lengthFits(name string, args starlark.Tuple, limit int) error {
	if len(args) == 0 {
		return nil
	}
	if n := starlark.Len(args[0]); n > limit {
		return tooMany(name, n, limit)
	}
	return nil
}

func tooMany(name string, n, limit int) error {
	return fmt.Errorf("%s: %d elements are too many, the limit is %d", name, n, limit)
}

// zipFits counts the elements of all tuples, and four more for each tuple itself.
func zipFits(args starlark.Tuple) error {
	shortest := maxElements
	for _, arg := range args {
		if _, ok := arg.(starlark.Iterable); !ok {
			return nil // zip itself says what is wrong
		}
		if n := starlark.Len(arg); n >= 0 {
			shortest = min(shortest, n)
		}
	}
	if len(args) > 0 && shortest > maxElements/(len(args)+4) {
		return tooMany("zip", shortest*len(args), maxElements/(len(args)+4)*len(args))
	}
	return nil
}

func intFits(args starlark.Tuple) error {
	if len(args) > 0 {
		if s, ok := args[0].(starlark.String); ok && len(s) > maxDigits {
			return fmt.Errorf("int: the text has %d characters, the limit is %d", len(s), maxDigits)
		}
	}
	return nil
}

// plus refuses to add what gets too large: texts and lists that are doubled outgrow
// every memory within a few dozen steps.
func plus(x, y starlark.Value) error {
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

// plusNow refuses to add a large value to another, whatever that is: the sum may grow,
// but slowly, so that the limit on memory sees it.
func plusNow(y starlark.Value) error {
	n, limit, unit := addedSize(y), maxText/4, "bytes"
	switch v := y.(type) {
	case *starlark.List, starlark.Tuple:
		limit, unit = maxElements/2, "elements"
	case starlark.String, starlark.Bytes:
	default:
		n, limit, unit = starlark.Len(v), maxElements/2, "elements"
	}
	if n > limit {
		return fmt.Errorf("%d %s are too many to be added with +=, the limit is %d", n, unit, limit)
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

// pieces is how many pieces a method takes a text to, at most.
func pieces(name, s string, args starlark.Tuple) int {
	switch name {
	case "elems", "elem_ords", "codepoints", "codepoint_ords":
		return len(s)
	case "splitlines":
		return strings.Count(s, "\n") + 1
	}
	if len(args) > 1 {
		if n, err := starlark.AsInt32(args[1]); err == nil && n >= 0 {
			return n + 1
		}
	}
	if len(args) > 0 {
		if sep, ok := args[0].(starlark.String); ok {
			return strings.Count(s, string(sep)) + 1
		}
	}
	words, within := 0, false
	for _, r := range s {
		if space := unicode.IsSpace(r); within == space {
			within = !space
			words++
		}
	}
	return words/2 + 1
}
