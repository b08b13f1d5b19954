package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// A list that holds one list twice, and so on forty times, is small and has a text
// of a terabyte; and the interpreter's printer recurses. So what is to become text
// is measured first.

// maxNesting is how deep values may lie in each other that become text.
const maxNesting = 500

// boundedText returns str or repr with the limits.
func boundedText(name string) *starlark.Builtin {
	own := starlark.Universe[name].(*starlark.Builtin)
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) == 1 {
			if err := textFits(name, 0, args[0]); err != nil {
				return nil, err
			}
		}
		return own.CallInternal(thread, args, kwargs)
	})
}

// textFits refuses v when its text and so many bytes more are over the limit.
func textFits(what string, more int, v starlark.Value) error {
	m := measure{left: maxText - more}
	m.value(v, 0)
	switch {
	case m.deep:
		return fmt.Errorf("%s: values lie in each other more than %d deep", what, maxNesting)
	case m.left < 0:
		return tooLong(what)
	}
	return nil
}

func tooLong(what string) error {
	return fmt.Errorf("%s: the result would have more than %d bytes", what, maxText)
}

// measure counts down what the text of values takes, about.
type measure struct {
	left int
	deep bool
}

func (m *measure) value(v starlark.Value, depth int) {
	if depth > maxNesting {
		m.deep = true
	}
	m.left -= 2
	if m.left < 0 || m.deep {
		return
	}
	switch v := v.(type) {
	case starlark.String:
		m.left -= len(v)
	case starlark.Bytes:
		m.left -= len(v)
	case starlark.Int:
		if _, small := v.Int64(); !small {
			m.left -= v.BigInt().BitLen() / 3
		}
	case *starlark.List:
		for i := 0; i < v.Len() && m.more(); i++ {
			m.value(v.Index(i), depth+1)
		}
	case starlark.Tuple:
		for i := 0; i < len(v) && m.more(); i++ {
			m.value(v[i], depth+1)
		}
	case *starlark.Dict:
		for k, x := range v.Entries() {
			if !m.more() {
				return
			}
			m.value(k, depth+1)
			m.value(x, depth+1)
		}
	case *starlark.Set:
		for x := range v.Elements() {
			if !m.more() {
				return
			}
			m.value(x, depth+1)
		}
	case *starlarkstruct.Struct:
		for _, name := range v.AttrNames() {
			if x, err := v.Attr(name); err == nil && m.more() {
				m.left -= len(name)
				m.value(x, depth+1)
			}
		}
	}
}

func (m *measure) more() bool { return m.left >= 0 && !m.deep }

// formattedSize is how long s.format(args) gets at most.
func formattedSize(s string, args starlark.Tuple) int {
	longest := 0
	for _, v := range args {
		m := measure{left: maxText}
		m.value(v, 0)
		if !m.more() {
			return maxText + 1
		}
		longest = max(longest, maxText-m.left)
	}
	return len(s) + strings.Count(s, "{")*longest
}
