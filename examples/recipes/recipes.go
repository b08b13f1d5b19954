// Package recipes holds small modules, one for each problem that comes again and again:
// people read them in docs/recipes.md, and `starling new recipe` copies them.
package recipes

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// FS holds a folder for each recipe, which is a module.
//
//go:embed */*
var FS embed.FS

// Group is what one heading has.
type Group struct {
	Title string
	Names []string
}

// Groups are the recipes in the order in which people read them. Nobody changes them.
var Groups = []Group{
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
	for _, g := range Groups {
		names = append(names, g.Names...)
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
