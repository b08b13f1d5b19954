package script

import (
	"fmt"

	"go.starlark.net/syntax"
)

// The parser takes a file of a+a+a… as quickly as any; but the syntax tree of it is as deep
// as it is long, and all that goes through the tree recurses.

const (
	// MaxFileSize is the largest .star file in bytes.
	MaxFileSize = 1 << 20
	// maxNodes is how many names, literals, operations and statements a file may have: four
	// times as many as a file of that size has that a person writes.
	maxNodes = 400_000
	// maxTreeDepth is how deep they may lie in each other. A sum of a thousand terms is that
	// deep, as is an if with as many elifs.
	maxTreeDepth = 2000
	// nodeCost is about how many bytes of memory a byte of source takes until it is compiled.
	nodeCost = 150
)

// nodesFit refuses a file whose tree is too large or too deep. It does not recurse.
func nodesFit(f *syntax.File) error {
	type level struct {
		node  syntax.Node
		depth int
	}
	todo := make([]level, 0, len(f.Stmts))
	for _, s := range f.Stmts {
		todo = append(todo, level{s, 1})
	}
	count := 0
	var below []syntax.Node
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		count++
		switch {
		case count > maxNodes:
			return syntax.Error{Pos: place(at.node), Msg: fmt.Sprintf("the file has more than %d names, literals, operations and statements: split it", maxNodes)}
		case at.depth > maxTreeDepth:
			return syntax.Error{Pos: place(at.node), Msg: fmt.Sprintf("expressions or statements lie in each other more than %d deep", maxTreeDepth)}
		}
		below = children(at.node, below[:0])
		for _, n := range below {
			todo = append(todo, level{n, at.depth + 1})
		}
	}
	return nil
}

// place is where something in n begins. Span recurses.
func place(n syntax.Node) syntax.Position {
	for {
		below := children(n, nil)
		if len(below) == 0 {
			start, _ := n.Span()
			return start
		}
		n = below[0]
	}
}

// children appends the nodes right below n.
func children(n syntax.Node, out []syntax.Node) []syntax.Node {
	expr := func(all ...syntax.Expr) {
		for _, e := range all {
			if e != nil {
				out = append(out, e)
			}
		}
	}
	stmts := func(all []syntax.Stmt) {
		for _, s := range all {
			out = append(out, s)
		}
	}
	switch n := n.(type) {
	case *syntax.AssignStmt:
		expr(n.LHS, n.RHS)
	case *syntax.DefStmt:
		expr(n.Params...)
		stmts(n.Body)
	case *syntax.ExprStmt:
		expr(n.X)
	case *syntax.ForStmt:
		expr(n.Vars, n.X)
		stmts(n.Body)
	case *syntax.WhileStmt:
		expr(n.Cond)
		stmts(n.Body)
	case *syntax.IfStmt:
		expr(n.Cond)
		stmts(n.True)
		stmts(n.False)
	case *syntax.ReturnStmt:
		expr(n.Result)
	case *syntax.BinaryExpr:
		expr(n.X, n.Y)
	case *syntax.CallExpr:
		expr(n.Fn)
		expr(n.Args...)
	case *syntax.Comprehension:
		expr(n.Body)
		out = append(out, n.Clauses...)
	case *syntax.ForClause:
		expr(n.Vars, n.X)
	case *syntax.IfClause:
		expr(n.Cond)
	case *syntax.CondExpr:
		expr(n.Cond, n.True, n.False)
	case *syntax.DictEntry:
		expr(n.Key, n.Value)
	case *syntax.DictExpr:
		expr(n.List...)
	case *syntax.DotExpr:
		expr(n.X)
	case *syntax.IndexExpr:
		expr(n.X, n.Y)
	case *syntax.LambdaExpr:
		expr(n.Params...)
		expr(n.Body)
	case *syntax.ListExpr:
		expr(n.List...)
	case *syntax.ParenExpr:
		expr(n.X)
	case *syntax.SliceExpr:
		expr(n.X, n.Lo, n.Hi, n.Step)
	case *syntax.TupleExpr:
		expr(n.List...)
	case *syntax.UnaryExpr:
		expr(n.X)
	}
	return out
}
