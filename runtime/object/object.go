package object

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/message"
)

// Object is one decoded JSON object as a Starlark value of type "object". It is
// frozen, may be used by many threads at once, and converts nothing before it is
// asked for: a nested map becomes another Object, a list a frozen list, each time
// it is read.
//
// Fields are read as attributes (o.spec) or by index (o["spec"]), in sorted
// order when iterated. A field that is absent is an error with a suggestion. The
// only method is get(path, default=None), which is also what o.get means when
// there is a field of that name: read that one as o["get"].
//
// o == other is deep between objects. go.starlark.net never asks an object about
// a dict, so o == {…} is False: use [Equal].
type Object struct{ m map[string]any }

var (
	_ starlark.HasAttrs        = (*Object)(nil)
	_ starlark.IterableMapping = (*Object)(nil)
	_ starlark.Sequence        = (*Object)(nil)
	_ starlark.Comparable      = (*Object)(nil)
)

// New returns the Object over m. It keeps m and never changes it; the caller
// must not either.
func New(m map[string]any) *Object { return &Object{m} }

// Map returns the decoded map itself: read only.
func (o *Object) Map() map[string]any { return o.m }

// UID returns metadata.uid of an Object, "" of anything else.
func UID(v starlark.Value) string {
	o, is := v.(*Object)
	if !is {
		return ""
	}
	meta, _ := o.m["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

// String returns the object as a dict is written, keys sorted.
func (o *Object) String() string { return thaw(o.m).String() }

func (o *Object) Type() string { return "object" }

// Freeze does nothing: an Object is always frozen.
func (o *Object) Freeze() {}

// Truth reports whether the object has fields.
func (o *Object) Truth() starlark.Bool { return len(o.m) > 0 }

// Hash fails: objects are no dict keys.
func (o *Object) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: object") }

// Len returns the number of fields.
func (o *Object) Len() int { return len(o.m) }

// Attr returns the method get, or the field name.
func (o *Object) Attr(name string) (starlark.Value, error) {
	if name == "get" {
		return starlark.NewBuiltin("get", objectGet).BindReceiver(o), nil
	}
	if v, ok := o.m[name]; ok {
		return lazy(v), nil
	}
	return nil, o.absent(name)
}

// AttrNames returns the names that [Object.Attr] knows, sorted.
func (o *Object) AttrNames() []string {
	names := o.keys()
	if _, ok := o.m["get"]; !ok {
		names = append(names, "get")
		sort.Strings(names)
	}
	return names
}

// Get returns the field k, for o[k] and k in o.
func (o *Object) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, ok := starlark.AsString(k)
	if !ok {
		return nil, false, fmt.Errorf("object index: got %s, want string", k.Type())
	}
	v, ok := o.m[name]
	if !ok {
		return nil, false, o.absent(name)
	}
	return lazy(v), true, nil
}

// Iterate goes over the field names in sorted order.
func (o *Object) Iterate() starlark.Iterator { return &keyIterator{o.keys()} }

// Items returns all fields with their values, sorted.
func (o *Object) Items() []starlark.Tuple {
	items := make([]starlark.Tuple, 0, len(o.m))
	for _, k := range o.keys() {
		items = append(items, starlark.Tuple{starlark.String(k), lazy(o.m[k])})
	}
	return items
}

// CompareSameType implements == and != between objects, deeply. The depth that
// go.starlark.net allows (10) is ignored: decoded data has no cycles.
func (o *Object) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	same := plainEqual(o.m, y.(*Object).m)
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("object %s object not implemented", op)
}

func (o *Object) keys() []string { return slices.Sorted(maps.Keys(o.m)) }

// maxListed is how many fields an error about an absent one lists.
const maxListed = 12

// absent is the error about a field that is not there.
func (o *Object) absent(name string) error {
	names := o.keys()
	var hint string
	if near := o.near(name, names); near != "" {
		hint = " (did you mean " + fieldText(near) + "?)"
	}
	switch {
	case len(names) == 0:
		hint += "; it is empty"
	case len(names) <= maxListed:
		hint += "; it has " + strings.Join(names, ", ")
	case hint == "":
		hint = fmt.Sprintf("; it has %d other fields", len(names))
	}
	return fmt.Errorf("object has no field %s%s", strconv.Quote(name), hint)
}

// near finds what the author of o.name may have meant. A trailing underscore is
// how people try to write a reserved word: o.from_ means o["from"].
func (o *Object) near(name string, names []string) string {
	if word, ok := strings.CutSuffix(name, "_"); ok {
		if _, ok := o.m[word]; ok {
			return word
		}
	}
	return message.Nearest(name, names)
}

// fieldText shows how a field is read: .name, or ["name"] when it is a reserved
// word or no identifier.
func fieldText(name string) string {
	if isIdentifier(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func isIdentifier(s string) bool {
	if s == "" || s == "get" || reserved(s) {
		return false
	}
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// reserved reports whether Starlark's grammar keeps the word s for itself.
func reserved(s string) bool {
	switch s {
	case "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
		"elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
		"lambda", "load", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
		"with", "yield":
		return true
	}
	return false
}

func objectGet(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var path, dflt starlark.Value = nil, starlark.None
	if err := starlark.UnpackArgs("get", args, kwargs, "path", &path, "default?", &dflt); err != nil {
		return nil, err
	}
	p, err := ParsePath(path)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	v, _ := p.Get(b.Receiver().(*Object).m)
	if v == nil {
		return dflt, nil
	}
	return lazy(v), nil
}

// lazy converts one value of a decoded map: maps stay as they are, behind an
// Object.
func lazy(v any) starlark.Value {
	switch v := v.(type) {
	case map[string]any:
		return New(v)
	case []any:
		elems := make([]starlark.Value, len(v))
		for i, e := range v {
			elems[i] = lazy(e)
		}
		list := starlark.NewList(elems)
		list.Freeze()
		return list
	}
	return scalar(v)
}

type keyIterator struct{ keys []string }

func (it *keyIterator) Next(p *starlark.Value) bool {
	if len(it.keys) == 0 {
		return false
	}
	*p = starlark.String(it.keys[0])
	it.keys = it.keys[1:]
	return true
}

func (it *keyIterator) Done() {}
