package script

import (
	"fmt"
	"math/bits"
	"runtime/debug"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/object"
)

// Steps are counted, and the heap is looked at between them; but a few
// operations of the language make values of any size in one step. Those ask here
// first. Files are rewritten after parsing, which keeps every position:
//
//	x * y      →  ⟨*⟩(x, y)
//	x *= y     →  x *= ⟨*=⟩(y)
//	x % y      →  ⟨%⟩(x, y)
//	x + y      →  ⟨+⟩(x, y)             unless one of them is a literal
//	x += y     →  x += ⟨+=⟩(y)
//	x.replace  →  ⟨.⟩(x, "replace")     and what else guardedMethods names
//
// The names in ⟨⟩ are no identifiers, so no file can name or shadow them. Those of
// [boundedBuiltins] are builtins of the same behaviour with a limit.
const (
	guardAdd    = "+"
	guardAddNow = "+="
	guardMul    = "*"
	guardMulNow = "*="
	guardMod    = "%"
	guardAttr   = "."
)

const (
	// maxText is the largest string or bytes that one operation makes.
	maxText = 64 << 20
	// maxElements is the longest list, tuple or range that one operation makes;
	// 160 MB of a list.
	maxElements = 10_000_000
	// smallFactor is a literal that may multiply anything: a loop of it is seen
	// by the heap checks.
	smallFactor = 16
)

func isGuard(name string) bool {
	switch name {
	case guardAdd, guardAddNow, guardMul, guardMulNow, guardMod, guardAttr, coverName:
		return true
	}
	return false
}

// guardedMethods are those of texts whose results are measured first. A method of
// another type with such a name is as it is.
func guardedMethod(name string) bool {
	switch name {
	case "join", "replace", "format", "split", "rsplit", "splitlines", "elems", "elem_ords", "codepoints", "codepoint_ords":
		return true
	}
	return false
}

// withGuards returns the predeclared names and the guards.
func withGuards(predeclared starlark.StringDict) starlark.StringDict {
	all := boundedBuiltins()
	for name, v := range predeclared {
		all[name] = v
	}
	all[guardAdd] = starlark.NewBuiltin(guardAdd, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if err := plus(args[0], args[1]); err != nil {
			return nil, err
		}
		return starlark.Binary(syntax.PLUS, args[0], args[1])
	})
	all[guardAddNow] = starlark.NewBuiltin(guardAddNow, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return args[0], plusNow(args[0])
	})
	all[guardMul] = starlark.NewBuiltin(guardMul, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return multiply(args[0], args[1])
	})
	all[guardMulNow] = starlark.NewBuiltin(guardMulNow, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return factor{args[0]}, nil
	})
	all[guardMod] = starlark.NewBuiltin(guardMod, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if format, ok := args[0].(starlark.String); ok {
			if err := textFits("%", len(format), args[1]); err != nil {
				return nil, err
			}
		}
		return starlark.Binary(syntax.PERCENT, args[0], args[1])
	})
	all[guardAttr] = starlark.NewBuiltin(guardAttr, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return attr(args[0], string(args[1].(starlark.String)))
	})
	return all
}

func boundedRange(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Universe["range"].(*starlark.Builtin).CallInternal(thread, args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxElements {
		return nil, fmt.Errorf("range: %d elements are too many, the limit is %d", n, maxElements)
	}
	return v, nil
}

func multiply(x, y starlark.Value) (starlark.Value, error) {
	seq, count := x, y
	if n, ok := x.(starlark.Int); ok {
		seq, count = y, x
		if m, ok := y.(starlark.Int); ok {
			if err := productFits(n, m); err != nil {
				return nil, err
			}
		}
	}
	if n, ok := count.(starlark.Int); ok {
		limit := uint(maxElements)
		unit := "elements"
		size := 0
		switch seq := seq.(type) {
		case starlark.String:
			size, limit, unit = len(seq), maxText, "bytes"
		case starlark.Bytes:
			size, limit, unit = len(seq), maxText, "bytes"
		case *starlark.List:
			size = seq.Len()
		case starlark.Tuple:
			size = len(seq)
		}
		if size > 0 && n.Sign() > 0 {
			times, ok := n.Uint64()
			over, product := bits.Mul(uint(size), uint(times))
			if !ok || over != 0 || product > limit {
				return nil, fmt.Errorf("%d %s times %s are too many, the limit is %d", size, unit, n, limit)
			}
		}
	}
	return starlark.Binary(syntax.STAR, x, y)
}

// factor is the right side of *= for a moment: the interpreter asks it to
// multiply.
type factor struct{ starlark.Value }

// Binary multiplies.
func (f factor) Binary(op syntax.Token, x starlark.Value, side starlark.Side) (starlark.Value, error) {
	if op != syntax.STAR || side != starlark.Right {
		return nil, nil
	}
	return multiply(x, f.Value)
}

func attr(x starlark.Value, name string) (starlark.Value, error) {
	s, isString := x.(starlark.String)
	if b, ok := x.(starlark.Bytes); ok && name == "elems" && len(b) > maxPieces {
		return nil, tooMany(name, len(b), maxPieces)
	}
	if !isString {
		return otherAttr(x, name)
	}
	method, err := s.Attr(name)
	if err != nil || method == nil {
		return method, err
	}
	size := map[string]func(string, starlark.Tuple) int{"replace": replacedSize, "join": joinedSize, "format": formattedSize}[name]
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		for _, kv := range kwargs { // of format
			args = append(args[:len(args):len(args)], kv[1])
		}
		if size == nil {
			if n := pieces(name, string(s), args); n > maxPieces {
				return nil, tooMany(name, n, maxPieces)
			}
		} else if size(string(s), args) > maxText {
			return nil, tooLong(name)
		}
		args = args[:len(args)-len(kwargs)]
		return method.(*starlark.Builtin).CallInternal(thread, args, kwargs)
	}).BindReceiver(s), nil
}

// joinedSize and replacedSize return how long the result would be; 0 when the
// arguments are wrong, which the method then says.
func joinedSize(sep string, args starlark.Tuple) int {
	if len(args) != 1 {
		return 0
	}
	seq, ok := args[0].(starlark.Indexable)
	if !ok {
		return 0 // sets and dicts hold each string once
	}
	n := 0
	for i := range seq.Len() {
		if s, ok := seq.Index(i).(starlark.String); ok {
			n += len(s) + len(sep)
		}
	}
	return n
}

func replacedSize(s string, args starlark.Tuple) int {
	if len(args) < 2 {
		return 0
	}
	old, ok1 := args[0].(starlark.String)
	with, ok2 := args[1].(starlark.String)
	if !ok1 || !ok2 {
		return 0
	}
	return len(s) + strings.Count(s, string(old))*max(0, len(with)-len(old))
}

// otherAttr is x.name for what is no string, with the interpreter's errors.
func otherAttr(x starlark.Value, name string) (starlark.Value, error) {
	has, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	v, err := has.Attr(name)
	if v != nil && err == nil {
		return v, nil
	}
	msg := fmt.Sprintf("%s has no .%s field or method", x.Type(), name)
	if err != nil {
		noSuch, ok := err.(starlark.NoSuchAttrError)
		if !ok {
			return nil, err
		}
		msg = string(noSuch)
	}
	if n := object.Nearest(name, has.AttrNames()); n != "" {
		msg += fmt.Sprintf(" (did you mean .%s?)", n)
	}
	return nil, fmt.Errorf("%s", msg)
}

// recoverInto is deferred around Go code that hostile input may make panic.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, Stack: debug.Stack()}
	}
}
