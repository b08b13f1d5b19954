package script

import (
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
	path string
	id   int
	line []int32
	ran  []atomic.Bool
}

// NewCover counts nothing yet.
func NewCover() *Cover { return &Cover{files: map[string]*coveredFile{}} }

// Covered is what has run of one file.
type Covered struct {
	// Path as in [Error].File.
	Path string
	// Statements are all, Ran those that have run.
	Statements, Ran int
	// Missed are the lines of the others, growing, each once.
	Missed []int
}

// Files tells of all files that were loaded, by path.
func (c *Cover) Files() []Covered {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Covered
	for _, f := range c.order {
		one := Covered{Path: f.path, Statements: len(f.line)}
		for i := range f.ran {
			if f.ran[i].Load() {
				one.Ran++
			} else if line := int(f.line[i]); !slices.Contains(one.Missed, line) {
				one.Missed = append(one.Missed, line)
			}
		}
		slices.Sort(one.Missed)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Covered) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// coverName is the function that counts; no file can name it.
const coverName = "#"

// instrument has each statement of a file counted before it runs.
func (c *Cover) instrument(path string, file *syntax.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.files[path]
	if f == nil {
		f = &coveredFile{path: path, id: len(c.order)}
		c.files[path] = f
		c.order = append(c.order, f)
	}
	f.line = nil
	file.Stmts = f.count(file.Stmts)
	f.ran = make([]atomic.Bool, len(f.line))
}

func (f *coveredFile) count(stmts []syntax.Stmt) []syntax.Stmt {
	out := make([]syntax.Stmt, 0, 2*len(stmts))
	for i, s := range stmts {
		start, _ := s.Span()
		expr, isExpr := s.(*syntax.ExprStmt)
		_, isLoad := s.(*syntax.LoadStmt)
		if !isLoad && !(i == 0 && isExpr && isLiteral(expr.X)) { // a doc string stays the first
			out = append(out, f.counter(start))
		}
		switch s := s.(type) {
		case *syntax.DefStmt:
			s.Body = f.count(s.Body)
		case *syntax.ForStmt:
			s.Body = f.count(s.Body)
		case *syntax.IfStmt:
			s.True = f.count(s.True)
			if _, elif := first(s.False).(*syntax.IfStmt); elif && len(s.False) == 1 {
				// An elif has a line of its own, and no statement before it.
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
func (f *coveredFile) counter(pos syntax.Position) syntax.Stmt {
	number := func(n int) syntax.Expr {
		return &syntax.Literal{Token: syntax.INT, TokenPos: pos, Value: int64(n)}
	}
	f.line = append(f.line, pos.Line)
	return &syntax.ExprStmt{X: guardCall(coverName, pos, number(f.id), number(len(f.line)-1))}
}

// builtin counts one statement.
func (c *Cover) builtin() *starlark.Builtin {
	return starlark.NewBuiltin(coverName, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		file, _ := starlark.AsInt32(args[0])
		n, _ := starlark.AsInt32(args[1])
		c.mu.Lock()
		f := c.order[file]
		c.mu.Unlock()
		f.ran[n].Store(true)
		return starlark.None, nil
	})
}
