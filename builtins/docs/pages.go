// Package docs is what people read of the builtins: the pages of this folder, what is made of them (the reference, help,
// stubs), and what functions are called with.
package docs

import (
	"cmp"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

// docs are the texts of all builtins, one page for each group of the reference; docs/README.md tells their form.
//
//go:embed [0-9]*.md
var docs embed.FS

// page is one group of the reference.
type page struct {
	title string
	texts []text
}

// text is all that people read about one builtin.
type text struct {
	name, doc, returns, example string
	// params are texts of parameters by name, shared those of the page; the former go first.
	params, shared map[string]string
}

// Documented returns all builtins with their docs. It reads all pages: a process that runs hooks does without.
func Documented() []spec.Spec {
	texts := map[string]text{}
	for _, p := range pages() {
		for _, t := range p.texts {
			texts[t.name] = t
		}
	}
	specs := builtins.Table()
	for i := range specs {
		document(&specs[i], texts[specs[i].Name])
	}
	return specs
}

func document(s *spec.Spec, t text) {
	s.Doc, s.Returns, s.Example = t.doc, t.returns, t.example
	s.Params = slices.Clone(s.Params) // several builtins may have the same list
	for i := range s.Params {
		name := strings.TrimLeft(s.Params[i].Name, "*")
		s.Params[i].Doc = cmp.Or(t.params[name], t.shared[name])
	}
}

// pages reads all texts, in the order of the reference.
func pages() (out []page) {
	files, _ := fs.Glob(docs, "*") // the pattern is right, and no other error is possible
	for _, file := range files {
		data, _ := docs.ReadFile(file) // it is embedded
		out = append(out, readPage(string(data)))
	}
	return out
}

func readPage(data string) page {
	sections := strings.Split(strings.TrimPrefix(data, "# "), "\n## ")
	head := readText(sections[0])
	p := page{title: head.name}
	for _, section := range sections[1:] {
		t := readText(section)
		t.shared = head.params
		p.texts = append(p.texts, t)
	}
	return p
}

// readText reads the section of one builtin, from its name on.
func readText(section string) text {
	name, rest, _ := strings.Cut(section, "\n")
	rest, example, _ := strings.Cut(rest, "\n```starlark\n")
	example, _, _ = strings.Cut(example, "```")
	t := text{name: name, example: example, params: map[string]string{}}
	for _, part := range strings.Split(strings.TrimSpace(rest), "\n\n") {
		items, isList := strings.CutPrefix(part, "- ")
		returns, isResult := strings.CutPrefix(part, "Returns ")
		switch {
		case isList:
			for _, item := range strings.Split(items, "\n- ") {
				param, doc, _ := strings.Cut(item, ": ")
				t.params[param] = unwrapped(doc)
			}
		case isResult && t.doc != "": // a doc may begin with the word, too
			t.returns = strings.TrimSuffix(unwrapped(returns), ".")
		default:
			t.doc = unwrapped(part)
		}
	}
	return t
}

func unwrapped(s string) string { return strings.Join(strings.Fields(s), " ") }
