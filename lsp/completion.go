package lsp

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/stdlib"
)

// completions are what may stand at a place.
type completions struct {
	at    text.Range
	items []completionItem
	seen  map[string]bool
}

// add offers a text. Those of a lower rank come first.
func (c *completions) add(rank, kind int, label, detail, doc string) {
	if c.seen[label] || label == "" {
		return
	}
	c.seen[label] = true
	item := completionItem{Label: label, Kind: kind, Detail: detail, SortText: fmt.Sprintf("%d%s", rank, label), TextEdit: &text.Edit{Range: c.at, NewText: label}}
	if doc != "" {
		item.Documentation = &markup{"markdown", doc}
	}
	c.items = append(c.items, item)
}

// completion offers what may stand at a place.
func (s *Server) completion(p positionParams) (*completionList, error) {
	d, offset, err := s.at(p)
	if err != nil {
		return nil, err
	}
	out := &completions{seen: map[string]bool{}}
	if !d.starlark() {
		s.completeYAML(d, offset, out)
		return &completionList{Items: append([]completionItem{}, out.items...)}, nil
	}
	c := read(d.text.String(), offset)
	out.at = rangeOfWord(d, c)
	switch start, _ := c.word(); {
	case c.comment:
	case c.quote >= 0:
		s.completeText(d, c, out)
	case start > 0 && c.src[start-1] == '.':
		s.completeMember(d, c, chainBefore(c.src, start-1), out)
	default:
		s.completeName(d, c, out)
	}
	return &completionList{Items: append([]completionItem{}, out.items...)}, nil
}

// completeText offers what may stand in quotes.
func (s *Server) completeText(d *document, c cursor, out *completions) {
	in, ok := c.inside()
	if !ok {
		return
	}
	_, word := c.word()
	switch {
	case in.char == '(' && in.callee == "load" && in.commas == 0:
		s.completeLabel(d, out)
	case in.char == '(' && in.callee == "load":
		if src, ok := s.load(d, labelOf(c)); ok {
			s.completeLoaded(src, out)
		}
	case in.char == '(' && takesPath(in.callee) && in.commas == 0:
		if v, ok := s.valuesOf(d); ok {
			// Of a path only its last part is written.
			last := strings.LastIndexByte(word, '.') + 1
			out.at = d.text.RangeOf(c.quote+last, c.offset)
			v.complete(strings.Split(word[:last], ".")[:strings.Count(word[:last], ".")], out)
		}
	case in.char == '[' && s.isSnapshots(d, c.offset, in.callee):
		for _, w := range s.snapshotsAt(d, c.offset) {
			out.add(0, kindProperty, w.name, w.of, "")
		}
	}
}

// labelOf is the first argument of the load that a place is in.
func labelOf(c cursor) string {
	start := strings.LastIndex(c.src[:c.offset], "load(")
	if start < 0 {
		return ""
	}
	rest := strings.TrimLeft(c.src[start+len("load("):c.offset], " \t\r\n")
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	label, _, _ := strings.Cut(rest[1:], rest[:1])
	return label
}

// completeLabel offers files that a document can load.
func (s *Server) completeLabel(d *document, out *completions) {
	names, err := fs.Glob(stdlib.FS, "*.star")
	if err != nil {
		return // the pattern is right
	}
	for _, name := range names {
		out.add(0, kindFile, stdPrefix+name, "the standard library", "")
	}
	if d.folder == nil {
		return
	}
	own, _, _ := strings.Cut(d.inTree, "/")
	for _, file := range s.starFiles(d.folder) {
		if file == d.inTree || strings.HasSuffix(file, "_test.star") || !slices.Contains(strings.Split(file, "/"), "lib") {
			continue
		}
		rank := 2
		if strings.HasPrefix(file, own+"/") || strings.HasPrefix(file, "lib/") {
			rank = 1
		}
		out.add(rank, kindFile, "//"+file, "", "")
	}
}

