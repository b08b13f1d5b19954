package check

import (
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/script"
)

// ofObjects are the arguments of k8s.watch that are functions of an object.
var ofObjects = [...]string{"filter", "wakes"}

// comparisons reports `o.metadata.labels == {…}`: an object is never equal to a dict,
// and in no list of dicts, whatever both hold. Only where the left side is surely what
// the cluster gave: the parameter of a filter, e.object of an event, what k8s.get
// returned, a row of a watch without a filter.
func (c *checker) comparisons(s *source) {
	for _, stmt := range s.file.Stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt:
				objects := map[string]bool{}
				if s.filters[n.Name.Name] && len(n.Params) > 0 {
					if id, ok := n.Params[0].(*syntax.Ident); ok {
						objects[id.Name] = true
					}
				}
				c.compareIn(s, n.Body, objects, s.contexts[n.Name.Name])
				return false
			case *syntax.CallExpr:
				if s.builtin(n.Fn) != "k8s.watch" {
					return true
				}
				for _, arg := range ofObjects {
					lambda, ok := script.ArgumentOf(n, -1, arg).(*syntax.LambdaExpr)
					if !ok || len(lambda.Params) == 0 {
						continue
					}
					if id, ok := lambda.Params[0].(*syntax.Ident); ok {
						c.compareIn(s, []syntax.Stmt{&syntax.ExprStmt{X: lambda.Body}}, map[string]bool{id.Name: true}, false)
					}
				}
			}
			return true
		})
	}
}

// compareIn looks at the body of one function. objects are names that hold objects;
// those that are assigned once, from an object, join them.
func (c *checker) compareIn(s *source, body []syntax.Stmt, objects map[string]bool, isHook bool) {
	assigned, events := map[string]int{}, map[string]bool{}
	walk := func(see func(syntax.Node)) {
		for _, stmt := range body {
			syntax.Walk(stmt, func(n syntax.Node) bool {
				if n != nil {
					see(n)
				}
				return true
			})
		}
	}
	name := func(e syntax.Expr) string {
		if id, ok := e.(*syntax.Ident); ok {
			return id.Name
		}
		return ""
	}
	// A binding ties a name to a value: by assignments, loops, comprehensions.
	type binding struct{ to, from syntax.Expr }
	var bindings, loops []binding
	walk(func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.AssignStmt:
			bindings = append(bindings, binding{n.LHS, n.RHS})
		case *syntax.ForStmt:
			loops = append(loops, binding{n.Vars, n.X})
		case *syntax.ForClause:
			loops = append(loops, binding{n.Vars, n.X})
		case *syntax.DefStmt:
			assigned[n.Name.Name] += 2
			for _, p := range n.Params {
				assigned[name(p)] += 2
			}
		case *syntax.LambdaExpr:
			for _, p := range n.Params {
				assigned[name(p)] += 2
			}
		}
	})
	for _, list := range [][]binding{bindings, loops} {
		for _, b := range list {
			syntax.Walk(b.to, func(n syntax.Node) bool {
				if id, ok := n.(*syntax.Ident); ok {
					assigned[id.Name]++
				}
				return true
			})
		}
	}
	for o := range objects {
		if assigned[o] > 0 {
			delete(objects, o)
		}
	}
	var isObject func(e syntax.Expr) bool
	isObject = func(e syntax.Expr) bool {
		switch e := e.(type) {
		case *syntax.Ident:
			return objects[e.Name]
		case *syntax.ParenExpr:
			return isObject(e.X)
		case *syntax.DotExpr:
			if e.Name.Name == "object" && events[name(e.X)] {
				return true
			}
			return isObject(e.X)
		case *syntax.IndexExpr:
			return isObject(e.X) || isHook && s.wholeRows(e.X)
		case *syntax.CallExpr:
			if s.builtin(e.Fn) == "k8s.get" {
				return true
			}
			get, ok := e.Fn.(*syntax.DotExpr)
			return ok && get.Name.Name == "get" && len(e.Args) == 1 && isObject(get.X)
		}
		return false
	}
	for range 3 { // names of names
		for _, b := range loops {
			if isHook && script.NameOf(b.from) == "ctx.events" && assigned[name(b.to)] == 1 {
				events[name(b.to)] = true
			}
			call, ok := b.from.(*syntax.CallExpr)
			rows := ok && s.builtin(call.Fn) == "k8s.list" || isHook && s.wholeRows(b.from)
			if rows && assigned[name(b.to)] == 1 {
				objects[name(b.to)] = true
			}
		}
		for _, b := range bindings {
			if n := name(b.to); n != "" && assigned[n] == 1 && isObject(b.from) {
				objects[n] = true
			}
		}
	}
	walk(func(n syntax.Node) {
		b, ok := n.(*syntax.BinaryExpr)
		if !ok {
			return
		}
		switch b.Op {
		case syntax.EQL, syntax.NEQ:
			if isObject(b.X) && isDict(b.Y) || isDict(b.X) && isObject(b.Y) {
				c.at(Error, "comparisons", b.OpPos, "this is always "+map[syntax.Token]string{syntax.EQL: "False", syntax.NEQ: "True"}[b.Op]+": an object of the cluster is never == a dict", "write equal(a, b)")
			}
		case syntax.IN, syntax.NOT_IN:
			if isObject(b.X) && holdsDicts(b.Y) {
				c.at(Error, "comparisons", b.OpPos, "this is always "+map[syntax.Token]string{syntax.IN: "False", syntax.NOT_IN: "True"}[b.Op]+": an object of the cluster is never == a dict", "write any([equal(a, x) for x in […]])")
			}
		}
	})
}

// wholeRows says whether an expression is the snapshot of a watch without a filter: ctx.snapshots["nodes"].
func (s *source) wholeRows(e syntax.Expr) bool {
	index, ok := e.(*syntax.IndexExpr)
	if !ok || script.NameOf(index.X) != "ctx.snapshots" {
		return false
	}
	watch, ok := script.TextOf(index.Y)
	return ok && s.whole[watch]
}

func isDict(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return isDict(e.X)
	case *syntax.DictExpr:
		return true
	case *syntax.Comprehension:
		return e.Curly
	}
	return false
}

// holdsDicts: a list or tuple, written out, of nothing but dicts.
func holdsDicts(e syntax.Expr) bool {
	var elems []syntax.Expr
	switch e := e.(type) {
	case *syntax.ListExpr:
		elems = e.List
	case *syntax.TupleExpr:
		elems = e.List
	case *syntax.ParenExpr:
		return holdsDicts(e.X)
	}
	for _, x := range elems {
		if !isDict(x) {
			return false
		}
	}
	return len(elems) > 0
}
