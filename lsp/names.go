package lsp

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/lsp/text"
)

// keywords are the words of the language.
var keywords = []string{"and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or", "pass", "return"}

// reserved are words of Python that are no names in Starlark either.
var reserved = []string{
	"as", "assert", "async", "await", "class", "del", "except", "finally", "from", "global", "import", "is", "nonlocal", "raise", "try",
	"while", "with", "yield",
}

// Names of one file: where each is bound and used. The resolver of Starlark has tied them together: all that are the
// same have the identifier at which it is bound first in common.

// occurrences are the places of the name that is bound at an identifier, in their order, the binding among them.
func (p *parsedText) occurrences(first *syntax.Ident) (out []*syntax.Ident) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && (id == first || boundAt(id) == first) {
			out = append(out, id)
		}
		return true
	})
	return out
}

// boundAt is the identifier at which a name is bound first; nil for builtins, and for what is no name by itself, such
// as a field.
func boundAt(id *syntax.Ident) *syntax.Ident {
	b, ok := id.Binding.(*resolve.Binding)
	if !ok || b == nil {
		return nil
	}
	return b.First
}

// identAt is the identifier at an offset, its end included; nil for none. Of a load the name in this file counts.
func (p *parsedText) identAt(offset int) (found *syntax.Ident) {
	line, col := p.text.Starlark(offset)
	syntax.Walk(p.file, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && int(id.NamePos.Line) == line {
			if start := int(id.NamePos.Col); start <= col && col <= start+utf8.RuneCountInString(id.Name) {
				found = id // the last one: To comes after From
			}
		}
		return true
	})
	return found
}

// span is where an identifier is, in bytes.
func (p *parsedText) span(id *syntax.Ident) (start, end int) {
	start = p.text.OfStarlark(int(id.NamePos.Line), int(id.NamePos.Col))
	return start, start + len(id.Name)
}

func (p *parsedText) rangeOf(id *syntax.Ident) text.Range {
	start, end := p.span(id)
	return p.text.RangeOf(start, end)
}

// loaded is a name that a file gets from another one.
type loaded struct {
	stmt     *syntax.LoadStmt
	from, to *syntax.Ident
}

// loads are all names that the file gets from others.
func (p *parsedText) loads() (out []loaded) {
	for _, stmt := range p.file.Stmts {
		if load, ok := stmt.(*syntax.LoadStmt); ok {
			for i := range load.To {
				out = append(out, loaded{load, load.From[i], load.To[i]})
			}
		}
	}
	return out
}

// loadOf is the load that binds a name; ok is false for any other name.
func (p *parsedText) loadOf(first *syntax.Ident) (loaded, bool) {
	for _, l := range p.loads() {
		if l.to == first {
			return l, true
		}
	}
	return loaded{}, false
}

// global is the identifier at which the file binds a name for itself and for those that load it; nil for none.
func (p *parsedText) global(name string) (found *syntax.Ident) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && found == nil && id.Name == name {
			if b, ok := id.Binding.(*resolve.Binding); ok && b.Scope == resolve.Global {
				found = b.First
			}
		}
		return found == nil
	})
	return found
}

// isGlobal says whether others can load a name.
func isGlobal(id *syntax.Ident) bool {
	b, ok := id.Binding.(*resolve.Binding)
	return ok && b.Scope == resolve.Global
}

// binds says whether a name has a meaning anywhere in the file, so that another one of that name would be in its way.
func (p *parsedText) binds(name string) bool {
	return p.names(name, func(id *syntax.Ident) bool { return id.Binding != nil })
}

// gives says whether the file gives a name its own meaning.
func (p *parsedText) gives(name string) bool {
	return p.names(name, func(id *syntax.Ident) bool { return boundAt(id) != nil })
}

func (p *parsedText) names(name string, is func(*syntax.Ident) bool) (found bool) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		id, ok := n.(*syntax.Ident)
		found = found || ok && id.Name == name && is(id)
		return !found
	})
	return found
}

func (p *parsedText) calls() (out []*syntax.CallExpr) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			out = append(out, call)
		}
		return true
	})
	return out
}

// functionOfParam is the function that has a parameter; nil for a name that is none.
func (p *parsedText) functionOfParam(id *syntax.Ident) (found *syntax.DefStmt) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		if def, ok := n.(*syntax.DefStmt); ok {
			for _, param := range def.Params {
				if b, ok := param.(*syntax.BinaryExpr); ok {
					param = b.X // behind it is its default
				}
				if param == syntax.Expr(id) {
					found = def
				}
			}
		}
		return found == nil
	})
	return found
}

// function is the top-level function of a name; nil for none.
func (p *parsedText) function(name string) *syntax.DefStmt {
	for _, stmt := range p.file.Stmts {
		if def, ok := stmt.(*syntax.DefStmt); ok && def.Name.Name == name {
			return def
		}
	}
	return nil
}

// headline is the first line of a function.
type headline struct{ name, param string }

var isHeader = regexp.MustCompile(`^\s*def\s+(\w+)\s*\(\s*(\w*)`)

// enclosing are the functions around a place, the innermost first. They are read line by line: while somebody writes,
// the text does not parse.
func enclosing(t *text.Text, offset int) (out []headline) {
	row, _ := t.Starlark(offset)
	line := t.Line(row - 1)
	indent := indentOf(line)
	if strings.TrimSpace(line) == "" { // as far in as the place is
		indent = offset - t.OfStarlark(row, 1)
	}
	for n := row - 1; n >= 0 && (indent > 0 || n == row-1); n-- {
		line := t.Line(n)
		if strings.TrimSpace(line) == "" || n < row-1 && indentOf(line) >= indent {
			continue
		}
		if m := isHeader.FindStringSubmatch(line); m != nil {
			out = append(out, headline{m[1], m[2]})
		}
		indent = indentOf(line)
	}
	return out
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// docOf is the text that a function begins with; "" without one.
func docOf(def *syntax.DefStmt) string {
	if len(def.Body) == 0 {
		return ""
	}
	if expr, ok := def.Body[0].(*syntax.ExprStmt); ok {
		if lit, ok := expr.X.(*syntax.Literal); ok {
			if doc, ok := lit.Value.(string); ok {
				return strings.TrimSpace(doc)
			}
		}
	}
	return ""
}

// signatureOf writes a function as its callers see it.
func signatureOf(p *parsedText, def *syntax.DefStmt) (name string, params []string) {
	for _, param := range def.Params {
		start, end := param.Span()
		from := p.text.OfStarlark(int(start.Line), int(start.Col))
		to := p.text.OfStarlark(int(end.Line), int(end.Col))
		params = append(params, strings.ReplaceAll(p.text.String()[from:max(from, to)], " = ", "="))
	}
	return def.Name.Name, params
}
