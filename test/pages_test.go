package test

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/examples/recipes"
	"github.com/starling-operator/starling/runtime/message"
)

// writeCtx writes the tables of docs/ctx.md: the functions that Starling calls, and all fields of ctx.
func writeCtx(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\n## Functions that Starling calls\n\n| given as | called with | when | returns |\n|---|---|---|---|\n")
	for _, c := range docs.Callbacks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, cell(strings.Join(c.Args, ", ")), cell(c.Doc), cell(c.Answer))
	}
	table := func(title string, shown func(docs.CtxField) bool) {
		b.WriteString("\n## " + title + "\n\n| field | type | | example |\n|---|---|---|---|\n")
		for _, f := range docs.CtxFields() {
			if shown(f) {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Path, cell(f.Type), cell(f.Doc), codeOf(f.Example))
			}
		}
	}
	hooks := func(f docs.CtxField) bool { return docs.CallbackOf(f.In[0]).Hook() }
	request := func(f docs.CtxField) bool { return strings.HasPrefix(f.Path, "ctx.request.") }
	of := func(callback string) func(docs.CtxField) bool {
		return func(f docs.CtxField) bool { return hooks(f) && request(f) && slices.Contains(f.In, callback) }
	}
	table("Of each hook", func(f docs.CtxField) bool { return hooks(f) && !request(f) })
	table("`ctx.request` of `k8s.validate` and `k8s.mutate`", of("k8s.validate"))
	table("`ctx.request` of `http.receive`", of("http.receive"))
	table("Of the functions of a controller", func(f docs.CtxField) bool { return !hooks(f) })
	_, err := io.WriteString(w, b.String())
	return err
}

// cell keeps a text from ending a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// codeOf is an example as a cell of a table.
func codeOf(example string) string {
	if example == "" {
		return ""
	}
	return "`" + cell(example) + "`"
}

// writeRecipes writes all recipes as Markdown, with a list of them at the head.
func writeRecipes(w io.Writer) error {
	var list, body strings.Builder
	for _, g := range recipes.Groups {
		fmt.Fprintf(&list, "\n%s:\n\n", g.Title)
		fmt.Fprintf(&body, "\n## %s\n", g.Title)
		for _, name := range g.Names {
			r, err := recipes.Read(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&list, "- [%s](#%s)\n", r.Title, linkOf(r.Title))
			fmt.Fprintf(&body, "\n### %s\n\n%s\n\n%s\n\n", r.Title, message.PageParagraph("**Problem.** "+upper(r.Problem)), message.PageParagraph("**Solution.** "+upper(r.Solution)))
			fmt.Fprintf(&body, "[Folder](../examples/recipes/%s), `starling new recipe %s`\n\n```python\n# module.star\n%s```\n", name, name, r.Module)
			for _, hook := range r.Hooks {
				fmt.Fprintf(&body, "\n```python\n# %s\n%s```\n", hook.Path, hook.Text)
			}
		}
	}
	_, err := fmt.Fprintf(w, `# Recipes

Made from `+"`examples/recipes/`"+` by `+"`go test ./test -run Reference -update`"+`; do not edit it.

A problem that comes again and again, and a module that solves it, each with a test. `+"`starling new recipe NAME`"+` copies
one into your tree, with its test: change the names in it, and run the test again.
%s%s`, list.String(), body.String())
	return err
}

// upper begins a sentence.
func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// linkOf is the name of a heading in links.
func linkOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, title)
}
