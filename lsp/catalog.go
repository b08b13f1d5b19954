package lsp

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/builtins/spec"
)

// catalog is what is known of names that no file gives.
type catalog struct {
	specs map[string]spec.Spec
	// members are those of namespaces, by "k8s", "t.cluster", in the order of the table; "" has what stands alone.
	members map[string][]string
}

func newCatalog() *catalog {
	c := &catalog{specs: map[string]spec.Spec{}, members: map[string][]string{}}
	for _, s := range docs.Documented() {
		c.specs[s.Name] = s
		for name := s.Name; name != ""; {
			space, member := "", name
			if i := strings.LastIndexByte(name, '.'); i >= 0 {
				space, member = name[:i], name[i+1:]
			}
			if !slices.Contains(c.members[space], member) {
				c.members[space] = append(c.members[space], member)
			}
			name = space
		}
	}
	return c
}

// alone are the names that need no dot: functions, namespaces, and those of the language.
func (c *catalog) alone() (out []string) {
	for _, name := range builtins.Names() {
		if !strings.HasPrefix(name, "_") {
			out = append(out, name)
		}
	}
	return out
}

// doc is what a person is shown of a builtin or a namespace; "" for a name that is none.
func (c *catalog) doc(name string) string {
	if s, ok := c.specs[name]; ok {
		return docOfSpec(s)
	}
	if members := c.members[name]; name != "" && len(members) > 0 {
		return "`" + name + "` has " + codes(members) + "."
	}
	if v, ok := starlark.Universe[name]; ok && !strings.Contains(name, ".") {
		return fmt.Sprintf("`%s` is a %s of Starlark itself.", name, v.Type())
	}
	return ""
}

func codes(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + n + "`"
	}
	return strings.Join(quoted, ", ")
}

// docOfSpec is the documentation of a builtin, in Markdown.
func docOfSpec(s spec.Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```python\n%s\n```\n%s\n", s.Signature(), s.Doc)
	for i, p := range s.Params {
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(docOfParam(p) + "\n")
	}
	if s.Returns != "" {
		fmt.Fprintf(&b, "\nReturns %s.\n", s.Returns)
	}
	fmt.Fprintf(&b, "\n*Phases: %s. Effect: %s.*", s.Phases, s.Effect)
	return b.String()
}

func docOfParam(p spec.Param) string {
	text := fmt.Sprintf("- `%s` (%s", p.Name, p.Type)
	if p.Default != "" {
		text += fmt.Sprintf(", default `%s`", p.Default)
	}
	return text + "): " + p.Doc
}

// param is a parameter of a builtin; ok is false when it has none of this name.
func (c *catalog) param(name, param string) (spec.Param, bool) {
	for _, p := range c.specs[name].Params {
		if p.Name == param {
			return p, true
		}
	}
	return spec.Param{}, false
}

// kindOf is how completions show a builtin.
func (c *catalog) kindOf(name string) int {
	s, ok := c.specs[name]
	switch v := starlark.Universe[name]; {
	case ok && s.Constant():
		return kindConstant
	case ok:
		return kindFunction
	case len(c.members[name]) > 0:
		return kindModule
	case v != nil && v.Type() != "builtin_function_or_method":
		return kindConstant
	}
	return kindFunction
}
