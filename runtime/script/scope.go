package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/message"
)

// Scope holds the names of a session, in which pieces of code run one after the other:
// each sees what those before it have defined, functions find a name as it is when they
// are called. It is not safe for concurrent use.
type Scope struct {
	host  *Host
	file  string
	dir   string
	names starlark.StringDict // what a piece may use: the guards, builtins, and own
	own   map[string]bool     // what the session has defined
	lines []string            // the text so far
	first int                 // how many lines came before those
}

// ScopeOptions configures a [Scope].
type ScopeOptions struct {
	// File is what positions call the text of the session; required.
	File string
	// Dir is the folder of the tree from which load("./x.star") starts; empty: its
	// root.
	Dir string
}

// maxScopeLines is of how many lines errors show the text.
const maxScopeLines = 10_000

// NewScope returns a scope that knows the builtins of the host.
func (h *Host) NewScope(o ScopeOptions) *Scope {
	s := &Scope{file: o.File, dir: o.Dir, names: starlark.StringDict{}, own: map[string]bool{}}
	s.Use(h)
	return s
}

// Use has what follows run by another host. Names that the session has defined stay.
func (s *Scope) Use(h *Host) {
	s.host = h
	for name, v := range h.predeclared {
		if !s.own[name] {
			s.names[name] = v
		}
	}
}

