// Package recipes holds small modules, one for each problem that comes again and again:
// people read them in docs/recipes.md, and `starling new recipe` copies them.
package recipes

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// FS holds a folder for each recipe, which is a module.
//
//go:embed */*
var FS embed.FS

// groups are the recipes in the order in which people read them.
var groups = []struct {
	title string
	names []string
}{
	{"Objects of the cluster", []string{"copy-a-secret", "one-object-per-namespace", "label-nodes", "heal-what-a-hook-made", "react-to-a-configmap", "wait-for-a-crd"}},
	{"Values and charts", []string{"count-into-values", "value-from-an-http-api", "never-parse-in-a-filter", "feature-by-cluster-version"}},
	{"Secrets and certificates", []string{"password-made-once", "rotate-a-certificate"}},
	{"Requests to the API server", []string{"forbid-latest", "validate-with-snapshot", "default-with-a-mutating-hook"}},
	{"Times, servers and alerts", []string{"schedule-with-a-time-zone", "act-when-a-url-is-down", "metric-when-a-hook-fails"}},
	{"The end of a module", []string{"clean-up-at-switch-off", "drain-before-removal"}},
	{"Code", []string{"share-code"}},
}

// Recipe is what a recipe says of itself at the head of its module.star.
type Recipe struct {
	Name, Title, Problem, Solution string
	// Module is module.star without that head.
	Module string
	// Hooks are its files with hooks, and those that they load, by their paths in the module.
	Hooks []File
}

// File is a file of a recipe.
type File struct{ Path, Text string }

// Names are the names of all recipes, sorted.
func Names() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.names...)
	}
	slices.Sort(names)
	return names
}

// Read returns a recipe. One without a title, a problem and a solution is an error.
func Read(name string) (Recipe, error) {
	text, err := fs.ReadFile(FS, path.Join(name, "module.star"))
	if err != nil {
		return Recipe{}, fmt.Errorf("recipe %s: it has no module.star", name)
	}
	head, code, _ := strings.Cut(string(text), "\n\n")
	var lines []string
	for line := range strings.Lines(head) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	parts := strings.Split(strings.Join(lines, "\n"), "\n\n")
	r := Recipe{Name: name, Module: code}
	for i, part := range parts {
		part = strings.Join(strings.Fields(part), " ")
		problem, isProblem := strings.CutPrefix(part, "Problem: ")
		solution, isSolution := strings.CutPrefix(part, "Solution: ")
		switch {
		case i == 0:
			r.Title = part
		case isProblem:
			r.Problem = problem
		case isSolution:
			r.Solution = solution
		}
	}
	if len(parts) != 3 || r.Title == "" || r.Problem == "" || r.Solution == "" {
		return r, fmt.Errorf("recipe %s: module.star begins with a title, a problem and a solution, as comments with an empty one between them", name)
	}
	err = fs.WalkDir(FS, path.Join(name, "hooks"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, "_test.star") {
			return err
		}
		text, err := fs.ReadFile(FS, p)
		r.Hooks = append(r.Hooks, File{strings.TrimPrefix(p, name+"/"), string(text)})
		return err
	})
	return r, err
}

// WriteReference writes all recipes as Markdown, with a list of them at the head.
func WriteReference(w io.Writer) error {
	var list, body strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&list, "\n%s:\n\n", g.title)
		fmt.Fprintf(&body, "\n## %s\n", g.title)
		for _, name := range g.names {
			r, err := Read(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&list, "- [%s](#%s)\n", r.Title, anchor(r.Title))
			fmt.Fprintf(&body, "\n### %s\n\n%s\n\n%s\n\n", r.Title, message.PageParagraph("**Problem.** "+upper(r.Problem)), message.PageParagraph("**Solution.** "+upper(r.Solution)))
			fmt.Fprintf(&body, "[Folder](../examples/recipes/%s), `starling new recipe %s`\n\n```python\n# module.star\n%s```\n", name, name, r.Module)
			for _, hook := range r.Hooks {
				fmt.Fprintf(&body, "\n```python\n# %s\n%s```\n", hook.Path, hook.Text)
			}
		}
	}
	_, err := fmt.Fprintf(w, `# Recipes

Made from `+"`examples/recipes/`"+` by `+"`go test . -run Reference -update`"+`; do not edit it.

A problem that comes again and again, and a module that solves it, each with a test. `+"`starling new recipe NAME`"+` copies
one into your tree, with its test: change the names in it, and run the test again.
%s%s`, list.String(), body.String())
	return err
}

// upper begins a sentence.
func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// anchor is the name of a heading in links.
func anchor(title string) string {
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
