package reads

import (
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/script"
)

// globalKey is the key of the global values.
const globalKey = "global"

// writers are the functions of values that read nothing: who may write global values is no
// module's hook.
var writers = map[string]bool{"set": true, "default": true, "merge": true, "remove": true, "patch": true}

// Script returns what a file reads of the global values, without those that it loads. Each
// use of `values` other than a call with a path that is written out counts as all. It notes
// in the file what names mean.
func Script(file *syntax.File) *Reads {
	anything := func(string) bool { return true }
	if err := resolve.File(file, anything, anything); err != nil {
		return nil
	}
	s := &scriptReads{known: map[*syntax.Ident]bool{}, out: &Reads{}}
	syntax.Walk(file, s.see)
	return s.out
}

type scriptReads struct {
	// known are uses that are understood. A node is seen before those in it.
	known map[*syntax.Ident]bool
	out   *Reads
}

func (s *scriptReads) see(n syntax.Node) bool {
	if s.out == nil {
		return false
	}
	switch n := n.(type) {
	case *syntax.CallExpr:
		s.call(n)
	case *syntax.Ident:
		if isValues(n) && !s.known[n] {
			s.out = nil
		}
	}
	return s.out != nil
}

// isValues says that a name is the builtin values, or config, whose get reads the same paths. It is not the name of a
// parameter or a field, and the file does not define it.
func isValues(id *syntax.Ident) bool {
	b, ok := id.Binding.(*resolve.Binding)
	return ok && (id.Name == "values" || id.Name == "config") && (b.Scope == resolve.Predeclared || b.Scope == resolve.Universal)
}

func (s *scriptReads) call(c *syntax.CallExpr) {
	dot, ok := c.Fn.(*syntax.DotExpr)
	if !ok {
		return
	}
	of, ok := dot.X.(*syntax.Ident)
	if !ok || !isValues(of) {
		return
	}
	switch name := dot.Name.Name; {
	case writers[name]:
		s.known[of] = true
	case name == "get" || name == "has":
		s.known[of] = s.reads(script.ArgumentOf(c, 0, "path"))
	case name == "of":
		s.known[of] = s.exported(script.ArgumentOf(c, 0, "module"), script.ArgumentOf(c, 1, "path"))
	}
}

// reads notes the path of a call. False: it is not known.
func (s *scriptReads) reads(e syntax.Expr) bool {
	text, keys, known := pathOf(e)
	if !known || text == globalKey || len(keys) == 1 && keys[0] == globalKey {
		return false
	}
	if below, ok := strings.CutPrefix(text, globalKey+"."); ok {
		s.out.paths = append(s.out.paths, place{dotted: below})
	}
	if len(keys) > 1 && keys[0] == globalKey {
		s.out.paths = append(s.out.paths, place{keys: keys[1:]})
	}
	return true
}

// exported notes what a call of values.of reads, which stands below `global`. False: it is not
// known.
func (s *scriptReads) exported(module, e syntax.Expr) bool {
	name, isText := script.TextOf(module)
	text, keys, known := pathOf(e)
	if !isText || !known {
		return false
	}
	at := builtins.ExportsPath(name)[1:]
	if keys != nil {
		s.out.paths = append(s.out.paths, place{keys: append(at, keys...)})
	} else {
		s.out.paths = append(s.out.paths, place{dotted: strings.Join(append(at, text), ".")})
	}
	return true
}

// pathOf is a path that is written out, as text or as a list of keys. Nothing of it is known of
// another one, nor of nil.
func pathOf(e syntax.Expr) (text string, keys []string, known bool) {
	if text, ok := script.TextOf(e); ok {
		return text, nil, true
	}
	keys, known = script.TextsOf(e)
	return "", append([]string{}, keys...), known
}
