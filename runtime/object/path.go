package object

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
)

// Path leads to one place in a tree of maps and lists. It is either dotted text,
// whose keys are only known together with the tree, or a list of exact keys.
//
// Keys may hold dots themselves ("app.kubernetes.io/name", ".dockerconfigjson"):
// at each level of dotted text the longest key that is there and matches the rest
// of the text up to a dot or its end wins. There is no way back from that choice.
type Path struct {
	text string
	keys []string // exact when not nil
}

// maxPath bounds dotted text: resolving it looks at every dot once a level.
const maxPath = 4096

// Dotted returns the path that s is, as dotted text.
func Dotted(s string) Path { return Path{text: s} }

// ParsePath reads a path as hooks write it: dotted text, or a list of exact
// keys, in which list indexes may be ints. An empty path is an error.
func ParsePath(v starlark.Value) (Path, error) {
	switch v := v.(type) {
	case starlark.String:
		if v == "" {
			return Path{}, errors.New("path is empty")
		}
		if len(v) > maxPath {
			return Path{}, fmt.Errorf("path is longer than %d characters", maxPath)
		}
		return Dotted(string(v)), nil
	case *starlark.List, starlark.Tuple:
		list := v.(starlark.Indexable)
		if list.Len() == 0 {
			return Path{}, errors.New("path is empty")
		}
		keys := make([]string, list.Len())
		for i := range keys {
			switch k := list.Index(i).(type) {
			case starlark.String:
				keys[i] = string(k)
			case starlark.Int:
				keys[i] = k.String()
			default:
				return Path{}, fmt.Errorf("path: element %d: got %s, want string", i, k.Type())
			}
		}
		return Path{keys: keys}, nil
	}
	return Path{}, fmt.Errorf("path: got %s, want string or list of strings", v.Type())
}

// String returns the path as text: dotted, keys that hold dots in ["…"].
func (p Path) String() string {
	if p.keys == nil {
		return p.text
	}
	return KeysText(p.keys)
}

// KeysText writes exact keys for people: a.b["c.d"].
func KeysText(keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		switch {
		case k == "" || strings.ContainsAny(k, `."[] `):
			b.WriteString("[" + strconv.Quote(k) + "]")
		case b.Len() > 0:
			b.WriteString("." + k)
		default:
			b.WriteString(k)
		}
	}
	return b.String()
}

// Resolve returns the exact keys of the path in root, which may be nil. Where no
// key matches, the text is split at its dots.
func (p Path) Resolve(root map[string]any) []string {
	keys, _, _ := p.walk(root)
	return keys
}

// Get returns what is at the path: (nil, true) for a null that is there, and
// (nil, false) for nothing. In lists an index counts from 0.
func (p Path) Get(root map[string]any) (any, bool) {
	_, v, ok := p.walk(root)
	return v, ok
}

func (p Path) walk(root map[string]any) (keys []string, v any, ok bool) {
	v, ok = any(root), true
	if p.keys != nil {
		v, ok = Get(root, p.keys)
		return append([]string{}, p.keys...), v, ok
	}
	rest, more := p.text, true
	for more {
		var key string
		key, rest, more = cut(rest, v)
		keys = append(keys, key)
		v, ok = child(v, key)
	}
	return keys, v, ok
}

// cut takes the next key off the text: the longest one that v, a map, has, else
// what is before the first dot.
func cut(text string, v any) (key, rest string, more bool) {
	m, _ := v.(map[string]any)
	for end := len(text); end >= 0 && len(m) > 0; end = strings.LastIndexByte(text[:end], '.') {
		if _, ok := m[text[:end]]; ok {
			if end == len(text) {
				return text, "", false
			}
			return text[:end], text[end+1:], true
		}
	}
	return strings.Cut(text, ".")
}

// Get returns what is at the exact keys, as [Path.Get] does.
func Get(root map[string]any, keys []string) (any, bool) {
	var v any = root
	for _, k := range keys {
		var ok bool
		if v, ok = child(v, k); !ok {
			return nil, false
		}
	}
	return v, true
}

// Put sets what is at the exact keys of a map that is the caller's to change, and makes maps on the way.
func Put(root map[string]any, keys []string, v any) {
	last := len(keys) - 1
	for _, key := range keys[:last] {
		next, _ := root[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			root[key] = next
		}
		root = next
	}
	root[keys[last]] = v
}

// With is root with v at the exact keys, or without what is there, if v is nil: a map that has nothing else goes, too.
// Root itself stays as it is.
func With(root map[string]any, keys []string, v any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, root)
	if len(keys) > 1 {
		below, _ := root[keys[0]].(map[string]any)
		if inner := With(below, keys[1:], v); v != nil || len(inner) > 0 {
			v = inner
		}
	}
	if out[keys[0]] = v; v == nil {
		delete(out, keys[0])
	}
	return out
}

// Identical says whether two maps are one, not only equal.
func Identical(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// child returns what is below v under key; nothing is below a nil.
func child(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		c, ok := v[key]
		return c, ok
	case []any:
		if i, err := strconv.Atoi(key); err == nil && 0 <= i && i < len(v) && strconv.Itoa(i) == key {
			return v[i], true
		}
	}
	return nil, false
}