// completeLoaded offers what a file has for those that load it.
func (s *Server) completeLoaded(src source, out *completions) {
	for _, stmt := range src.file.Stmts {
		switch stmt := stmt.(type) {
		case *syntax.DefStmt:
			if !strings.HasPrefix(stmt.Name.Name, "_") {
				name, params := signatureOf(src.parsedText, stmt)
				out.add(0, kindFunction, name, "("+strings.Join(params, ", ")+")", docs.Dedent(docOf(stmt)))
			}
		case *syntax.AssignStmt:
			if id, ok := stmt.LHS.(*syntax.Ident); ok && !strings.HasPrefix(id.Name, "_") {
				out.add(0, kindVariable, id.Name, "", "")
			}
		}
	}
}

// completeMember offers what comes behind a dot.
func (s *Server) completeMember(d *document, c cursor, space string, out *completions) {
	name := s.renamed(d, c.offset, space)
	if name == "ctx" || strings.HasPrefix(name, "ctx.") {
		for _, f := range s.ctxMembers(d, c.offset, name) {
			out.add(0, kindField, strings.TrimPrefix(f.Path, name+"."), f.Type, docOfCtx(f))
		}
	}
	if first, _, _ := strings.Cut(name, "."); first != "ctx" && first != "t" && d.parsed != nil && d.parsed.gives(first) {
		return // the file gives it another meaning
	}
	for _, member := range s.builtin.members[name] {
		if name != "" {
			s.addBuiltin(0, name+"."+member, member, out)
		}
	}
}

// addBuiltin offers a builtin.
func (s *Server) addBuiltin(rank int, name, label string, out *completions) {
	detail := ""
	if spec, ok := s.builtin.specs[name]; ok && !spec.Constant() {
		detail = strings.TrimPrefix(spec.Signature(), spec.Name)
	}
	out.add(rank, s.builtin.kindOf(name), label, detail, s.builtin.doc(name))
}

// completeName offers names: arguments of the call that is open, those that are bound around the place, builtins.
func (s *Server) completeName(d *document, c cursor, out *completions) {
	if in, ok := c.inside(); ok && in.char == '(' && in.callee != "" && c.keyword(in) == "" {
		for _, p := range s.builtin.specs[in.callee].Params {
			if !strings.HasPrefix(p.Name, "*") && !given(c, in, p.Name) {
				out.add(0, kindProperty, p.Name+" = ", string(p.Type), docOfParam(p))
			}
		}
	}
	if d.parsed != nil {
		for _, def := range enclosing(d.text, c.offset) {
			d.parsed.locals(def.name, func(name string) { out.add(1, kindVariable, name, "", "") })
		}
		for _, l := range d.parsed.loads() {
			doc := ""
			if src, ok := s.load(d, l.stmt.ModuleName()); ok {
				if id := src.global(l.from.Name); id != nil {
					doc = docOfTarget(target{src, id})
				}
			}
			out.add(2, kindFunction, l.to.Name, l.stmt.ModuleName(), doc)
		}
		s.completeLoaded(source{parsedText: d.parsed}, out)
		for _, stmt := range d.parsed.file.Stmts { // private ones, too
			if def, ok := stmt.(*syntax.DefStmt); ok {
				out.add(2, kindFunction, def.Name.Name, "", docOf(def))
			}
		}
	}
	for _, name := range s.builtin.alone() {
		s.addBuiltin(3, name, name, out)
	}
	for _, word := range keywords {
		out.add(4, kindKeyword, word, "", "")
	}
}

// given says whether a call has an argument of a name already.
func given(c cursor, in bracket, name string) bool {
	start := strings.LastIndex(c.src[:in.argument], in.callee+"(")
	if start < 0 {
		return false
	}
	flat := strings.Join(strings.Fields(c.src[start:in.argument]), "")
	return strings.Contains(flat, ","+name+"=") || strings.Contains(flat, "("+name+"=")
}

// locals calls add with each name that the functions of a name bind.
func (p *parsedText) locals(function string, add func(string)) {
	syntax.Walk(p.file, func(n syntax.Node) bool {
		def, ok := n.(*syntax.DefStmt)
		if !ok || def.Name.Name != function {
			return true
		}
		syntax.Walk(def, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				if b, ok := id.Binding.(*resolve.Binding); ok && (b.Scope == resolve.Local || b.Scope == resolve.Cell) {
					add(id.Name)
				}
			}
			return true
		})
		return true
	})
}
