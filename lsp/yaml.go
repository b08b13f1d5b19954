package lsp

import (
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/values"
)

// Files of values: their keys, by the schema. They are read line by line, since a file that is being written is no YAML
// half of the time.

// yamlAt is what is known of a file of values, and the keys above the one that begins at a column of a line; ok is false
// for any other file.
func (s *Server) yamlAt(d *document, line, column int, item bool) (k known, above []string, ok bool) {
	if k, ok = s.valuesFile(d); !ok {
		return known{}, nil, false
	}
	// The elements of a list may stand below their key without being further in.
	indent, ofList := column, item
	if item {
		above = append(above, values.Items)
		indent = indentOf(d.text.Line(line))
	}
	for n := line - 1; n >= 0; n-- {
		text := d.text.Line(n)
		key, at, item := keyOfLine(text)
		if item && key != "" && at < indent {
			above, indent, ofList = append(above, key), at, false
		}
		switch dash := indentOf(text); {
		case item && dash < indent:
			above, indent, ofList = append(above, values.Items), dash, true
		case item || key == "":
		case at < indent || ofList && at == indent:
			above, indent, ofList = append(above, key), at, false
		}
	}
	slices.Reverse(above)
	return k, above, true
}

// keyOfLine is the key that a line begins with, and its column; item says that the line begins an element of a list.
func keyOfLine(line string) (key string, column int, item bool) {
	column = indentOf(line)
	rest := line[column:]
	for strings.HasPrefix(rest, "- ") {
		item = true
		more := 2 + len(rest[2:]) - len(strings.TrimLeft(rest[2:], " "))
		rest, column = rest[more:], column+more
	}
	if strings.HasPrefix(rest, "#") {
		return "", column, item
	}
	key, _, found := strings.Cut(rest, ":")
	if !found || strings.ContainsAny(key, "{[") {
		return "", column, item
	}
	return strings.Trim(strings.TrimSpace(key), `"'`), column, item
}

// valuesFile is what is known of the values in a document: those of the tree, or those of a module.
func (s *Server) valuesFile(d *document) (known, bool) {
	if d.folder == nil || d.folder.gen == nil || !slices.Contains([]string{"values.yaml", "values.yml"}, path.Base(d.inTree)) {
		return known{}, false
	}
	gen := d.folder.gen
	if d.inTree == "values.yaml" {
		k := known{below: map[string]known{values.GlobalKey: {}}}
		if gen.Global != nil {
			k.below[values.GlobalKey] = ofUser(gen.Global)
		}
		switches := map[string]any{}
		for _, name := range gen.Names {
			m := gen.Modules[name]
			k.below[m.Key] = ofUser(m)
			switches[values.EnabledKey(m.Key)] = true
		}
		k.data = []map[string]any{switches}
		return k, true
	}
	m := s.moduleOf(d)
	if m == nil || d.inTree != m.Tree.ValuesFile && path.Dir(d.inTree) != m.Tree.Dir && path.Dir(d.inTree) != m.Tree.Dir+"/chart" {
		return known{}, false
	}
	if m.Decl.ValuesKey != "" {
		return known{below: map[string]known{m.Decl.ValuesKey: ofModule(m)}}, true
	}
	return ofModule(m), true
}

// completeYAML offers keys, and values where the schema lists them.
func (s *Server) completeYAML(d *document, offset int, out *completions) {
	at := d.text.Position(offset)
	line := d.text.Line(int(at.Line))
	row, _ := d.text.Starlark(offset)
	before := line[:offset-d.text.OfStarlark(row, 1)]
	key, column, item := keyOfLine(before)
	if key != "" { // behind the colon
		s.completeValue(d, int(at.Line), key, column, item, before, offset, out)
		return
	}
	if strings.Contains(before, "#") {
		return
	}
	written := strings.TrimLeft(strings.TrimLeft(before, " "), "- ")
	if strings.ContainsAny(written, " \t{[\"'") {
		return
	}
	k, above, ok := s.yamlAt(d, int(at.Line), column, item)
	if !ok {
		return
	}
	out.at = d.text.RangeOf(offset-len(written), offset)
	k.complete(above, out)
	given := keysBeside(d, int(at.Line), column, item)
	out.items = slices.DeleteFunc(out.items, func(i completionItem) bool { return given[i.Label] })
	for i := range out.items {
		out.items[i].TextEdit.NewText += ":"
		if !strings.Contains(out.items[i].Detail, "object") && !strings.Contains(out.items[i].Detail, "array") {
			out.items[i].TextEdit.NewText += " "
		}
	}
}

// keysBeside are the other keys of the map that the key at a column of a line is in: a map has none of them twice.
func keysBeside(d *document, line, column int, item bool) map[string]bool {
	keys := map[string]bool{}
	look := func(n int, above bool) (on bool) {
		text := d.text.Line(n)
		key, at, begins := keyOfLine(text)
		if key == "" && at == len(text) || strings.HasPrefix(text[at:], "#") {
			return true
		}
		if at == column && (above || !begins) {
			keys[key] = true
		}
		return at > column || at == column && !begins
	}
	for n := line - 1; n >= 0 && !item && look(n, true); n-- {
	}
	for n := line + 1; n < d.text.Lines() && look(n, false); n++ {
	}
	return keys
}

// completeValue offers the values that the schema lists for a key.
func (s *Server) completeValue(d *document, line int, key string, column int, item bool, before string, offset int, out *completions) {
	k, above, ok := s.yamlAt(d, line, column, item)
	if !ok {
		return
	}
	f := k.fields(above)[key]
	written := before[strings.LastIndexByte(before, ':')+1:]
	written = strings.TrimLeft(written, " ")
	out.at = d.text.RangeOf(offset-len(written), offset)
	for _, e := range f.Enum {
		out.add(0, kindConstant, strings.Trim(shown(e), `"`), "", "")
	}
	if slices.Contains(f.Types, "boolean") {
		out.add(0, kindConstant, "true", "", "")
		out.add(0, kindConstant, "false", "", "")
	}
}

// hoverYAML explains the key of the line that a place is in.
func (s *Server) hoverYAML(d *document, offset int) *hover {
	at := d.text.Position(offset)
	line := d.text.Line(int(at.Line))
	key, column, item := keyOfLine(line)
	if key == "" {
		return nil
	}
	k, above, ok := s.yamlAt(d, int(at.Line), column, item)
	if !ok {
		return nil
	}
	doc := k.doc(append(above, key))
	if doc == "" {
		return nil
	}
	row, _ := d.text.Starlark(offset)
	start := d.text.OfStarlark(row, 1) + column
	r := d.text.RangeOf(start, start+len(key))
	return &hover{markup{"markdown", doc}, &r}
}
