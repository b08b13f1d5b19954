package docs

import (
	"fmt"
	"io"
	"strings"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// WriteReference writes the reference of all builtins as Markdown, in groups, those of
// every day first.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Reference of the builtins

Made from the declaration table in ` + "`builtins/`" + ` by ` + "`go test ./test -run Reference -update`" + `; do not edit it.

*Phases* say when a builtin may be called:

- ` + "`load`" + `: while a file runs from top to bottom
- ` + "`filter`" + `: in the filter of a watch, and in ` + "`def chart_values(v)`" + ` and
  ` + "`def settings_check(old, new)`" + ` of a module.star
- ` + "`run`" + `: in a hook
- ` + "`enabled`" + `: in ` + "`def enabled()` and `def readiness()`" + ` of a module.star
- ` + "`review`" + `: in a hook that answers k8s.validate or k8s.mutate
- ` + "`convert`" + `: in a function of k8s.convert
- ` + "`receive`" + `: in a hook that answers http.receive, which may do all that a run may
- ` + "`desired`" + `: in the desired function of a controller
- ` + "`test`" + `: in a function test_x(t)
- any: everywhere

*Effect* is ` + "`none`" + ` (pure, or declares), ` + "`read`" + ` (its result may change) or ` + "`write`" + ` (recorded, and carried out once the
run has succeeded; log lines, and all in a test, at once).
Durations are texts like ` + "`\"30s\"`, `\"5m\"`, `\"1h30m\"`" + `, or seconds.
`)
	b.WriteString("\n" + message.PageParagraph("[ctx.md](ctx.md), or `starling docs ctx`, has all fields of ctx, which hooks and the functions of controllers are called with.") + "\n")
	groups := grouped()
	b.WriteString("\n## Contents\n\n")
	for _, g := range groups {
		var names []string
		for _, s := range g.specs {
			names = append(names, fmt.Sprintf("[%s](#%s)", s.Name, strings.ReplaceAll(s.Name, ".", "")))
		}
		b.WriteString(message.PageParagraph("- **"+g.title+":** "+strings.Join(names, ", ")) + "\n")
	}
	for _, g := range groups {
		b.WriteString("\n## " + g.title + "\n")
		for _, s := range g.specs {
			write(&b, &s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section is a part of the reference.
type section struct {
	title string
	specs []spec.Spec
}

// grouped puts the builtins into the groups of the reference, with their docs.
func grouped() (out []section) {
	byName := map[string]spec.Spec{}
	for _, s := range Documented() {
		byName[s.Name] = s
	}
	for _, p := range pages() {
		s := section{title: p.title}
		for _, t := range p.texts {
			s.specs = append(s.specs, byName[t.name])
		}
		out = append(out, s)
	}
	return out
}

// write writes what the reference says of one builtin.
func write(b *strings.Builder, s *spec.Spec) {
	fmt.Fprintf(b, "\n### `%s`\n\n```text\n%s\n```\n\n%s\n\n", s.Name, s.Signature(), message.PageParagraph(s.Doc))
	about := fmt.Sprintf("Phases: %s. Effect: %s.", s.Phases, s.Effect)
	if s.Returns != "" {
		about += " Returns " + s.Returns + "."
	}
	b.WriteString(message.PageParagraph(about) + "\n")
	if len(s.Params) > 0 {
		b.WriteString("\n| parameter | type | default | |\n|---|---|---|---|\n")
	}
	for _, p := range s.Params {
		fallback := "required"
		switch {
		case p.Default != "":
			fallback = "`" + p.Default + "`"
		case strings.HasPrefix(p.Name, "*"):
			fallback = "none"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, cell(string(p.Type)), cell(fallback), cell(p.Doc))
	}
	if s.Example != "" {
		b.WriteString("\n```text\n" + s.Example + "```\n")
	}
}

// cell keeps a text from ending a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
