package lsp

import (
	"slices"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/lsp/text"
)

// target is the place at which a name gets its meaning.
type target struct {
	source
	id *syntax.Ident
}

// definition leads to where a name is bound, through load.
func (s *Server) definition(p positionParams) (*location, error) {
	d, offset, err := s.at(p)
	if err != nil {
		return nil, err
	}
	src, err := sourceOf(d)
	if err != nil {
		return nil, nil // there is none to be found
	}
	if label := labelAt(src, offset); label != "" {
		if of, ok := s.load(d, label); ok && s.opens(of) {
			return &location{of.uri, of.text.RangeOf(0, 0)}, nil
		}
		return nil, nil
	}
	at, ok := s.meaning(d, src, offset)
	if !ok || !s.opens(at.source) {
		return nil, nil
	}
	return &location{at.uri, at.rangeOf(at.id)}, nil
}

// labelAt is the label of a load when the offset is in it.
func labelAt(src source, offset int) string {
	for _, l := range src.loads() {
		start, end := l.stmt.Module.Span()
		if from, to := src.text.OfStarlark(int(start.Line), int(start.Col)), src.text.OfStarlark(int(end.Line), int(end.Col)); from <= offset && offset <= to {
			return l.stmt.ModuleName()
		}
	}
	return ""
}

// meaning finds where the name at an offset is bound.
func (s *Server) meaning(d *document, src source, offset int) (target, bool) {
	id := src.identAt(offset)
	if id == nil {
		return target{}, false
	}
	first := boundAt(id)
	for _, l := range src.loads() { // the name in quotes has no binding of itself
		if l.from == id {
			first = l.to
		}
	}
	if first == nil {
		return target{}, false
	}
	if l, ok := src.loadOf(first); ok {
		of, ok := s.load(d, l.stmt.ModuleName())
		if !ok {
			return target{src, first}, true
		}
		if there := of.global(l.from.Name); there != nil {
			return target{of, there}, true
		}
	}
	return target{src, first}, true
}

// references are all places of a name in the tree.
func (s *Server) references(p referencesParams) ([]location, error) {
	d, offset, err := s.at(p.positionParams)
	if err != nil {
		return nil, err
	}
	src, err := sourceOf(d)
	if err != nil {
		return nil, nil
	}
	at, ok := s.meaning(d, src, offset)
	if !ok {
		return nil, nil
	}
	var out []location
	for _, u := range s.uses(d, at) {
		if !s.opens(u.source) {
			continue
		}
		for _, id := range u.ids {
			if p.Context.IncludeDeclaration || u.uri != at.uri || id != at.id {
				out = append(out, location{u.uri, u.rangeOf(id)})
			}
		}
	}
	return out, nil
}

// use is a file with the places of a name in it.
type use struct {
	source
	ids []*syntax.Ident
	// loads are those that bring the name into the file.
	loads []loaded
}

// standsFor says whether an identifier of the file is the name, by whatever the file calls it.
func (u use) standsFor(id *syntax.Ident) bool {
	if slices.Contains(u.ids, id) {
		return true
	}
	return slices.ContainsFunc(u.loads, func(l loaded) bool { return boundAt(id) == l.to })
}

// uses are the places of a name, by file: that in which it is bound comes first.
func (s *Server) uses(d *document, at target) []use {
	out := []use{{source: at.source, ids: at.occurrences(at.id)}}
	if d.folder == nil || !isGlobal(at.id) {
		return out
	}
	for _, file := range s.starFiles(d.folder) {
		src, ok := s.inFolder(d.folder, file)
		if !ok || src.inTree == at.inTree {
			continue
		}
		u := use{source: src}
		for _, l := range src.loads() {
			label := l.stmt.ModuleName()
			if l.from.Name != at.id.Name || label != at.inTree && resolved(file, label) != at.inTree {
				continue
			}
			u.loads = append(u.loads, l)
			if l.from != l.to {
				u.ids = append(u.ids, l.from)
			}
			if l.to.Name == l.from.Name {
				u.ids = append(u.ids, src.occurrences(l.to)...)
			}
		}
		if len(u.ids) > 0 {
			out = append(out, u)
		}
	}
	return out
}

// highlights are the places of a name in one document.
func (s *Server) highlights(p positionParams) ([]highlight, error) {
	d, offset, err := s.at(p)
	if err != nil {
		return nil, err
	}
	src, err := current(d)
	if err != nil {
		return nil, nil
	}
	id := src.identAt(offset)
	if id == nil || boundAt(id) == nil {
		return nil, nil
	}
	var out []highlight
	for _, other := range src.occurrences(boundAt(id)) {
		out = append(out, highlight{src.rangeOf(other)})
	}
	return out, nil
}

// symbols are the names that a file binds at its top, and loads do not.
func (s *Server) symbols(p documentParams) ([]documentSymbol, error) {
	d, err := s.known(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	src, err := current(d)
	if err != nil {
		return nil, nil
	}
	var out []documentSymbol
	for _, stmt := range src.file.Stmts {
		start, end := stmt.Span()
		whole := src.text.RangeOf(src.text.OfStarlark(int(start.Line), int(start.Col)), src.text.OfStarlark(int(end.Line), int(end.Col)))
		switch stmt := stmt.(type) {
		case *syntax.DefStmt:
			out = append(out, documentSymbol{stmt.Name.Name, symbolFunction, whole, within(src.rangeOf(stmt.Name), whole)})
		case *syntax.AssignStmt:
			if id, ok := stmt.LHS.(*syntax.Ident); ok {
				out = append(out, documentSymbol{id.Name, symbolVariable, whole, within(src.rangeOf(id), whole)})
			}
		}
	}
	return out, nil
}

// within keeps a range from ending behind the one that holds it, which the protocol forbids: the parser may know the
// latter's end badly.
func within(r, whole text.Range) text.Range {
	if w := whole.End; r.End.Line > w.Line || r.End.Line == w.Line && r.End.Character > w.Character {
		return whole
	}
	return r
}
