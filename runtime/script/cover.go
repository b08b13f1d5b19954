package script

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Cover counts which statements of .star files have run. It serves all hosts that it is
// given to, and is safe for concurrent use.
type Cover struct {
	mu    sync.Mutex
	files map[string]*coveredFile
	order []*coveredFile
}

// coveredFile is one file; its statements are counted in the order of the text.
type coveredFile struct {
	path       string
	source     []byte
	id         int
	statements []Statement
	ran        []atomic.Bool
}

// NewCover counts nothing yet.
func NewCover() *Cover { return &Cover{files: map[string]*coveredFile{}} }

// Covered is what has run of one file.
type Covered struct {
	// Path as in [Error].File.
	Path string
	// Source is the file.
	Source []byte
	// Statements are all, in the order of the text.
	Statements []Statement
}

// Statement is one statement: of def, for and if the line that begins it, without what
// stands inside. Lines and columns count from 1, columns in characters; the end is
// the first place behind it.
type Statement struct {
	Line, Col, EndLine, EndCol int
	Ran                        bool
}

// Ran is how many statements have run.
func (c *Covered) Ran() int {
	n := 0
	for _, s := range c.Statements {
		if s.Ran {
			n++
		}
	}
	return n
}

// Missed are the lines of the statements that have not run, growing, each once.
func (c *Covered) Missed() []int {
	var out []int
	for _, s := range c.Statements {
		if !s.Ran {
			out = append(out, s.Line)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Files tells of all files that were loaded, by path: those of the standard library
// as "@std//k8s.star".
func (c *Cover) Files() []Covered {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Covered
	for _, f := range c.order {
		one := Covered{Path: f.path, Source: f.source, Statements: slices.Clone(f.statements)}
		for i := range f.ran {
			one.Statements[i].Ran = f.ran[i].Load()
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Covered) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// coverName is the function that counts; no file can name it.
const coverName = "#"

// instrument has each statement of a file counted before it runs.
func (c *Cover) instrument(path string, source []byte, file *syntax.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.files[path]
	if f == nil {
		f = &coveredFile{path: path, id: len(c.order)}
		c.files[path] = f
		c.order = append(c.order, f)
	}
	known := f.ran != nil && bytes.Equal(f.source, source) // compiled twice: the counts stay
	f.source, f.statements = source, nil
	file.Stmts = f.count(file.Stmts)
	if !known {
		f.ran = make([]atomic.Bool, len(f.statements))
	}
}

func (f *coveredFile) count(stmts []syntax.Stmt) []syntax.Stmt {
	out := make([]syntax.Stmt, 0, 2*len(stmts))
	for i, s := range stmts {
		expr, isExpr := s.(*syntax.ExprStmt)
		_, isLoad := s.(*syntax.LoadStmt)
		if !isLoad && !(i == 0 && isExpr && isText(expr.X)) { // a doc string stays the first
			out = append(out, f.counter(s))
		}
		switch s := s.(type) {
		case *syntax.DefStmt:
			s.Body = f.count(s.Body)
		case *syntax.ForStmt:
			s.Body = f.count(s.Body)
		case *syntax.IfStmt:
			s.True = f.count(s.True)
			if _, elif := first(s.False).(*syntax.IfStmt); elif && len(s.False) == 1 {
				// An elif has its own line, and no statement before it.
				inner := s.False[0].(*syntax.IfStmt)
				inner.True, inner.False = f.count(inner.True), f.count(inner.False)
			} else {
				s.False = f.count(s.False)
			}
		}
		out = append(out, s)
	}
	return out
}

func first(stmts []syntax.Stmt) syntax.Stmt {
	if len(stmts) == 0 {
		return nil
	}
	return stmts[0]
}

// counter is a call that notes that the next statement runs.
func (f *coveredFile) counter(s syntax.Stmt) syntax.Stmt {
	start, _ := s.Span()
	number := func(n int) syntax.Expr {
		return &syntax.Literal{Token: syntax.INT, TokenPos: start, Value: int64(n)}
	}
	end := endOf(s)
	f.statements = append(f.statements, Statement{Line: int(start.Line), Col: int(start.Col), EndLine: int(end.Line), EndCol: int(end.Col)})
	return &syntax.ExprStmt{X: guardCall(coverName, start, number(f.id), number(len(f.statements)-1))}
}

// endOf is where a statement ends, or the part of it before its body: with what it
// repeats or decides by, or with the last parameter.
func endOf(s syntax.Stmt) syntax.Position {
	var last syntax.Node
	switch s := s.(type) {
	case *syntax.DefStmt:
		last = s.Name
		if n := len(s.Params); n > 0 {
			last = s.Params[n-1]
		}
	case *syntax.ForStmt:
		last = s.X
	case *syntax.IfStmt:
		last = s.Cond
	default:
		last = s
	}
	_, end := last.Span()
	return end
}

// builtin counts one statement.
func (c *Cover) builtin() *starlark.Builtin {
	return starlark.NewBuiltin(coverName, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		file, _ := starlark.AsInt32(args[0])
		n, _ := starlark.AsInt32(args[1])
		c.mu.Lock()
		ran := c.order[file].ran
		c.mu.Unlock()
		ran[n].Store(true)
		return starlark.None, nil
	})
}
