package repl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/builtins/spec"
)

// Candidate is what a word may become.
type Candidate struct {
	// Text takes the place of the word.
	Text string
	// Doc says in a few words what it is.
	Doc string
}

// Completer knows what words may become.
type Completer struct {
	// Table are the builtins.
	Table []spec.Spec
	// Names are the names in scope, and Lookup what they stand for.
	Names  func() []string
	Lookup func(name string) starlark.Value
	// Values are those that values.get("…") finds.
	Values func() map[string]any
	// Command completes a line that begins with a colon: the word that follows others,
	// of which the beginning is there.
	Command func(words []string, begun string) []Candidate
}

// Complete returns what the word that ends at the cursor, a place in text in bytes, may
// become, and where that word begins.
func (c *Completer) Complete(text string, cursor int) (from int, out []Candidate) {
	text = text[:min(max(cursor, 0), len(text))]
	if strings.HasPrefix(text, ":") {
		from = strings.LastIndexAny(text, " \t") + 1
		return from, matching(text[from:], c.Command(strings.Fields(text[:from]), text[from:]))
	}
	at := scan(text)
	switch {
	case at.comment:
		return len(text), nil
	case at.quote >= 0:
		from = at.quote
		return from, matching(text[from:], c.inText(at))
	}
	from = len(text)
	for from > 0 && (isWord(text[from-1]) || text[from-1] == '.') {
		from--
	}
	path := text[from:]
	dot := strings.LastIndexByte(path, '.')
	switch {
	case from > 0 && strings.IndexByte(")]}\"'", text[from-1]) >= 0, path != "" && path[0] >= '0' && path[0] <= '9':
		return len(text), nil // of a value that is no name
	case dot < 0:
		return from, append(matching(path, c.params(at)), matching(path, c.names())...)
	}
	return from + dot + 1, matching(path[dot+1:], c.members(path[:dot]))
}

// matching are the candidates that a word begins.
func matching(word string, all []Candidate) []Candidate {
	var out []Candidate
	for _, one := range all {
		if strings.HasPrefix(one.Text, word) {
			out = append(out, one)
		}
	}
	return out
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// keywords are the words of the language that begin something.
func keywords() []string {
	return []string{"def", "for", "if", "elif", "else", "in", "and", "or", "not", "lambda", "load", "return", "pass", "break", "continue", "True", "False", "None"}
}

// names are the names in scope.
func (c *Completer) names() []Candidate {
	var out []Candidate
	for _, name := range c.Names() {
		out = append(out, Candidate{name, c.describe(name)})
	}
	for _, word := range keywords() {
		if !slices.ContainsFunc(out, func(have Candidate) bool { return have.Text == word }) {
			out = append(out, Candidate{word, ""})
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int { return strings.Compare(a.Text, b.Text) })
	return out
}

func (c *Completer) describe(name string) string {
	v := c.Lookup(name)
	switch v := v.(type) {
	case *starlark.Function:
		doc, _, _ := strings.Cut(strings.TrimSpace(v.Doc()), "\n")
		if doc == "" {
			doc = "(" + strings.Join(functionParams(v), ", ") + ")"
		}
		return doc
	case nil, *starlark.Builtin:
		if spec := c.spec(name); spec != nil {
			return docs.FirstSentence(spec.Doc)
		}
		return ""
	}
	if v.Type() != "module" {
		return v.Type()
	}
	var members []string
	for _, m := range c.members(name) {
		members = append(members, m.Text)
	}
	return strings.Join(members, " ")
}

func (c *Completer) spec(name string) *spec.Spec {
	for i := range c.Table {
		if c.Table[i].Name == name {
			return &c.Table[i]
		}
	}
	return nil
}

// members are what may stand behind "path.".
func (c *Completer) members(path string) []Candidate {
	var out []Candidate
	root, rest, _ := strings.Cut(path, ".")
	v := c.Lookup(root)
	if v == nil || v.Type() == "module" || root == "ctx" {
		for _, spec := range c.Table {
			member, ok := strings.CutPrefix(spec.Name, path+".")
			if !ok {
				continue
			}
			doc := docs.FirstSentence(spec.Doc)
			if first, _, deeper := strings.Cut(member, "."); deeper {
				member, doc = first, ""
			}
			if !slices.ContainsFunc(out, func(have Candidate) bool { return have.Text == member }) {
				out = append(out, Candidate{member, doc})
			}
		}
	}
	for rest != "" && v != nil {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		v = attr(v, name)
	}
	if o, ok := v.(starlark.HasAttrs); ok && v.Type() != "module" {
		for _, name := range o.AttrNames() {
			if slices.ContainsFunc(out, func(have Candidate) bool { return have.Text == name }) {
				continue
			}
			kind := ""
			if x := attr(v, name); x != nil {
				kind = x.Type()
			}
			out = append(out, Candidate{name, kind})
		}
	}
	return out
}

// attr returns an attribute, or nil.
func attr(v starlark.Value, name string) starlark.Value {
	if o, ok := v.(starlark.HasAttrs); ok {
		if x, err := o.Attr(name); err == nil {
			return x
		}
	}
	return nil
}

// params are the parameters that the call around the cursor does not have yet.
func (c *Completer) params(at place) []Candidate {
	var out []Candidate
	if at.value || at.callee == "" {
		return nil
	}
	if spec := c.spec(at.callee); spec != nil {
		for i, p := range spec.Params {
			if strings.HasPrefix(p.Name, "*") || !p.Keyword && i < at.positional || at.given[p.Name] {
				continue
			}
			out = append(out, Candidate{p.Name + "=", docs.FirstSentence(p.Doc)})
		}
		return out
	}
	if f, ok := c.Lookup(at.callee).(*starlark.Function); ok {
		for i := range f.NumParams() {
			if name, _ := f.Param(i); i >= at.positional && !at.given[name] {
				out = append(out, Candidate{name + "=", ""})
			}
		}
	}
	return out
}

// inText are what a text may become that is in a call: a path of the values, or a
// name to be told about.
func (c *Completer) inText(at place) []Candidate {
	if at.positional > 0 {
		return nil
	}
	switch space, member, _ := strings.Cut(at.callee, "."); {
	case at.callee == "help":
		var out []Candidate
		for _, spec := range c.Table {
			out = append(out, Candidate{spec.Name, docs.FirstSentence(spec.Doc)})
		}
		for _, f := range docs.CtxMembers("", "ctx") {
			out = append(out, Candidate{f.Path, docs.FirstSentence(f.Doc)})
		}
		return out
	case space == "values" && member != "patch":
		return paths(c.Values(), "", nil)
	}
	return nil
}

// maxPaths is how many paths are offered.
const maxPaths = 2000

// paths are those of maps that dotted text can name, and of all they hold.
func paths(m map[string]any, before string, out []Candidate) []Candidate {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == "" || strings.ContainsAny(key, ".\"'\\\n") || len(out) >= maxPaths {
			continue
		}
		out = append(out, Candidate{before + key, kindOf(m[key])})
		if below, ok := m[key].(map[string]any); ok {
			out = paths(below, before+key+".", out)
		}
	}
	return out
}

// kindOf says what a value is, and not which: it may be secret.
func kindOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return fmt.Sprintf("dict of %d", len(v))
	case []any:
		return fmt.Sprintf("list of %d", len(v))
	case string:
		return "string"
	case bool:
		return "bool"
	case nil:
		return "None"
	}
	return "number"
}
