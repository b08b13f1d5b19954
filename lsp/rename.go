package lsp

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/format"
	"github.com/starling-operator/starling/runtime/script"
)

// prepareRename says whether the name at a place can be changed, and where it is.
func (s *Server) prepareRename(p positionParams) (*prepareRenameResult, error) {
	d, offset, err := s.at(p)
	if err != nil {
		return nil, err
	}
	src, err := current(d)
	if err != nil {
		return nil, err
	}
	if _, err := s.renamable(d, src, offset); err != nil {
		return nil, err
	}
	id := src.identAt(offset)
	return &prepareRenameResult{src.rangeOf(id), id.Name}, nil
}

// renamable finds what a rename at an offset is about: where the name is bound, or the load that gives it a name of
// this file alone.
func (s *Server) renamable(d *document, src source, offset int) (target, error) {
	at, ok := s.meaning(d, src, offset)
	if !ok {
		return target{}, fmt.Errorf("no name that a file of the tree gives is here")
	}
	id := src.identAt(offset)
	if l, ok := src.loadOf(boundAt(id)); ok && (l.from.Name != l.to.Name || strings.HasPrefix(at.inTree, stdPrefix)) && l.from != id {
		return target{src, l.to}, nil
	}
	if strings.HasPrefix(at.inTree, stdPrefix) && at.inTree != src.inTree {
		if l, ok := src.loadOf(boundAt(id)); ok { // load("@std//…", "x"), where both names are one
			return target{src, l.to}, nil
		}
		return target{}, fmt.Errorf("%s is of the standard library", at.id.Name)
	}
	if ofStarling(at, at.id.Name) {
		return target{}, fmt.Errorf("%s keeps its name: starling calls it by that", at.id.Name)
	}
	if id := s.hookID(d, at); id != "" {
		return target{}, fmt.Errorf("%[1]s keeps its name: the hook has its id from it, under which its state and its values are kept; write hook(%[1]s, name = %[2]q, …) first, then it can be renamed", at.id.Name, id)
	}
	return at, nil
}

// calledByStarling are functions of a module.star that Starling finds by their names.
var calledByStarling = []string{"enabled", "readiness", "chart_values", "settings_check"}

// ofStarling says whether Starling would call a function of this name, in the file in which a name is bound.
func ofStarling(at target, name string) bool {
	return isGlobal(at.id) && strings.HasSuffix(at.inTree, "/module.star") && slices.Contains(calledByStarling, name)
}

