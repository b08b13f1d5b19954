package lsp

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/tree"
)

// Each example is opened as an editor does it. Nothing is wrong with it, each name that it loads leads to a file, each
// name that it gives is explained, nothing is offered twice, and it is formatted as it is. A rename of a function to
// another name and back leaves the files as they were, and in between nothing is wrong either.
func TestExamplesInAnEditor(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	trees := map[string][]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".star") {
			dir, ok := tree.Above(p)
			if !ok {
				t.Errorf("%s is in no tree", p)
			}
			trees[dir] = append(trees[dir], p)
		}
		return err
	})
	if err != nil || len(trees) < 10 {
		t.Fatal(len(trees), err)
	}
	for dir, files := range trees {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			c := begin(t, dir)
			for _, file := range files {
				c.inEditor(file)
			}
			c.renamed(files)
			c.end()
		})
	}
}

// inEditor opens a file and asks all that can be asked of it.
func (c *client) inEditor(file string) {
	t := c.t
	uri := c.openFile(file)
	for _, found := range c.diagnostics(uri) {
		if found.Severity != severityInformation {
			t.Errorf("%s: %+v", file, found)
		}
	}
	doc := c.open[uri]
	var edits []text.Edit
	c.call("textDocument/formatting", map[string]any{"textDocument": documentID{uri}}, &edits)
	if len(edits) > 0 {
		t.Errorf("%s: formatting changes it: %v", file, edits)
	}
	for n := range doc.Lines() {
		line := doc.Line(n)
		if !strings.HasPrefix(line, "load(") || !strings.Contains(line, `", "`) {
			continue
		}
		at := doc.Position(doc.OfStarlark(n+1, 1) + strings.Index(line, `", "`) + 4)
		var to *location
		if c.call("textDocument/definition", place(uri, at), &to); to == nil || to.URI == uri {
			t.Errorf("%s:%d: the name that is loaded leads to %v", file, n+1, to)
		}
		var about *hover
		if c.call("textDocument/hover", place(uri, at), &about); about == nil || !strings.Contains(about.Contents.Value, "```python") {
			t.Errorf("%s:%d: got %+v", file, n+1, about)
		}
	}
	for n := 0; n < doc.Lines(); n += 7 {
		at := text.Position{Line: uint32(n), Character: uint32(len([]rune(doc.Line(n))))}
		var offered completionList
		c.call("textDocument/completion", place(uri, at), &offered)
		seen := map[string]bool{}
		for _, item := range offered.Items {
			if seen[item.Label] {
				t.Errorf("%s:%d: %s is offered twice", file, n+1, item.Label)
			}
			seen[item.Label] = true
		}
		c.call("textDocument/signatureHelp", place(uri, at), nil)
	}
}

// renamed renames the first function of each file, and looks at what has become of the tree.
func (c *client) renamed(files []string) {
	t := c.t
	for _, file := range files {
		uri := uriOf(file)
		var symbols []documentSymbol
		c.call("textDocument/documentSymbol", map[string]any{"textDocument": documentID{uri}}, &symbols)
		before := map[string]string{}
		for u, doc := range c.open {
			before[u] = doc.String()
		}
		for _, s := range symbols {
			if s.Kind != symbolFunction || strings.HasPrefix(s.Name, "test_") || slices.Contains(builtins.Names(), s.Name) {
				continue
			}
			var there workspaceEdit
			err := c.try("textDocument/rename", map[string]any{"textDocument": documentID{uri}, "position": s.SelectionRange.Start, "newName": "quite_new"}, &there)
			if err != nil {
				if !strings.Contains(err.Error(), "keeps its name") {
					t.Errorf("%s: %s: %v", file, s.Name, err)
				}
				continue
			}
			c.apply(there)
			for _, found := range c.diagnostics(uri) {
				if found.Severity == severityError && !strings.Contains(found.Message, "state") {
					t.Errorf("%s: %s is quite_new now: %+v", file, s.Name, found)
				}
			}
			var back workspaceEdit
			err = c.try("textDocument/rename", map[string]any{"textDocument": documentID{uri}, "position": s.SelectionRange.Start, "newName": s.Name}, &back)
			switch {
			case err == nil:
				c.apply(back)
			case strings.Contains(err.Error(), "has a meaning"): // it was that of a variable of a function, too
				for u := range there.Changes {
					c.edit(c.path(u), before[u])
				}
			default:
				t.Errorf("%s: quite_new back to %s: %v", file, s.Name, err)
			}
			for u, src := range before {
				if c.open[u].String() != src {
					t.Errorf("%s: after renames of %s there and back it differs", u, s.Name)
				}
			}
			break
		}
	}
}

// apply makes the edits of all files.
func (c *client) apply(edit workspaceEdit) {
	for uri, edits := range edit.Changes {
		if c.open[uri] == nil {
			c.t.Fatal(uri)
		}
		c.edit(c.path(uri), applied(c.t.(*testing.T), c.open[uri], edits))
	}
}

// path is that of a file that a URI names.
func (c *client) path(uri string) string {
	c.t.Helper()
	path, err := pathOf(uri)
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}
