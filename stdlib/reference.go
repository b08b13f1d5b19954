package stdlib

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// WriteReference writes the reference of the library as Markdown: of each file what
// it says of itself, and its functions with their doc strings.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# The standard library

Made from the doc strings in ` + "`stdlib/`" + ` by ` + "`go test ./test -run Reference -update`" + `; do not edit it.
Builtins, which are there without a load, stand in [reference.md](reference.md).
`)
	files, err := documented()
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(&b, "\n## `@std//%s`\n\n%s\n", f.name, f.doc)
		for _, fn := range f.functions {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", fn.signature, sections(fn.doc))
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// libraryFile is what a file of the library says of itself.
type libraryFile struct {
	name, doc string
	functions []function
}

// function is one that a file exports: as it is written, on one line, and its doc
// string.
type function struct{ signature, doc string }

// documented reads all files of the library. A function without a doc string is an
// error.
func documented() ([]libraryFile, error) {
	names, err := fs.Glob(FS, "*.star")
	if err != nil {
		return nil, err
	}
	var files []libraryFile
	for _, name := range names {
		src, err := fs.ReadFile(FS, name)
		if err != nil {
			return nil, err
		}
		file, err := (&syntax.FileOptions{}).Parse("@std//"+name, src, 0)
		if err != nil {
			return nil, err
		}
		f := libraryFile{name: name, doc: docOf(file.Stmts)}
		for _, stmt := range file.Stmts {
			def, ok := stmt.(*syntax.DefStmt)
			if !ok || strings.HasPrefix(def.Name.Name, "_") {
				continue
			}
			doc := docOf(def.Body)
			if doc == "" {
				return nil, fmt.Errorf("@std//%s: %s has no doc string", name, def.Name.Name)
			}
			f.functions = append(f.functions, function{signature(string(src), def), doc})
		}
		files = append(files, f)
	}
	return files, nil
}

// signature is a function as it is written, on one line.
func signature(src string, def *syntax.DefStmt) string {
	lines := strings.Split(src, "\n")
	first, last := int(def.Def.Line), int(def.Body[0].(*syntax.ExprStmt).X.(*syntax.Literal).TokenPos.Line)
	words := strings.Fields(strings.Join(lines[first-1:last-1], " "))
	return strings.TrimSuffix(strings.TrimPrefix(strings.Join(words, " "), "def "), ":")
}

// docOf returns the doc string that begins a body, "" when there is none, without the
// indentation of its lines.
func docOf(body []syntax.Stmt) string {
	if len(body) == 0 {
		return ""
	}
	expr, ok := body[0].(*syntax.ExprStmt)
	if !ok {
		return ""
	}
	literal, ok := expr.X.(*syntax.Literal)
	if !ok || literal.Token != syntax.STRING {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(literal.Value.(string)), "\n")
	indent := 0
	if literal.TokenPos.Col > 1 {
		indent = int(literal.TokenPos.Col) - 1
	}
	for i, line := range lines {
		if i > 0 {
			lines[i] = strings.TrimPrefix(line, strings.Repeat(" ", min(indent, len(line)-len(strings.TrimLeft(line, " ")))))
		}
	}
	return strings.Join(lines, "\n")
}

// sections makes lists of the Args and Returns of a doc string.
func sections(doc string) string {
	var out []string
	in := ""
	for line := range strings.SplitSeq(doc, "\n") {
		switch {
		case line == "Args:" || line == "Returns:":
			in = line
			if line == "Returns:" {
				out = append(out, "Returns")
			}
		case in == "" || line == "":
			out = append(out, line)
		case in == "Args:" && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			out = append(out, extend("- `"+name+"`:", text, "  "))
		case in == "Args:":
			out[len(out)-1] = extend(out[len(out)-1], line, "  ")
		default:
			out[len(out)-1] = extend(out[len(out)-1], line, "")
		}
	}
	return strings.Join(out, "\n")
}

// extend adds the words of a line to a text whose lines end before column 120.
func extend(text, line, indent string) string {
	for word := range strings.FieldsSeq(line) {
		last := text[strings.LastIndexByte(text, '\n')+1:]
		if utf8.RuneCountInString(last+" "+word) < 120 {
			text += " " + word
		} else {
			text += "\n" + indent + word
		}
	}
	return text
}

// Help tells about a file of the library, "@std//certs.star", or about the functions of a name, "ensure".
func Help(name string) (text string, found bool) {
	files, err := documented()
	if err != nil {
		return "", false
	}
	var parts []string
	for _, f := range files {
		if name == "@std//"+f.name {
			text := f.doc
			for _, fn := range f.functions {
				text += "\n\n" + fn.signature + "\n\n" + fn.doc
			}
			parts = append(parts, text)
		}
		for _, fn := range f.functions {
			if fn.name() == name {
				parts = append(parts, fmt.Sprintf("%s\n\n%s\n\nload(\"@std//%s\", %q)", fn.signature, fn.doc, f.name, name))
			}
		}
	}
	return strings.Join(parts, "\n\n"), len(parts) > 0
}

// HelpNames are all names that [Help] knows.
func HelpNames() []string {
	files, err := documented()
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, "@std//"+f.name)
		for _, fn := range f.functions {
			names = append(names, fn.name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// name is what the function is called by.
func (f function) name() string {
	name, _, _ := strings.Cut(f.signature, "(")
	return name
}