// isName is what a name of Starlark is like.
var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// rename changes a name wherever it stands for the same, in all files of the tree. It is refused where the new name has
// a meaning already.
func (s *Server) rename(p renameParams) (*workspaceEdit, error) {
	d, offset, err := s.at(p.positionParams)
	if err != nil {
		return nil, err
	}
	src, err := current(d)
	if err != nil {
		return nil, err
	}
	at, err := s.renamable(d, src, offset)
	if err != nil {
		return nil, err
	}
	name := p.NewName
	switch {
	case !isName.MatchString(name) || len(name) > 200:
		return nil, invalid("%.200q is no name", name)
	case slices.Contains(keywords, name), slices.Contains(reserved, name):
		return nil, invalid("%s is a word of the language", name)
	case ofStarling(at, name):
		return nil, invalid("%s is a function that starling calls", name)
	case slices.Contains(builtins.Names(), name):
		return nil, invalid("%s is a builtin", name)
	case name == at.id.Name:
		return &workspaceEdit{map[string][]text.Edit{}}, nil
	}
	uses := s.uses(d, at)
	out := &workspaceEdit{Changes: map[string][]text.Edit{}}
	for _, u := range uses {
		switch {
		case u.binds(name):
			return nil, invalid("%s has a meaning in %s already", name, u.inTree)
		case len(u.loads) > 0 && strings.HasPrefix(name, "_"):
			return nil, invalid("%s loads it, and no file can load a name that begins with _", u.inTree)
		}
		if err := s.asItIs(d, u.source); err != nil {
			return nil, err
		}
		out.Changes[u.uri] = renames(u, at, name)
	}
	if err := s.allRead(d, at); err != nil {
		return nil, err
	}
	if err := s.renameArguments(d, at, name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// asItIs says why a file cannot be changed: its text is another one by now.
func (s *Server) asItIs(d *document, src source) error {
	if open, _ := s.open(src.uri); open != nil {
		_, err := current(open)
		return err
	}
	if now, err := os.ReadFile(d.folder.path(src.inTree)); err != nil || string(now) != src.text.String() {
		d.folder.diskChanged()
		return fmt.Errorf("%s has changed on the disk, and is read again: rename once more", src.inTree)
	}
	return nil
}

// allRead says which file of the tree may load a name and cannot be read.
func (s *Server) allRead(d *document, at target) error {
	if d.folder == nil || !isGlobal(at.id) {
		return nil
	}
	named := regexp.MustCompile(`\b` + regexp.QuoteMeta(at.id.Name) + `\b`)
	for _, file := range s.starFiles(d.folder) {
		if _, ok := s.inFolder(d.folder, file); ok {
			continue
		}
		open := d.folder.document(file)
		if text := d.folder.text(file).String(); open != nil && open.lost || strings.Contains(text, path.Base(at.inTree)) && named.MatchString(text) {
			return unreadable(file)
		}
	}
	return nil
}

// renameArguments adds the edits of calls that name the parameter which is renamed.
func (s *Server) renameArguments(d *document, at target, name string, out *workspaceEdit) error {
	def := at.functionOfParam(at.id)
	if def == nil || boundAt(def.Name) == nil {
		return nil
	}
	for _, u := range s.uses(d, target{at.source, boundAt(def.Name)}) {
		for _, call := range u.calls() {
			arg := argumentName(call, at.id.Name)
			id, ok := call.Fn.(*syntax.Ident)
			if arg == nil || !ok || !u.standsFor(id) {
				continue
			}
			if err := s.asItIs(d, u.source); err != nil {
				return err
			}
			out.Changes[u.uri] = append(out.Changes[u.uri], text.Edit{Range: u.rangeOf(arg), NewText: name})
		}
	}
	for _, edits := range out.Changes {
		slices.SortFunc(edits, func(a, b text.Edit) int {
			return cmp.Or(cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
		})
	}
	return nil
}

// hookID is the id of the hook that has it from the name of its function; "" for a function that is none, and for one
// whose hook has a name of its choice.
func (s *Server) hookID(d *document, at target) string {
	if !isGlobal(at.id) || at.function(at.id.Name) == nil {
		return ""
	}
	registered := false
	for _, u := range s.uses(d, at) {
		for _, call := range u.calls() {
			fn, ok := script.ArgumentOf(call, 0, "fn").(*syntax.Ident)
			if !ok || script.NameOf(call.Fn) != "hook" || !u.standsFor(fn) {
				continue
			}
			if registered = true; script.ArgumentOf(call, -1, "name") == nil {
				_, file, _ := strings.Cut(u.inTree, "/")
				return file + ":" + at.id.Name
			}
		}
	}
	if registered || d.folder == nil || d.folder.gen == nil {
		return ""
	}
	for _, h := range hooksOf(d.folder.gen, at.inTree, at.id.Name) { // such as one of a list, in a loop
		if strings.HasSuffix(h.HookDecl.ID, ".star:"+at.id.Name) {
			return h.HookDecl.ID
		}
	}
	return ""
}

// renames are the edits of one file.
func renames(u use, at target, name string) (out []text.Edit) {
	seen := map[*syntax.Ident]bool{}
	for _, id := range u.ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		edit := text.Edit{Range: u.rangeOf(id), NewText: name}
		if l, ok := u.loadOf(id); ok && l.from == l.to && id == at.id {
			// The other file keeps its name: load("…", "x") becomes load("…", y = "x").
			start, end := u.span(id)
			edit = text.Edit{Range: u.text.RangeOf(start-1, end+1), NewText: fmt.Sprintf("%s = %q", name, id.Name)}
		}
		out = append(out, edit)
	}
	return out
}

// formatting writes a document as starling fmt does. A file that it cannot format stays as it is, without an error: the
// mistake is shown already, and editors that format when they save would show one with each save of a half-written file.
func (s *Server) formatting(p documentParams) ([]text.Edit, error) {
	d, err := s.known(p.TextDocument.URI)
	if err != nil || !d.starlark() {
		return nil, err
	}
	formatted, err := format.Source(d.path, d.text.Bytes())
	if err != nil {
		return nil, nil
	}
	return d.text.Difference(string(formatted)), nil
}
