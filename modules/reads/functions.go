package reads

import (
	"strconv"
	"strings"
	"text/template/parse"
)

// function is what a function of templates gives. Of those that are not here anything may
// become of the arguments, and the result is new.
func (t *templates) function(name string, args []argument) value {
	given := func(n int) bool { return len(args) == n }
	switch {
	case name == "include" && given(2):
		t.include(args[0], args[1].value)
		return value{}
	case name == "dict":
		return t.dict(args)
	case name == "list" || name == "tuple":
		out := value{keys: map[string]value{}}
		for i, a := range args {
			out.keys[strconv.Itoa(i)] = a.value
		}
		return t.joined(value{}, out)
	case name == "first" && given(1) && len(args[0].value.keys) > 0:
		return t.index(args[0].value, "0", true)
	case name == "index" && len(args) > 0, name == "get" && given(2):
		v := args[0].value
		for _, a := range args[1:] {
			t.escape(a.value)
			key, known := keyIn(a.node)
			v = t.index(v, key, known)
		}
		return v
	case name == "hasKey" && given(2):
		return t.hasKey(args[0].value, args[1])
	case name == "dig" && len(args) >= 3:
		return t.dig(args)
	case name == "default" && given(2), name == "coalesce", name == "and", name == "or":
		out := value{}
		for _, a := range args {
			t.truth(a.value)
			out = t.joined(out, a.value)
		}
		return out
	case name == "required" && given(2):
		t.escape(args[0].value)
		t.truth(args[1].value)
		return args[1].value
	case name == "ternary" && given(3):
		t.escape(args[2].value)
		return t.joined(args[0].value, args[1].value)
	case (name == "not" || name == "empty") && given(1):
		t.truth(args[0].value)
		return value{}
	case name == "deepCopy" && given(1):
		return args[0].value
	case name == "set" && given(3): // it changes the first one
		t.escape(args[1].value)
		t.escape(args[2].value)
		return args[0].value
	case name == "unset" && given(2):
		t.escape(args[1].value)
		return args[0].value
	}
	for _, a := range args {
		t.escape(a.value)
	}
	return value{}
}

// include has a named template rendered.
func (t *templates) include(name argument, v value) {
	t.escape(name.value)
	if text, ok := name.node.(*parse.StringNode); ok {
		t.call(text.Text, v)
	} else if ofFile(name.node) {
		t.callFiles(v)
	} else {
		t.callAny(v)
	}
}

// ofFile knows (print $.Template.BasePath "/file.yaml"), by which charts name their files.
func ofFile(n parse.Node) bool {
	p, ok := n.(*parse.PipeNode)
	if !ok || len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) < 2 {
		return false
	}
	args := p.Cmds[0].Args
	id, ok := args[0].(*parse.IdentifierNode)
	if !ok || id.Ident != "print" {
		return false
	}
	return strings.HasSuffix(args[1].String(), ".Template.BasePath")
}

// dict is one that a template makes.
func (t *templates) dict(args []argument) value {
	out := value{keys: map[string]value{}}
	for i := 0; i < len(args); i += 2 {
		t.escape(args[i].value)
		switch key, known := keyIn(args[i].node); {
		case i+1 == len(args): // without a value
		case known:
			out.keys[key] = args[i+1].value
		default:
			t.escape(args[i+1].value)
		}
	}
	return t.joined(value{}, out)
}

// index is what is under a key, or under any where it is not known.
func (t *templates) index(v value, key string, known bool) value {
	if known {
		return t.field(v, key)
	}
	return t.element(v)
}

// hasKey asks whether a key is there. Root and values always have the same of those that
// matter.
func (t *templates) hasKey(v value, key argument) value {
	t.escape(key.value)
	if text, known := keyIn(key.node); known {
		t.escape(value{global: t.globalBelow(value{global: v.global}, text)})
	} else {
		t.escape(value{global: v.global})
	}
	return value{}
}

// dig follows keys; before the last argument, the dict, stands what is there otherwise.
func (t *templates) dig(args []argument) value {
	n := len(args) - 2
	v := args[n+1].value
	for _, a := range args[:n] {
		t.escape(a.value)
		key, known := keyIn(a.node)
		v = t.index(v, key, known)
	}
	return t.joined(v, args[n].value)
}

// keyIn is a key or an index that is written out.
func keyIn(n parse.Node) (string, bool) {
	switch n := n.(type) {
	case *parse.StringNode:
		return n.Text, true
	case *parse.NumberNode:
		if n.IsInt {
			return strconv.FormatInt(n.Int64, 10), true
		}
	}
	return "", false
}