// Names are the names that a piece may use, sorted, those of the language among them.
func (s *Scope) Names() []string {
	all := map[string]bool{}
	for name := range s.names {
		if !isGuard(name) {
			all[name] = true
		}
	}
	for name := range starlark.Universe {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Lookup returns what a name stands for, nil for none. Own says that the session has
// defined it.
func (s *Scope) Lookup(name string) (v starlark.Value, own bool) {
	if v := s.names[name]; v != nil && !isGuard(name) {
		return v, s.own[name]
	}
	return starlark.Universe[name], false
}

// Define gives a name to a value. A builtin that had it is hidden; own says that it is
// of the session.
func (s *Scope) Define(name string, v starlark.Value, own bool) {
	s.names[name] = v
	s.own[name] = s.own[name] || own
}

// Line is the number of the next line.
func (s *Scope) Line() int { return s.first + len(s.lines) + 1 }

// sessionDialect is the language of a session: more than that of files, which declare.
func sessionDialect() *syntax.FileOptions {
	o := dialect()
	o.TopLevelControl, o.GlobalReassign, o.LoadBindsGlobally = true, true, true
	return o
}

// Unfinished reports whether lines are the beginning of a piece: brackets or a string
// are open, or a block may go on. An empty line ends a block.
func Unfinished(lines []string) bool {
	rest, out := lines, false
	_, _ = parsed(func() (*syntax.File, error) {
		return sessionDialect().ParseCompoundStmt("", func() ([]byte, error) {
			if len(rest) == 0 {
				out = true
				return nil, io.EOF
			}
			line := rest[0]
			rest = rest[1:]
			return []byte(line + "\n"), nil
		})
	})
	return out
}

// Parses reports whether a text is whole, as the text of a file would be.
func Parses(text string) bool {
	_, err := parsed(func() (*syntax.File, error) { return sessionDialect().Parse("", text, 0) })
	return err == nil
}

// parsed calls a parser, whose panics are errors.
func parsed(parse func() (*syntax.File, error)) (f *syntax.File, err error) {
	defer recoverInto(&err)
	return parse()
}

// Piece is a piece of code, ready to run in its scope.
type Piece struct {
	prog    *starlark.Program
	results []string                       // names of the values of its expressions
	bound   []string                       // names that it may define
	loads   map[string]starlark.StringDict // what its load statements load
}

// Compile takes the next lines of the session in: it compiles them, and loads what
// they load. Errors are *Error.
func (s *Scope) Compile(ctx context.Context, text string) (*Piece, error) {
	first := s.Line()
	s.note(text)
	if len(text) > MaxFileSize {
		return nil, &Error{File: s.file, Line: first, Msg: fmt.Sprintf("this is more than %d KiB", MaxFileSize>>10)}
	}
	file, err := parsed(func() (*syntax.File, error) {
		return sessionDialect().Parse(s.file, syntax.FilePortion{Content: []byte(text + "\n"), FirstLine: int32(first), FirstCol: 1}, 0)
	})
	if err != nil {
		return nil, s.Explain(s.host.diagnoseIn(s.sourceLine, err, nil, Frame{File: s.file, Line: first}))
	}
	p := &Piece{loads: map[string]starlark.StringDict{}}
	for _, stmt := range file.Stmts {
		if l, ok := stmt.(*syntax.LoadStmt); ok {
			if err := s.load(ctx, p, l); err != nil {
				return nil, err
			}
		}
	}
	p.keepResults(file)
	p.bound = boundNames(file.Stmts)
	s.carryOver(p, file)
	guard(file)
	defer s.dropCarried(p)
	if p.prog, err = s.program(file); err != nil {
		return nil, s.Explain(s.host.diagnoseIn(s.sourceLine, err, nil, Frame{File: s.file, Line: first}))
	}
	return p, nil
}

func (s *Scope) program(file *syntax.File) (p *starlark.Program, err error) {
	defer recoverInto(&err)
	return starlark.FileProgram(file, s.names.Has)
}

// Run runs a piece on the thread of a [Host.Call], and returns the values of its
// expressions in order. A name that was defined before an error stays defined.
func (s *Scope) Run(t *starlark.Thread, p *Piece) ([]starlark.Value, error) {
	load := t.Load
	defer func() { t.Load = load }()
	t.Load = func(_ *starlark.Thread, label string) (starlark.StringDict, error) { return p.loads[label], nil }
	for _, name := range p.bound {
		if v, _ := s.Lookup(name); v != nil {
			s.names[carried(name)] = v
		}
	}
	defer s.dropCarried(p)
	globals, err := p.prog.Init(t, s.names)
	var values []starlark.Value
	for _, name := range p.results {
		if v := globals[name]; v != nil {
			values = append(values, v)
			delete(globals, name)
		}
	}
	for name, v := range globals {
		s.Define(name, v, true)
	}
	return values, err
}

// Explain completes an error with what the session knows: the line, and names that may
// have been meant.
func (s *Scope) Explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	for _, one := range append([]*Error{e}, e.More...) {
		if line := s.sourceLine(one.File, one.Line); line != "" {
			one.Source = line
		}
		if name, ok := undefinedName(one.Msg); ok && one.Hint == "" {
			if near := message.Nearest(name, s.Names()); len(near) > 1 {
				one.Hint = "did you mean " + near + "?"
			}
		}
	}
	return e
}

// sourceLine returns a line of the session, or of a file.
func (s *Scope) sourceLine(file string, line int) string {
	if file != s.file {
		return s.host.sourceLine(file, line)
	}
	if line <= s.first || line > s.first+len(s.lines) {
		return ""
	}
	return s.lines[line-s.first-1]
}

// note keeps the text for errors of later lines.
func (s *Scope) note(text string) {
	s.lines = append(s.lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	if more := len(s.lines) - maxScopeLines; more > 0 {
		s.lines = slices.Clone(s.lines[more:])
		s.first += more
	}
}

// load loads what a statement names, before the piece runs: loading has its own
// limits.
func (s *Scope) load(ctx context.Context, p *Piece, l *syntax.LoadStmt) error {
	label := l.ModuleName()
	at := Frame{File: s.file, Line: int(l.Load.Line), Col: int(l.Load.Col)}
	path, err := resolveLabel(label, strings.TrimPrefix(s.dir+"/session.star", "/"))
	if err != nil {
		return s.Explain(s.host.diagnose(err, nil, at))
	}
	r := newRun(ctx, s.host.governor, s.host.limits)
	defer r.end()
	if p.loads[label], err = s.host.load(r, label, path, nil); err != nil {
		return s.Explain(s.host.diagnose(err, r.cancelled(), at))
	}
	return nil
}

// keepResults gives names to the values of expressions.
func (p *Piece) keepResults(file *syntax.File) {
	for i, stmt := range file.Stmts {
		if e, ok := stmt.(*syntax.ExprStmt); ok {
			name := fmt.Sprintf("=%d", i)
			start, _ := e.Span()
			p.results = append(p.results, name)
			file.Stmts[i] = &syntax.AssignStmt{OpPos: start, Op: syntax.EQ, LHS: &syntax.Ident{NamePos: start, Name: name}, RHS: e.X}
		}
	}
}

// carried is the name by which a piece finds the value that one of its names has had
// until now. No code can write it.
func carried(name string) string { return "=" + name }

// carryOver has the names that a piece defines begin with the values that they have.
func (s *Scope) carryOver(p *Piece, file *syntax.File) {
	var before []syntax.Stmt
	for _, name := range p.bound {
		v, _ := s.Lookup(name)
		if v == nil {
			continue
		}
		s.names[carried(name)] = v
		pos := syntax.MakePosition(&s.file, int32(s.Line()-1), 1)
		before = append(before, &syntax.AssignStmt{
			OpPos: pos, Op: syntax.EQ, LHS: &syntax.Ident{NamePos: pos, Name: name}, RHS: &syntax.Ident{NamePos: pos, Name: carried(name)},
		})
	}
	file.Stmts = append(before, file.Stmts...)
}

func (s *Scope) dropCarried(p *Piece) {
	for _, name := range p.bound {
		delete(s.names, carried(name))
	}
}

// boundNames are the names that statements at the top level define, sorted.
func boundNames(stmts []syntax.Stmt) []string {
	names := map[string]bool{}
	var target func(syntax.Expr)
	target = func(e syntax.Expr) {
		switch e := e.(type) {
		case *syntax.Ident:
			if !strings.HasPrefix(e.Name, "=") {
				names[e.Name] = true
			}
		case *syntax.TupleExpr:
			for _, x := range e.List {
				target(x)
			}
		case *syntax.ListExpr:
			for _, x := range e.List {
				target(x)
			}
		case *syntax.ParenExpr:
			target(e.X)
		}
	}
	var all func([]syntax.Stmt)
	all = func(stmts []syntax.Stmt) {
		for _, stmt := range stmts {
			switch stmt := stmt.(type) {
			case *syntax.AssignStmt:
				target(stmt.LHS)
			case *syntax.DefStmt:
				target(stmt.Name)
			case *syntax.ForStmt:
				target(stmt.Vars)
				all(stmt.Body)
			case *syntax.IfStmt:
				all(stmt.True)
				all(stmt.False)
			case *syntax.LoadStmt:
				for _, to := range stmt.To {
					target(to)
				}
			}
		}
	}
	all(stmts)
	return slices.Sorted(maps.Keys(names))
}

// Skip takes in lines that are no code.
func (s *Scope) Skip(text string) { s.note(text) }
