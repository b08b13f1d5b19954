package check

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/script"
)

// literalFields holds objects of Kubernetes' own kinds that a call writes out to the fields of their kind: the API
// server refuses an apply of any other field.
func (c *checker) literalFields(s *source) {
	syntax.Walk(s.file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		if expectsAnError(call) {
			return false
		}
		switch s.builtin(call.Fn) {
		case "k8s.apply", "k8s.create", "part":
			dict, ok := script.ArgumentOf(call, 0, "obj").(*syntax.DictExpr)
			if !ok || identity(dict) == nil {
				break
			}
			obj := s.plain(dict).(map[string]any)
			kind, _ := obj["kind"].(string)
			unknown, wrong := strictFields(obj)
			for _, u := range unknown {
				c.at(Error, "kinds", keyAt(dict, u.path), fmt.Sprintf("%s has no field %s: the API server refuses it", kind, u.path), u.hint())
			}
			if path, want := wrongType(obj, wrong); path != "" {
				c.at(Error, "kinds", keyAt(dict, path), fmt.Sprintf("%s: %s must be %s", kind, path, inWords([]string{want})), typeHint(want, "str(x)"))
			}
		}
		return true
	})
}

// typeHint says how a value becomes one of a type; asText is how text is made of any.
func typeHint(want, asText string) string {
	switch want {
	case "string":
		return "write " + asText
	case "integer":
		return "write int(x)"
	}
	return ""
}

// plain is a value as far as it is written out; all else is nil, which any field takes.
func (s *source) plain(e syntax.Expr) any {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return s.plain(e.X)
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string, int64, float64:
			return v
		}
	case *syntax.Ident:
		if (e.Name == "True" || e.Name == "False") && !s.bound[e.Name] {
			return e.Name == "True"
		}
	case *syntax.ListExpr:
		out := make([]any, len(e.List))
		for i, x := range e.List {
			out[i] = s.plain(x)
		}
		return out
	case *syntax.DictExpr:
		out := map[string]any{}
		for _, x := range e.List {
			if entry, ok := x.(*syntax.DictEntry); ok {
				if key, ok := script.TextOf(entry.Key); ok {
					out[key] = s.plain(entry.Value)
				}
			}
		}
		return out
	}
	return nil
}

// keyAt is where a dict that is written out has what stands at a path, "spec.containers[0].image"; else where the last
// part of it is that is there.
func keyAt(e syntax.Expr, path string) syntax.Position {
	at, _ := e.Span()
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		var next syntax.Expr
		switch of := e.(type) {
		case *syntax.DictExpr:
			for _, x := range of.List {
				entry, ok := x.(*syntax.DictEntry)
				if !ok {
					continue
				}
				if key, _ := script.TextOf(entry.Key); key == name {
					at, _ = entry.Key.Span()
					next = entry.Value
				}
			}
		case *syntax.ListExpr:
			var i int
			if _, err := fmt.Sscan(name, &i); err == nil && i < len(of.List) {
				next = of.List[i]
				at, _ = next.Span()
			}
		}
		if next == nil {
			break
		}
		e = next
	}
	return at
}
