package script

import (
	"slices"

	"go.starlark.net/syntax"
)

// guard puts the guards into a parsed file.
func guard(f *syntax.File) { guardStmts(f.Stmts) }

func guardStmts(stmts []syntax.Stmt) {
	for i, s := range stmts {
		guardStmt(s)
		if s, ok := s.(*syntax.AssignStmt); ok && s.Op == syntax.PERCENT_EQ {
			if at, ok := s.LHS.(*syntax.IndexExpr); ok {
				stmts[i] = &syntax.ExprStmt{X: guardCall(guardModItem, s.OpPos, at.X, at.Y, s.RHS)}
			}
		}
	}
}

// guardAssign puts the guards into an assignment; x[i] %= y is for [guardStmts].
func guardAssign(s *syntax.AssignStmt) {
	if at, ok := unparen(s.LHS).(*syntax.IndexExpr); ok && s.Op == syntax.PERCENT_EQ {
		at.X, at.Y, s.LHS = guardExpr(at.X), guardExpr(at.Y), at
		s.RHS = guardExpr(s.RHS)
		return
	}
	guardTarget(s.LHS)
	if at, ok := unparen(s.LHS).(*syntax.IndexExpr); ok && s.Op != syntax.EQ {
		at.Y = guardedKey(at.Y, at.Lbrack)
	}
	if spread(s.LHS) {
		s.RHS = guardElements(s.RHS)
	} else {
		s.RHS = guardExpr(s.RHS)
	}
	name, isName := s.LHS.(*syntax.Ident)
	if op, ok := assignedOperator(s.Op); ok && (op == syntax.STAR || !isNumber(s.RHS)) {
		s.RHS = guardCall(op.String()+"=", s.OpPos, s.RHS)
	} else if s.Op == syntax.PERCENT_EQ && isName {
		s.Op = syntax.EQ
		s.RHS = guardCall(syntax.PERCENT.String(), s.OpPos, &syntax.Ident{NamePos: name.NamePos, Name: name.Name}, s.RHS)
	}
}

// spread reports whether an assignment to e takes a tuple to pieces.
func spread(e syntax.Expr) bool {
	switch unparen(e).(type) {
	case *syntax.TupleExpr, *syntax.ListExpr:
		return true
	}
	return false
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// guardElements is guardExpr, except that a tuple that is written out is not weighed: it is
// used at once.
func guardElements(e syntax.Expr) syntax.Expr {
	if t, ok := unparen(e).(*syntax.TupleExpr); ok {
		guardExprs(t.List)
		return e
	}
	return guardExpr(e)
}

// guardArgs puts the weighing of *args before the body of a function.
func guardArgs(params []syntax.Expr, body []syntax.Stmt) []syntax.Stmt {
	args := variadic(params)
	if args == nil {
		return body
	}
	n := 0
	if doc, ok := body[0].(*syntax.ExprStmt); ok {
		if isText(doc.X) {
			n = 1
		}
	}
	weigh := &syntax.ExprStmt{X: guardCall(guardTuple, args.NamePos, &syntax.Ident{NamePos: args.NamePos, Name: args.Name})}
	return slices.Insert(body, n, syntax.Stmt(weigh))
}

// variadic returns the name of *args, nil where there is none.
func variadic(params []syntax.Expr) *syntax.Ident {
	for _, p := range params {
		if u, ok := p.(*syntax.UnaryExpr); ok && u.Op == syntax.STAR {
			name, _ := u.X.(*syntax.Ident)
			return name
		}
	}
	return nil
}

func guardStmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		guardAssign(s)
	case *syntax.DefStmt:
		guardParams(s.Params)
		guardStmts(s.Body)
		s.Body = guardArgs(s.Params, s.Body)
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
		e.X, e.Y = guardCall(guardItem, e.Lbrack, guardExpr(e.X)), guardExpr(e.Y)
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
		e.X = guardExpr(e.X)
		if e.Op == syntax.PERCENT {
			e.Y = guardElements(e.Y)
		} else {
			e.Y = guardExpr(e.Y)
		}
		if _, guarded := guardedOperators()[e.Op.String()]; guarded && !small(e) {
			return guardCall(e.Op.String(), e.OpPos, e.X, e.Y)
		}
		guardComparison(e)
	case *syntax.CallExpr:
		e.Fn = guardExpr(e.Fn)
		guardExprs(e.Args)
	case *syntax.Comprehension:
		e.Body = guardExpr(e.Body)
		if entry, ok := e.Body.(*syntax.DictEntry); ok {
			entry.Key = guardedKey(entry.Key, entry.Colon)
		}
		for _, c := range e.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				guardTarget(c.Vars)
				c.X = guardExpr(c.X)
			case *syntax.IfClause:
				c.Cond = guardExpr(c.Cond)
			}
		}
		guardLoops(e)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = guardExpr(e.Cond), guardExpr(e.True), guardExpr(e.False)
	case *syntax.DictEntry:
		e.Key, e.Value = guardExpr(e.Key), guardExpr(e.Value)
	case *syntax.DictExpr:
		guardExprs(e.List)
		for _, entry := range e.List {
			if entry, ok := entry.(*syntax.DictEntry); ok {
				entry.Key = guardedKey(entry.Key, entry.Colon)
			}
		}
	case *syntax.DotExpr:
		e.X = guardExpr(e.X)
		if guardedMethod(e.Name.Name) {
			name := &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Raw: `"` + e.Name.Name + `"`, Value: e.Name.Name}
			return guardCall(guardAttr, e.Dot, e.X, name)
		}
	case *syntax.IndexExpr:
		e.X, e.Y = guardExpr(e.X), guardedKey(guardExpr(e.Y), e.Lbrack)
	case *syntax.LambdaExpr:
		guardParams(e.Params)
		e.Body = guardExpr(e.Body)
		if args := variadic(e.Params); args != nil {
			e.Body = guardCall(guardTuple, args.NamePos, &syntax.Ident{NamePos: args.NamePos, Name: args.Name}, e.Body)
		}
	case *syntax.ListExpr:
		guardExprs(e.List)
	case *syntax.ParenExpr:
		e.X = guardExpr(e.X)
	case *syntax.SliceExpr:
		e.X, e.Lo, e.Hi, e.Step = guardCall(guardSlice, e.Lbrack, guardExpr(e.X)), guardExpr(e.Lo), guardExpr(e.Hi), guardExpr(e.Step)
	case *syntax.TupleExpr:
		guardExprs(e.List)
		if slices.ContainsFunc(e.List, func(x syntax.Expr) bool { _, literal := x.(*syntax.Literal); return !literal }) {
			start, _ := e.Span()
			return guardCall(guardTuple, start, e)
		}
	case *syntax.UnaryExpr:
		if e.X = guardExpr(e.X); e.Op == syntax.STARSTAR && e.X != nil {
			e.X = guardedKey(e.X, e.OpPos)
		}
	case *syntax.Ident, *syntax.Literal:
	}
	return e
}

