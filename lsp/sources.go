package lsp

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/stdlib"
)

// stdPrefix begins the names of files of the standard library.
const stdPrefix = "@std//"

// source is a .star file that another one loads, or a document.
type source struct {
	*parsedText
	uri string // "" when nobody can open it, see opens
	// inTree is its path in its tree, or "@std//…".
	inTree string
}

// sourceOf is a document as Starlark. While it does not parse, it is as it was when it last did.
func sourceOf(d *document) (source, error) {
	switch {
	case !d.starlark():
		return source{}, fmt.Errorf("%s is no .star file", d.path)
	case d.parsed == nil:
		return source{}, unreadable(d.path)
	}
	return source{d.parsed, d.uri, d.inTree}, nil
}

// current is sourceOf for what changes the document, which must be read as it is.
func current(d *document) (source, error) {
	src, err := sourceOf(d)
	if err == nil && src.text != d.text {
		err = unreadable(d.path)
	}
	return src, err
}

func unreadable(file string) error {
	return fmt.Errorf("%s has a mistake that keeps it from being read", file)
}

// load returns the file that a document loads by a label; ok is false when there is none.
func (s *Server) load(d *document, label string) (source, bool) {
	if name, std := strings.CutPrefix(label, stdPrefix); std {
		data, err := fs.ReadFile(stdlib.FS, name)
		if err != nil {
			return source{}, false
		}
		src := source{inTree: label}
		if s.o.StdDir != "" {
			src.uri = uriOf(filepath.Join(s.o.StdDir, name))
		}
		src.parsedText = s.std.parse(label, data)
		return src, src.parsedText != nil
	}
	if d.folder == nil {
		return source{}, false
	}
	return s.inFolder(d.folder, resolved(d.inTree, label))
}

// resolved is the path in the tree of what a file loads by a label.
func resolved(from, label string) string {
	if below, ok := strings.CutPrefix(label, "//"); ok {
		return path.Clean(below)
	}
	return path.Join(path.Dir(from), label)
}

// inFolder returns a file of a tree, as its buffer is or as it is on the disk.
func (s *Server) inFolder(f *folder, file string) (source, bool) {
	full := filepath.Join(f.dir, filepath.FromSlash(file))
	if d := s.documents[full]; d != nil {
		src, err := sourceOf(d)
		return src, err == nil
	}
	if f.files == nil {
		return source{}, false
	}
	data, err := fs.ReadFile(f.files, file)
	if err != nil {
		return source{}, false
	}
	src := source{uri: uriOf(full), inTree: file}
	src.parsedText = f.parsed.parse(file, data)
	return src, src.parsedText != nil
}

// parses are files as they were read last, by their names: names are looked up in them with each key.
type parses map[string]*parsedText

// parse returns a file as Starlark; nil when it is none.
func (p parses) parse(name string, src []byte) *parsedText {
	if last := p[name]; last != nil && last.text.String() == string(src) {
		return last
	}
	delete(p, name)
	if file, _ := check.File(name, src); file != nil {
		p[name] = &parsedText{text.New(string(src)), file}
	}
	return p[name]
}

// starFiles are the paths of all .star files of a tree, open or as the last check has read them.
func (s *Server) starFiles(f *folder) []string {
	seen := map[string]bool{}
	var out []string
	add := func(file string) {
		if strings.HasSuffix(file, ".star") && !seen[file] {
			seen[file] = true
			out = append(out, file)
		}
	}
	if f.files != nil {
		_ = fs.WalkDir(f.files, ".", func(p string, d fs.DirEntry, err error) error { // all of it is in memory
			if err == nil && !d.IsDir() {
				add(p)
			}
			return err
		})
	}
	for _, d := range s.documents {
		if d.folder == f {
			add(d.inTree)
		}
	}
	return out
}

// opens says whether an editor can open a source. One of the standard library is written for that.
func (s *Server) opens(src source) bool {
	name, std := strings.CutPrefix(src.inTree, stdPrefix)
	if !std || src.uri == "" {
		return src.uri != ""
	}
	file := filepath.Join(s.o.StdDir, name)
	if now, err := os.ReadFile(file); err == nil && string(now) == src.text.String() {
		return true
	}
	if err := os.MkdirAll(s.o.StdDir, 0o755); err != nil {
		return false
	}
	_ = os.Remove(file) // of another version, and read-only
	return os.WriteFile(file, src.text.Bytes(), 0o444) == nil
}
