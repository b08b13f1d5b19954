package object

import (
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// A list that holds one list twice, and so on forty times, is small and has a text
// of a terabyte; and the interpreter's printer recurses. So what is to become text
// is measured first.

// MaxTextNesting is how deep values may lie in each other that become text.
const MaxTextNesting = 500

// TextSize returns about how many bytes the text of v has. It counts no further than
// limit: beyond it is limit+1. Values too deep in each other for a text are deep.
func TextSize(v starlark.Value, limit int) (size int, deep bool) {
	m := measure{left: limit}
	m.value(v, 0)
	return limit - max(m.left, -1), m.deep
}

// Text returns v as str(v) does if that has no more than limit bytes, and false where
// it has more.
func Text(v starlark.Value, limit int) (string, bool) {
	if size, deep := TextSize(v, limit); deep || size > limit {
		return "", false
	}
	if s, ok := starlark.AsString(v); ok {
		return s, true
	}
	return v.String(), true
}

// measure counts down what the text of values takes, about.
type measure struct {
	left int
	deep bool
}

func (m *measure) value(v starlark.Value, depth int) {
	if depth > MaxTextNesting {
		m.deep = true
	}
	m.left -= 2
	if !m.more() {
		return
	}
	switch v := v.(type) {
	case starlark.String:
		m.left -= len(v)
	case starlark.Bytes:
		m.left -= len(v)
	case starlark.Int:
		if _, small := v.Int64(); !small {
			m.left -= digits(v)
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

// maxWritten is how many digits a number may have that an error names.
const maxWritten = 10_000

// digits is about how many digits a number has; of a huge one more, as writing it takes time
// that grows faster than they do.
func digits(v starlark.Int) int {
	bits := v.BigInt().BitLen()
	return bits / 3 * (1 + bits>>17)
}
