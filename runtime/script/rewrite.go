package script

import (
	"go.starlark.net/syntax"
)

// guard puts the guards into a parsed file.
func guard(f *syntax.File) { guardStmts(f.Stmts) }

func guardStmts(stmts []syntax.Stmt) {
	for _, s := range stmts {
		guardStmt(s)
	}
}

func guardStmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		guardTarget(s.LHS)
		s.RHS = guardExpr(s.RHS)
		name, isName := s.LHS.(*syntax.Ident)
		switch {
		case s.Op == syntax.PLUS_EQ && !isLiteral(s.RHS):
			s.RHS = guardCall(guardAddNow, s.OpPos, s.RHS)
		case s.Op == syntax.STAR_EQ && !isSmall(s.RHS):
			s.RHS = guardCall(guardMulNow, s.OpPos, s.RHS)
		case s.Op == syntax.PERCENT_EQ && isName:
			s.Op = syntax.EQ
			s.RHS = guardCall(guardMod, s.OpPos, &syntax.Ident{NamePos: name.NamePos, Name: name.Name}, s.RHS)
		}
	case *syntax.DefStmt:
		guardParams(s.Params)
		guardStmts(s.Body)
	case *syntax.ExprStmt:
		s.X = guardExpr(s.X)
	case *syntax.ForStmt:
		guardTarget(s.Vars)
		s.X = guardExpr(s.X)
		guardStmts(s.Body)
	case *syntax.WhileStmt:
		s.Cond = guardExpr(s.Cond)
		guardStmts(s.Body)
	case *syntax.IfStmt:
		s.Cond = guardExpr(s.Cond)
		guardStmts(s.True)
		guardStmts(s.False)
	case *syntax.ReturnStmt:
		s.Result = guardExpr(s.Result)
	case *syntax.BranchStmt, *syntax.LoadStmt:
	}
}

// guardTarget goes into what is assigned to. The target itself stays: x.join = 1
// is no use of join.
func guardTarget(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		guardTarget(e.X)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			guardTarget(x)
		}
	case *syntax.ListExpr:
		for _, x := range e.List {
			guardTarget(x)
		}
	case *syntax.IndexExpr:
		e.X, e.Y = guardExpr(e.X), guardExpr(e.Y)
	case *syntax.DotExpr:
		e.X = guardExpr(e.X)
	}
}

// guardParams goes into the default values of parameters.
func guardParams(params []syntax.Expr) {
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = guardExpr(b.Y)
		}
	}
}

func guardExprs(list []syntax.Expr) {
	for i, e := range list {
		list[i] = guardExpr(e)
	}
}

// guardExpr returns e with guards; nil for nil.
func guardExpr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		if e.Op == syntax.EQ { // name=value in a call
			e.Y = guardExpr(e.Y)
			return e
		}
		e.X, e.Y = guardExpr(e.X), guardExpr(e.Y)
		if e.Op == syntax.PLUS && !isLiteral(e.X) && !isLiteral(e.Y) {
			return guardCall(guardAdd, e.OpPos, e.X, e.Y)
		}
		if e.Op == syntax.STAR && !isSmall(e.X) && !isSmall(e.Y) {
			return guardCall(guardMul, e.OpPos, e.X, e.Y)
		}
		if e.Op == syntax.PERCENT && !isNumber(e.X) && !isNumber(e.Y) {
			return guardCall(guardMod, e.OpPos, e.X, e.Y)
		}
	case *syntax.CallExpr:
		e.Fn = guardExpr(e.Fn)
		guardExprs(e.Args)
	case *syntax.Comprehension:
		e.Body = guardExpr(e.Body)
		for _, c := range e.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				guardTarget(c.Vars)
				c.X = guardExpr(c.X)
			case *syntax.IfClause:
				c.Cond = guardExpr(c.Cond)
			}
		}
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = guardExpr(e.Cond), guardExpr(e.True), guardExpr(e.False)
	case *syntax.DictEntry:
		e.Key, e.Value = guardExpr(e.Key), guardExpr(e.Value)
	case *syntax.DictExpr:
		guardExprs(e.List)
	case *syntax.DotExpr:
		e.X = guardExpr(e.X)
		if guardedMethod(e.Name.Name) {
			name := &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Raw: `"` + e.Name.Name + `"`, Value: e.Name.Name}
			return guardCall(guardAttr, e.Dot, e.X, name)
		}
	case *syntax.IndexExpr:
		e.X, e.Y = guardExpr(e.X), guardExpr(e.Y)
	case *syntax.LambdaExpr:
		guardParams(e.Params)
		e.Body = guardExpr(e.Body)
	case *syntax.ListExpr:
		guardExprs(e.List)
	case *syntax.ParenExpr:
		e.X = guardExpr(e.X)
	case *syntax.SliceExpr:
		e.X, e.Lo, e.Hi, e.Step = guardExpr(e.X), guardExpr(e.Lo), guardExpr(e.Hi), guardExpr(e.Step)
	case *syntax.TupleExpr:
		guardExprs(e.List)
	case *syntax.UnaryExpr:
		e.X = guardExpr(e.X)
	case *syntax.Ident, *syntax.Literal:
	}
	return e
}

func guardCall(name string, pos syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{
		Fn:     &syntax.Ident{NamePos: pos, Name: name},
		Lparen: pos, Args: args, Rparen: pos,
	}
}

// isLiteral reports whether e is written out, so that adding it over and over is slow
// growth.
func isLiteral(e syntax.Expr) bool {
	switch e.(type) {
	case *syntax.Literal, *syntax.ListExpr:
		return true
	}
	return false
}

func isNumber(e syntax.Expr) bool {
	lit, ok := e.(*syntax.Literal)
	return ok && (lit.Token == syntax.INT || lit.Token == syntax.FLOAT)
}

// isSmall reports whether e is a literal number that may multiply anything.
func isSmall(e syntax.Expr) bool {
	lit, ok := e.(*syntax.Literal)
	if !ok {
		return false
	}
	switch v := lit.Value.(type) {
	case int64:
		return v <= smallFactor
	case float64:
		return true
	}
	return false
}
