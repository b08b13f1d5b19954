package script

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Steps are counted, and the heap is looked at between them; but many operations
// of the language make values of any size in one step, or values that lie in each
// other so deep that hashing one overflows the stack. Those ask here first. Files
// are rewritten after parsing, which keeps every position:
//
//	x * y          →  ⟨*⟩(x, y)             and +, %, -, |, &, ^
//	x *= y         →  x *= ⟨*=⟩(y)          and +=, -=, |=, &=, ^=
//	x %= y         →  x = ⟨%⟩(x, y)
//	x[i] %= y      →  ⟨%=⟩(x, i, y)
//	x[i] = y       →  ⟨[]⟩(x)[i] = y
//	x[k]           →  x[⟨[k]⟩[k]]           and x[k] += y, {k: y}, f(**k)
//	x == y         →  ⟨[==]⟩[x] == y        and !=, <, <=, >, >=
//	x in y         →  x in ⟨[in]⟩[y]        and not in
//	(x, y)         →  ⟨()⟩((x, y))
//	def f(*args):  →  def f(*args): ⟨()⟩(args); …
//	x.replace      →  ⟨.⟩(x, "replace")     and what else guardedMethod names
//	x[a:b]         →  ⟨[:]⟩(x)[a:b]
//	[y for y in x] →  [y for y in ⟨[for]⟩(x)]  and ⟨{for}⟩ in {}; with more than one for,
//	                  ⟨[for for]⟩ or ⟨{for for}⟩ in the first and ⟨for⟩ in the last
//
// The names in ⟨⟩ are no identifiers, so no file can name or shadow them. Those of
// [boundedBuiltins] are builtins of the same behaviour with a limit.
const (
	guardAttr    = "."
	guardItem    = "[]"
	guardKey     = "[k]"
	guardCompare = "[==]"
	guardIn      = "[in]"
	guardTuple   = "()"
	guardModItem = "%="
	guardSlice   = "[:]"
	guardFor     = "for" // the last of several
)

// guardedLoop is the guard of the first loop of a comprehension: of a dict or a list, with
// one loop or several.
type guardedLoop struct {
	name        string
	table, only bool
}

func guardedLoops() []guardedLoop {
	return []guardedLoop{{"[for]", false, true}, {"{for}", true, true}, {"[for for]", false, false}, {"{for for}", true, false}}
}

// guardedOperators are the binary operators that make large values, by their tokens; with
// a "=" behind them they are the guards of assignments.
func guardedOperators() map[string]syntax.Token {
	return map[string]syntax.Token{"+": syntax.PLUS, "-": syntax.MINUS, "*": syntax.STAR, "%": syntax.PERCENT, "|": syntax.PIPE, "&": syntax.AMP, "^": syntax.CIRCUMFLEX}
}

// assignedOperator returns the operator of an assignment such as +=.
func assignedOperator(op syntax.Token) (syntax.Token, bool) {
	switch op {
	case syntax.PLUS_EQ:
		return syntax.PLUS, true
	case syntax.MINUS_EQ:
		return syntax.MINUS, true
	case syntax.STAR_EQ:
		return syntax.STAR, true
	case syntax.PIPE_EQ:
		return syntax.PIPE, true
	case syntax.AMP_EQ:
		return syntax.AMP, true
	case syntax.CIRCUMFLEX_EQ:
		return syntax.CIRCUMFLEX, true
	}
	return 0, false
}

const (
	// maxText is the largest string or bytes that one operation makes.
	maxText = 16 << 20
	// maxElements is the longest list or tuple that one operation makes; 64 MB of it.
	maxElements = 4_000_000
	// maxRange is the longest range. It takes no memory, but time.
	maxRange = 10_000_000
)

func isGuard(name string) bool {
	switch name {
	case guardAttr, guardItem, guardKey, guardCompare, guardIn, guardTuple, guardModItem, guardSlice, guardFor, coverName:
		return true
	}
	if slices.ContainsFunc(guardedLoops(), func(l guardedLoop) bool { return l.name == name }) {
		return true
	}
	if len(name) == 2 && name[1] == '=' {
		name = name[:1]
	}
	_, ok := guardedOperators()[name]
	return ok
}

// withGuards returns the predeclared names and the guards.
func withGuards(predeclared starlark.StringDict) starlark.StringDict {
	all := boundedBuiltins()
	maps.Copy(all, predeclared)
	if own, ok := all["struct"].(*starlark.Builtin); ok {
		all["struct"] = weighed(own)
	}
	guard := func(name string, f func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error)) {
		all[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return f(t, args)
		})
	}
	for name, op := range guardedOperators() {
		guard(name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return binary(t, op, args[0], args[1])
		})
		guard(name+"=", func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return operand{args[0], op, t}, nil
		})
	}
	guard(guardModItem, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return starlark.None, modItem(t, args[0], args[1], args[2])
	})
	guard(guardAttr, func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return attr(args[0], string(args[1].(starlark.String)))
	})
	guard(guardItem, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		if d, ok := args[0].(*starlark.Dict); ok {
			return d, room(t, tableGrowth(d.Len()))
		}
		return args[0], nil
	})
	all[guardKey], all[guardCompare], all[guardIn] = keyGuard{}, comparedGuard{}, searchedGuard{}
	guard(guardSlice, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return slicedValue(t, args[0]), nil
	})
	guard(guardFor, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) { return innermost(t, args[0]) })
	for _, loop := range guardedLoops() {
		guard(loop.name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return outermost(t, args[0], loop.table, loop.only), nil
		})
	}
	guard(guardTuple, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return args[len(args)-1], weigh(t, args[0])
	})
	return all
}

// recoverInto is deferred around Go code that hostile input may make panic.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, Stack: debug.Stack()}
	}
}

func tooMany(name string, n, limit int) error {
	return fmt.Errorf("%s: %d elements are too many, the limit is %d", name, n, limit)
}

func tooLong(what string) error {
	return fmt.Errorf("%s: the result would have more than %d bytes", what, maxText)
}
