package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// Help tells about a builtin ("k8s.apply"), a family of them ("k8s"), ctx or a field of it ("ctx.events"), or a
// function that Starling calls ("enabled", "controller(desired)").
func Help(name string) (text string, found bool) {
	var parts []string
	if ctx, is := ctxHelp(name); is {
		parts = append(parts, ctx)
	}
	var members [][2]string
	for _, s := range Documented() {
		if s.Name == name {
			parts = append(parts, help(&s))
		} else if member, ok := strings.CutPrefix(s.Name, name+"."); ok {
			members = append(members, [2]string{member, FirstSentence(s.Doc)})
		}
	}
	if len(members) > 0 {
		parts = append(parts, name+" has\n\n"+message.Rows(members))
	}
	if c := CallbackOf(name); c != nil && len(parts) == 0 {
		parts = append(parts, c.help())
	}
	return strings.Join(parts, "\n\n"), len(parts) > 0
}

// HelpNames are all names that [Help] knows, but for those of families.
func HelpNames() []string {
	var names []string
	for _, s := range builtins.Table() {
		names = append(names, s.Name)
	}
	names = append(names, "ctx")
	for _, f := range CtxFields() {
		names = append(names, f.Path)
	}
	for _, c := range Callbacks() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FirstSentence is what a list shows of a doc.
func FirstSentence(doc string) string {
	if i := strings.Index(doc, ". "); i >= 0 {
		return doc[:i+1]
	}
	return doc
}

// help is the whole declaration of a builtin.
func help(s *spec.Spec) string {
	text := s.Signature() + "\n\n" + message.Paragraph(s.Doc)
	if s.Returns != "" {
		text += "\n" + message.Paragraph("Returns "+s.Returns+".")
	}
	text += fmt.Sprintf("\nPhases: %s. Effect: %s.", s.Phases, s.Effect)
	var rows [][2]string
	for _, p := range s.Params {
		rows = append(rows, [2]string{p.Name, fmt.Sprintf("%s: %s", p.Type, p.Doc)})
	}
	if len(rows) > 0 {
		text += "\n\n" + message.Rows(rows)
	}
	if s.Example != "" {
		text += "\n\nExample:\n\n    " + strings.ReplaceAll(strings.TrimSuffix(s.Example, "\n"), "\n", "\n    ")
	}
	return text
}

func (c *Callback) help() string {
	text := fmt.Sprintf("%s: a function that Starling calls; it is called with (%s)\n\n%s", c.Name, strings.Join(c.Args, ", "), c.Doc)
	if c.Answer != "" {
		text += " It returns " + c.Answer + "."
	}
	return text + "\nPhase: " + c.Phase.String() + "."
}

// Dedent takes from the lines of a doc string what all but the first are indented by.
func Dedent(doc string) string {
	lines := strings.Split(doc, "\n")
	common := -1
	for _, line := range lines[1:] {
		if rest := strings.TrimLeft(line, " \t"); rest != "" && (common < 0 || len(line)-len(rest) < common) {
			common = len(line) - len(rest)
		}
	}
	for i, line := range lines[1:] {
		lines[i+1] = line[min(max(common, 0), len(line)):]
	}
	return strings.Join(lines, "\n")
}
