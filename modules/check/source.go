package check

import (
	"path"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/script"
)

// source is one parsed file.
type source struct {
	path string
	file *syntax.File
	// functions are the top-level ones by name.
	functions map[string]*syntax.DefStmt
	// at are all functions and lambdas by where they begin.
	at map[place]syntax.Node
	// bound are names that the file gives its own meaning, anywhere: they may not
	// be the builtins.
	bound map[string]bool
	// times is how many meanings a name has in the file.
	times map[string]int
	// contexts are the functions whose first parameter is ctx: hooks and cleanups.
	contexts map[string]bool
	// filters are the functions and lambdas whose parameter is an object.
	filters map[string]bool
	// whole are the names of watches without a filter: their rows are objects.
	whole map[string]bool
	// sets says that something in the file sets values.
	sets bool
	// loads are the names that it loads from files of the tree, where they are from.
	loads map[string]loadedName
}

// loadedName is a name in another file.
type loadedName struct{ file, name string }

func newSource(path string, file *syntax.File) *source {
	s := &source{
		path: path, file: file, functions: map[string]*syntax.DefStmt{}, at: map[place]syntax.Node{},
		bound: map[string]bool{}, times: map[string]int{}, contexts: map[string]bool{}, filters: map[string]bool{}, whole: map[string]bool{}, loads: map[string]loadedName{},
	}
	for _, stmt := range file.Stmts {
		switch stmt := stmt.(type) {
		case *syntax.DefStmt:
			s.functions[stmt.Name.Name] = stmt
		case *syntax.LoadStmt:
			from := loadPath(path, stmt.ModuleName())
			for i, to := range stmt.To {
				if from != "" {
					s.loads[to.Name] = loadedName{from, stmt.From[i].Name}
				}
			}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		s.bind(n)
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		switch s.builtin(call.Fn) {
		case "values.set", "values.default", "values.merge", "values.patch":
			s.sets = true
		case "hook":
			for _, arg := range []syntax.Expr{script.ArgumentOf(call, 0, "fn"), script.ArgumentOf(call, -1, "cleanup")} {
				if id, ok := arg.(*syntax.Ident); ok {
					s.contexts[id.Name] = true
				}
			}
		case "k8s.watch":
			if name, ok := script.TextOf(script.ArgumentOf(call, 2, "name")); ok && script.ArgumentOf(call, -1, "filter") == nil && script.ArgumentOf(call, -1, "keep") == nil {
				_, twice := s.whole[name]
				s.whole[name] = !twice
			} else if ok {
				s.whole[name] = false
			}
			for _, name := range ofObjects {
				if id, ok := script.ArgumentOf(call, -1, name).(*syntax.Ident); ok {
					s.filters[id.Name] = true
				}
			}
		}
		return true
	})
	return s
}

// loadPath is the file of the tree that a file loads by this name; "" for one of the
// standard library.
func loadPath(from, name string) string {
	if below, ok := strings.CutPrefix(name, "//"); ok {
		return path.Clean(below)
	}
	if strings.HasPrefix(name, "@") {
		return ""
	}
	return path.Join(path.Dir(from), name)
}

// place is a line and a column, from 1.
type place struct{ line, col int32 }

// bind notes the functions and the names that a node makes.
func (s *source) bind(n syntax.Node) {
	names := func(e syntax.Expr) {
		if e == nil {
			return
		}
		syntax.Walk(e, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				s.mean(id.Name)
			}
			return true
		})
	}
	params := func(list []syntax.Expr) {
		for _, p := range list {
			if b, ok := p.(*syntax.BinaryExpr); ok {
				p = b.X // the default is no name
			}
			names(p)
		}
	}
	switch n := n.(type) {
	case *syntax.DefStmt:
		s.at[place{n.Def.Line, n.Def.Col}] = n
		s.mean(n.Name.Name)
		params(n.Params)
	case *syntax.LambdaExpr:
		s.at[place{n.Lambda.Line, n.Lambda.Col}] = n
		params(n.Params)
	case *syntax.AssignStmt:
		target(n.LHS, names)
	case *syntax.ForStmt:
		names(n.Vars)
	case *syntax.ForClause:
		names(n.Vars)
	case *syntax.LoadStmt:
		for _, to := range n.To {
			s.mean(to.Name)
		}
	}
}

// target calls bind for the names that an assignment gives a value.
func target(e syntax.Expr, bind func(syntax.Expr)) {
	switch e := e.(type) {
	case *syntax.Ident:
		bind(e)
	case *syntax.ParenExpr:
		target(e.X, bind)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			target(x, bind)
		}
	case *syntax.ListExpr:
		for _, x := range e.List {
			target(x, bind)
		}
	}
}

func (s *source) mean(name string) {
	s.bound[name] = true
	s.times[name]++
}

// builtin returns "k8s.watch" when e names that builtin, "" for anything else.
func (s *source) builtin(e syntax.Expr) string {
	name := script.NameOf(e)
	if first, _, _ := strings.Cut(name, "."); s.bound[first] {
		return ""
	}
	return name
}

// sources looks at each file by itself.
func (c *checker) sources() {
	for _, s := range c.files {
		before := len(c.findings)
		found := c.cache.alone.of(aloneKey{s, c.moduleOf(s.path)}, func() ([]Finding, bool) {
			c.unusedLoads(s)
			c.reveals(s)
			c.comparisons(s)
			c.calls(s)
			c.formats(s)
			c.increments(s)
			return slices.Clone(c.findings[before:]), true
		})
		c.findings = append(c.findings[:before], found...)
	}
}

func (c *checker) at(s Severity, check string, pos syntax.Position, message, hint string) {
	c.add(Finding{Severity: s, Check: check, File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Message: message, Hint: hint})
}

// unusedLoads names what a file loads and does not use. Nobody else can: loaded names
// are not exported.
func (c *checker) unusedLoads(s *source) {
	loaded := map[string]*syntax.Ident{}
	of := map[string]string{}
	var order []string
	for _, stmt := range s.file.Stmts {
		load, ok := stmt.(*syntax.LoadStmt)
		if !ok {
			continue
		}
		for _, to := range load.To {
			loaded[to.Name], of[to.Name] = to, load.ModuleName()
			order = append(order, to.Name)
		}
	}
	if len(order) == 0 {
		return
	}
	used := map[string]bool{}
	for _, stmt := range s.file.Stmts {
		if _, ok := stmt.(*syntax.LoadStmt); ok {
			continue
		}
		syntax.Walk(stmt, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				used[id.Name] = true
			}
			return true
		})
	}
	for _, name := range order {
		if !used[name] {
			c.at(Warning, "loads", loaded[name].NamePos, name+" of "+of[name]+" is loaded and not used", "")
		}
	}
}

// reveals lists where secrets become plain texts.
func (c *checker) reveals(s *source) {
	if strings.HasSuffix(s.path, "_test.star") {
		return
	}
	syntax.Walk(s.file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && s.builtin(call.Fn) == "reveal" {
			pos, _ := call.Span()
			c.at(Note, "secrets", pos, "reveal() gives the plain text of a secret: from here on nothing hides it", "")
		}
		return true
	})
}
