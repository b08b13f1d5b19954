package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

// statements looks for lines that do nothing: a function that is named and not called, an expectation without what is
// expected.
func (c *checker) statements(s *source) {
	test := strings.HasSuffix(s.path, "_test.star")
	syntax.Walk(s.file, func(n syntax.Node) bool {
		stmt, ok := n.(*syntax.ExprStmt)
		if !ok {
			return true
		}
		pos, _ := stmt.Span()
		switch x := stmt.X.(type) {
		case *syntax.DotExpr, *syntax.Ident:
			if name := script.NameOf(x); name != "" && name != "None" {
				c.named(pos, "this line does nothing: "+name+" is named, not called", "write "+name+"()")
			}
		case *syntax.CallExpr:
			if dot, ok := x.Fn.(*syntax.DotExpr); ok && test && dot.Name.Name == "expect" {
				of := script.NameOf(dot)
				c.named(pos, fmt.Sprintf("this line expects nothing: %s(…) looks at a value", of), fmt.Sprintf("write %s(x).equals(y), or %s(x == y).is_true()", of, of))
			}
		}
		return true
	})
}

// increments looks for x += y in a function that gives x no value before: a misspelt name, as a rule, for += makes it
// a name of the function.
func (c *checker) increments(s *source) {
	for _, fn := range s.at {
		def, ok := fn.(*syntax.DefStmt)
		if !ok {
			continue
		}
		inner := &source{at: map[place]syntax.Node{}, bound: map[string]bool{}, times: map[string]int{}}
		var added []*syntax.Ident
		inner.bind(&syntax.DefStmt{Name: def.Name, Params: def.Params})
		delete(inner.bound, def.Name.Name) // it is one of the file
		for _, stmt := range def.Body {
			syntax.Walk(stmt, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.DefStmt:
					inner.mean(n.Name.Name)
					return false
				case *syntax.LambdaExpr, *syntax.Comprehension:
					return false
				case *syntax.AssignStmt:
					if id, ok := n.LHS.(*syntax.Ident); ok && n.Op != syntax.EQ {
						added = append(added, id)
						return true
					}
				}
				inner.bind(n)
				return true
			})
		}
		for _, id := range added {
			if inner.bound[id.Name] {
				continue
			}
			msg, hint := script.Reworded("local variable " + id.Name + " referenced before assignment") // as a run says
			if near := message.Nearest(id.Name, slices.Sorted(maps.Keys(inner.bound))); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.named(id.NamePos, msg, hint)
		}
	}
}