// guardLoops puts the guards into the first and the last loop of a comprehension.
func guardLoops(e *syntax.Comprehension) {
	var loops []*syntax.ForClause
	for _, c := range e.Clauses {
		if loop, ok := c.(*syntax.ForClause); ok {
			loops = append(loops, loop)
		}
	}
	first, last := loops[0], loops[len(loops)-1]
	for _, g := range guardedLoops() {
		if g.table == e.Curly && g.only == (first == last) {
			first.X = guardCall(g.name, first.For, first.X)
		}
	}
	if first != last {
		last.X = guardCall(guardFor, last.For, last.X)
	}
}

func guardCall(name string, pos syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{
		Fn:     &syntax.Ident{NamePos: pos, Name: name},
		Lparen: pos, Args: args, Rparen: pos,
	}
}

// guardedKey is a key that the language may name in an error, whatever its size. A guard
// that is indexed costs less than one that is called.
func guardedKey(key syntax.Expr, pos syntax.Position) syntax.Expr {
	if _, literal := unparen(key).(*syntax.Literal); literal {
		return key
	}
	return guardIndex(guardKey, pos, key)
}

func guardIndex(name string, pos syntax.Position, e syntax.Expr) syntax.Expr {
	return &syntax.IndexExpr{X: &syntax.Ident{NamePos: pos, Name: name}, Lbrack: pos, Y: e, Rbrack: pos}
}

// guardComparison puts the guard into a comparison that may go through much.
func guardComparison(e *syntax.BinaryExpr) {
	switch e.Op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		if !isLiteral(e.X) && !isLiteral(e.Y) {
			e.X = guardIndex(guardCompare, e.OpPos, e.X)
		}
	case syntax.IN, syntax.NOT_IN:
		if !isLiteral(e.Y) && !brief(e.X) && !writtenOut(e.Y) {
			e.Y = guardIndex(guardIn, e.OpPos, e.Y)
		}
	}
}

func isLiteral(e syntax.Expr) bool {
	_, ok := unparen(e).(*syntax.Literal)
	return ok
}

// brief reports whether e is a number, or a text that may be compared with each of many.
func brief(e syntax.Expr) bool {
	lit, ok := unparen(e).(*syntax.Literal)
	return ok && len(lit.Raw) <= plainText
}

// writtenOut reports whether e is a list or tuple of literals, which are few.
func writtenOut(e syntax.Expr) bool {
	var elements []syntax.Expr
	switch e := unparen(e).(type) {
	case *syntax.ListExpr:
		elements = e.List
	case *syntax.TupleExpr:
		elements = e.List
	default:
		return false
	}
	return !slices.ContainsFunc(elements, func(x syntax.Expr) bool { return !isLiteral(x) })
}

// small reports whether an operation cannot make much: numbers alone, or a short text that
// is written out.
func small(e *syntax.BinaryExpr) bool {
	switch e.Op {
	case syntax.STAR:
		x, ok := e.X.(*syntax.Literal)
		y, ok2 := e.Y.(*syntax.Literal)
		return ok && ok2 && (smallNumber(x) || smallNumber(y))
	case syntax.PERCENT:
		return isNumber(e.X) || isNumber(e.Y)
	}
	return isNumber(e.X) || isNumber(e.Y) || isText(e.X) && isText(e.Y)
}

func isNumber(e syntax.Expr) bool {
	lit, ok := e.(*syntax.Literal)
	return ok && (lit.Token == syntax.INT || lit.Token == syntax.FLOAT)
}

func isText(e syntax.Expr) bool {
	lit, ok := e.(*syntax.Literal)
	return ok && (lit.Token == syntax.STRING || lit.Token == syntax.BYTES)
}

// smallNumber reports whether a literal is a number that may multiply a text that is
// written out.
func smallNumber(lit *syntax.Literal) bool {
	v, ok := lit.Value.(int64)
	return ok && v <= 100
}
