package reads

import (
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
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
	s := &script{known: map[*syntax.Ident]bool{}, out: &Reads{}}
	syntax.Walk(file, s.see)
	return s.out
}

type script struct {
	// known are uses that are understood. A node is seen before those in it.
	known map[*syntax.Ident]bool
	out   *Reads
}

func (s *script) see(n syntax.Node) bool {
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

func (s *script) call(c *syntax.CallExpr) {
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
		s.known[of] = s.reads(argumentOf(c, 0, "path"))
	case name == "of":
		s.known[of] = s.exported(argumentOf(c, 0, "module"), argumentOf(c, 1, "path"))
	}
}

// reads notes the path of a call. False: it is not known.
func (s *script) reads(e syntax.Expr) bool {
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
func (s *script) exported(module, e syntax.Expr) bool {
	name, isText := literal(module)
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
	if text, ok := literal(e); ok {
		return text, nil, true
	}
	list, ok := e.(*syntax.ListExpr)
	if !ok {
		return "", nil, false
	}
	keys = []string{}
	for _, e := range list.List {
		key, ok := literal(e)
		if !ok {
			return "", nil, false
		}
		keys = append(keys, key)
	}
	return "", keys, true
}

// argumentOf is the one at a place, or that of a name; nil: it is not known.
func argumentOf(c *syntax.CallExpr, at int, name string) syntax.Expr {
	for i, arg := range c.Args {
		if u, ok := arg.(*syntax.UnaryExpr); ok && (u.Op == syntax.STAR || u.Op == syntax.STARSTAR) {
			return nil
		}
		b, named := arg.(*syntax.BinaryExpr)
		if named = named && b.Op == syntax.EQ; !named && i == at {
			return arg
		}
		if named {
			if id, ok := b.X.(*syntax.Ident); ok && id.Name == name {
				return b.Y
			}
		}
	}
	return nil
}

func literal(e syntax.Expr) (string, bool) {
	lit, ok := e.(*syntax.Literal)
	if !ok || lit.Token != syntax.STRING {
		return "", false
	}
	text, ok := lit.Value.(string)
	return text, ok
}
