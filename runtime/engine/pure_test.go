package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Inputs and actions are data. A function in one of them would be another way into the
// engine.
func TestInputsAndActionsHoldNoFunctions(t *testing.T) {
	for _, file := range []string{"input.go", "action.go", "review.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range fields.Fields.List {
				ast.Inspect(f.Type, func(n ast.Node) bool {
					if _, is := n.(*ast.FuncType); is {
						t.Errorf("%s: %s.%s holds a function", file, spec.Name, f.Names)
					}
					return true
				})
			}
			return false
		})
	}
}
