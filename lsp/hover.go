package lsp

import (
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/lsp/text"
)

// hover explains what is at a place.
func (s *Server) hover(p positionParams) (*hover, error) {
	d, offset, err := s.at(p)
	if err != nil {
		return nil, err
	}
	if !d.starlark() {
		return s.hoverYAML(d, offset), nil
	}
	start, end := wordAround(d.text.String(), offset)
	show := func(doc string) (*hover, error) {
		if doc == "" {
			return nil, nil
		}
		r := d.text.RangeOf(start, end)
		return &hover{markup{"markdown", doc}, &r}, nil
	}
	c := read(d.text.String(), end)
	if c.comment {
		return nil, nil
	}
	if c.quote >= 0 {
		at := read(d.text.String(), offset)
		if at.quote < 0 {
			return nil, nil
		}
		start, end = at.quote, stringEnd(d.text.String(), at.quote)
		return show(s.docOfText(d, read(d.text.String(), end)))
	}
	if src, err := sourceOf(d); err == nil {
		if at, ok := s.meaning(d, src, start); ok {
			return show(docOfTarget(at))
		}
	}
	return show(s.docOfName(d, c, start, end))
}

// stringEnd is where the text in quotes ends whose content begins at a place, its quotes left out.
func stringEnd(src string, begin int) int {
	for i := begin; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case src[begin-1], '\n':
			return i
		}
	}
	return len(src)
}

// wordAround is the word that a place is in, or at the end of.
func wordAround(src string, offset int) (start, end int) {
	start, end = offset, offset
	for start > 0 && isWordByte(src[start-1]) {
		start--
	}
	for end < len(src) && isWordByte(src[end]) {
		end++
	}
	return start, end
}

// docOfName explains a builtin, a member of one, a field of ctx, or the name of an argument.
func (s *Server) docOfName(d *document, c cursor, start, end int) string {
	src := d.text.String()
	name := chainBefore(src, end)
	if rest := strings.TrimLeft(src[end:], " "); !strings.Contains(name, ".") && strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") {
		if call, ok := c.inside(); ok && call.char == '(' {
			if p, ok := s.builtin.param(call.callee, name); ok {
				return docOfParam(p)
			}
		}
	}
	if field, ok := s.ctxField(d, start, name); ok {
		return field
	}
	name = s.renamed(d, start, name)
	doc := s.builtin.doc(name)
	if example := s.builtin.specs[name].Example; example != "" {
		doc += "\n\n```python\n" + example + "```"
	}
	return doc
}

// renamed is a name as the table of builtins has it: the parameter of a test is t there, and that of a hook ctx.
func (s *Server) renamed(d *document, offset int, name string) string {
	first, _, _ := strings.Cut(name, ".")
	if is, ok := s.ofParam(d, offset, name); ok {
		return is
	}
	if m := overList(first).FindStringSubmatch(d.text.String()); m != nil {
		if list, _ := s.ofParam(d, offset, m[1]); list == "ctx.events" || list == "ctx.children" {
			return list + "[]" + strings.TrimPrefix(name, first)
		}
	}
	return name
}

// ofParam does what renamed does, for names that begin with the first parameter of a function around a place; ok is false for others.
func (s *Server) ofParam(d *document, offset int, name string) (is string, ok bool) {
	first, _, _ := strings.Cut(name, ".")
	for _, def := range enclosing(d.text, offset) {
		if def.param != first || first == "" {
			continue
		}
		is := first
		switch {
		case strings.HasSuffix(d.path, "_test.star") && strings.HasPrefix(def.name, "test_"):
			is = "t"
		case len(s.callbacksOf(d, def.name)) > 0 || len(s.hooksWith(d, def.name)) > 0:
			is = "ctx"
		}
		return is + strings.TrimPrefix(name, first), true
	}
	return "", false
}

// overList finds the loop that gives a name each element of a list of ctx.
func overList(name string) *regexp.Regexp {
	return regexp.MustCompile(`\bfor\s+` + regexp.QuoteMeta(name) + `\s+in\s+(\w+\.(?:events|children))\b`)
}

// docOfTarget explains a name that a file gives.
func docOfTarget(at target) string {
	if def := at.function(at.id.Name); def != nil && isGlobal(at.id) {
		name, params := signatureOf(at.parsedText, def)
		doc := fmt.Sprintf("```python\ndef %s(%s)\n```\n%s", name, strings.Join(params, ", "), docs.Dedent(docOf(def)))
		return strings.TrimSpace(doc) + from(at)
	}
	line := strings.TrimSpace(at.text.Line(int(at.id.NamePos.Line) - 1))
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	return fmt.Sprintf("```python\n%s\n```", line) + from(at)
}

func from(at target) string {
	if at.inTree == "" {
		return ""
	}
	return fmt.Sprintf("\n\n*%s:%d*", at.inTree, at.id.NamePos.Line)
}

// docOfText explains a text in quotes: a path of the values, a snapshot, a file that is loaded.
func (s *Server) docOfText(d *document, c cursor) string {
	_, word := c.word()
	in, ok := c.inside()
	switch {
	case !ok:
		return ""
	case in.char == '(' && in.callee == "load" && in.commas == 0:
		if src, ok := s.load(d, word); ok {
			return strings.TrimSpace(docs.Dedent(docOfFile(src.parsedText)) + "\n\n*" + src.inTree + "*")
		}
	case in.char == '(' && in.callee == "load":
		if src, ok := s.load(d, labelOf(c)); ok {
			if id := src.global(word); id != nil {
				return docOfTarget(target{src, id})
			}
		}
	case in.char == '(' && takesPath(in.callee) && in.commas == 0:
		if v, ok := s.valuesOf(d); ok {
			return v.doc(strings.Split(word, "."))
		}
	case in.char == '[' && s.isSnapshots(d, c.offset, in.callee):
		return s.docOfSnapshot(d, c.offset, word)
	}
	return ""
}

// docOfFile is the text that a file begins with.
func docOfFile(p *parsedText) string { return docOf(&syntax.DefStmt{Body: p.file.Stmts}) }

// rangeOfWord is where the word is that is being written.
func rangeOfWord(d *document, c cursor) text.Range {
	start, _ := c.word()
	return d.text.RangeOf(start, c.offset)
}
