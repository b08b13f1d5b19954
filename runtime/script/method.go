package script

import (
	"fmt"
	"strings"
	"unicode"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// guardedMethod says which methods of the language's own values measure first what they
// make. A method of another type with such a name is as it is.
func guardedMethod(name string) bool {
	switch name {
	case "join", "replace", "format", "split", "rsplit", "splitlines", "elems", "elem_ords", "codepoints", "codepoint_ords",
		"upper", "lower", "title", "capitalize",
		"append", "insert", "extend", "setdefault", "update", "add", "items", "keys", "values", "popitem",
		"union", "intersection", "difference", "symmetric_difference",
		"issubset", "issuperset", "index", "remove":
		return true
	}
	return false
}

// attr is x.name for a guarded name.
func attr(x starlark.Value, name string) (starlark.Value, error) {
	switch x.(type) {
	case starlark.String, starlark.Bytes, *starlark.List, *starlark.Dict, *starlark.Set:
		m, err := x.(starlark.HasAttrs).Attr(name)
		if own, ok := m.(*starlark.Builtin); ok && err == nil {
			return method{own}, nil
		}
	}
	return otherAttr(x, name)
}

// method is a method of a value that asks for room before it is called.
type method struct{ *starlark.Builtin }

func (m method) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	n, err := methodSize(m.Receiver(), m.Name(), args, kwargs)
	if err == nil {
		err = room(t, n)
	}
	if err != nil {
		return nil, err
	}
	v, err := m.call(t, args, kwargs)
	if err != nil {
		return nil, err
	}
	switch m.Name() {
	case "items", "popitem":
		err = weighAll(t, v)
	}
	return v, err
}

// call calls the method, or does the same with looks at the limits of the run.
func (m method) call(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var err error
	switch m.Name() {
	case "add", "setdefault":
		if len(args) > 0 {
			err = keyFits(args[0])
		}
	case "index", "remove":
		if x, ok := m.Receiver().(*starlark.List); ok && len(args) > 0 && !scalar(args[0]) {
			c := boundedComparison()
			if _, err = c.index(x, args[0]); c.left >= 0 {
				err = nil // the language says it
			}
		}
	case "union", "difference", "intersection", "symmetric_difference", "issubset", "issuperset":
		return setMethod(t, m.Receiver().(*starlark.Set), m.Name(), args, kwargs)
	case "update":
		if d, ok := m.Receiver().(*starlark.Dict); ok {
			return dictUpdate(t, d, m.Builtin, args, kwargs)
		}
		return watchedCall(t, m.Builtin, args, kwargs, false)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name(), err)
	}
	return m.Builtin.CallInternal(t, args, kwargs)
}

// methodSize returns about how many bytes a method makes, or why it may not.
func methodSize(x starlark.Value, name string, args starlark.Tuple, kwargs []starlark.Tuple) (int, error) {
	switch x := x.(type) {
	case starlark.String:
		return textMethodSize(string(x), name, args, kwargs)
	case starlark.Bytes:
		if name == "elems" && len(x) > maxPieces {
			return 0, tooMany(name, len(x), maxPieces)
		}
		return 0, nil
	}
	const slot, pair = elementCost, 72 // of keys and values, and of items with their tuples
	switch name {
	case "index", "remove", "issubset", "issuperset":
		return 0, nil
	case "append", "insert", "setdefault", "add":
		return growth(x), nil
	case "keys", "values":
		return starlark.Len(x) * slot, nil
	case "items":
		return starlark.Len(x) * pair, nil
	}
	n := held(x)
	cost, limit := keyCost, 2*maxKeys
	if _, ok := x.(*starlark.List); ok {
		cost, limit, n = elementCost, maxElements, n*5/4
	}
	for _, arg := range args {
		m := max(starlark.Len(arg), 0)
		if m > limit {
			return 0, tooMany(name, m, limit)
		}
		n += m * cost
	}
	return n, nil
}

func textMethodSize(s, name string, args starlark.Tuple, kwargs []starlark.Tuple) (n int, err error) {
	switch name {
	case "index":
		return 0, nil
	case "replace":
		n = replacedSize(s, args)
	case "join":
		n = joinedSize(s, args)
	case "format":
		n = formattedSize(s, args, kwargs)
	case "upper", "lower", "title", "capitalize":
		n = 3 * len(s) / 2 // some letters have longer forms
		return n, nil
	default:
		n = pieces(name, s, args)
		if n > maxPieces {
			return 0, tooMany(name, n, maxPieces)
		}
		return n * 3 * elementCost, nil
	}
	if n > maxText {
		return 0, tooLong(name)
	}
	return n, nil
}

// joinedSize and replacedSize return how long the result would be; 0 when the
// arguments are wrong, which the method then says.
func joinedSize(sep string, args starlark.Tuple) int {
	if len(args) != 1 {
		return 0
	}
	n := 0
	add := func(v starlark.Value) {
		if s, ok := v.(starlark.String); ok {
			n += len(s) + len(sep)
		}
	}
	switch seq := args[0].(type) {
	case starlark.Indexable:
		for i := 0; i < seq.Len() && n <= maxText; i++ {
			add(seq.Index(i))
		}
	case starlark.Iterable:
		it := seq.Iterate()
		defer it.Done()
		var v starlark.Value
		for n <= maxText && it.Next(&v) {
			add(v)
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

// formattedSize is how long s.format(args) gets at most.
func formattedSize(s string, args starlark.Tuple, kwargs []starlark.Tuple) int {
	longest := 0
	measure := func(v starlark.Value) {
		size, deep := object.TextSize(v, maxText)
		if deep {
			size = maxText + 1
		}
		longest = max(longest, size)
	}
	for _, v := range args {
		measure(v)
	}
	for _, kv := range kwargs {
		measure(kv[1])
	}
	if longest > maxText {
		return longest
	}
	return len(s) + strings.Count(s, "{")*longest
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

// otherAttr is x.name for all else, with the interpreter's errors.
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
	if n := message.Nearest(name, has.AttrNames()); n != "" {
		msg += fmt.Sprintf(" (did you mean .%s?)", n)
	}
	return nil, fmt.Errorf("%s", msg)
}
