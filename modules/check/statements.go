package check

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"
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
			if name := dotted(x); name != "" && name != "None" {
				c.named(pos, "this line does nothing: "+name+" is named, not called", "write "+name+"()")
			}
		case *syntax.CallExpr:
			if dot, ok := x.Fn.(*syntax.DotExpr); ok && test && dot.Name.Name == "expect" {
				of := dotted(dot)
				c.named(pos, fmt.Sprintf("this line expects nothing: %s(…) looks at a value", of), fmt.Sprintf("write %s(x).equals(y), or %s(x == y).is_true()", of, of))
			}
		}
		return true
	})
}
