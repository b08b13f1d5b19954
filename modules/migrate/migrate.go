// Package migrate brings trees of addon-operator, and hooks of shell-operator, into a module
// tree of Starling: bindings, values, schemas, CRDs and charts are translated; bodies of
// hooks become TODO comments. Nothing of the old tree is run. A report says what has become
// of each part.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

// Options says how hooks are translated.
type Options struct {
	// Lambdas turns jq filters into Starlark where both mean the same; else they stay jq.
	Lambdas bool

	custom []customKind // of the old tree
}

// Result is a new tree, not yet written.
type Result struct {
	// Files by their paths in the new tree, in order, the report among them.
	Files []tree.File
	// Notes say what has become of the old tree, in order of its paths.
	Notes []Note

	modules []*module // the global hooks among them
	root    []tree.File
	besides []Note // those that are no module's
}

// Count returns how many notes have a fate.
func (r *Result) Count(fate Fate) (n int) {
	for _, note := range r.Notes {
		if note.Fate == fate {
			n++
		}
	}
	return n
}

// AddonOperator brings a folder of modules over, and, where globalHooks is not nil, the
// folder of global hooks. The new tree loads. It fails when there is no module in the folder,
// or too much.
func AddonOperator(ctx context.Context, modules, globalHooks fs.FS, o Options) (*Result, error) {
	files, left, err := read(modules, "")
	if err != nil {
		return nil, fmt.Errorf("cannot read the modules: %w", message.WithoutPath(err))
	}
	o.custom = customKinds(files)
	r := &Result{besides: left}
	unwritten := false // global hooks, whose values the charts may need
	if globalHooks != nil {
		if unwritten, err = r.global(globalHooks, o); err != nil {
			return nil, err
		}
	}
	folders := map[string]*module{}
	var beside []oldFile
	for _, f := range files {
		dir, rel, below := strings.Cut(f.path, "/")
		if !below {
			beside = append(beside, f)
			continue
		}
		if folders[dir] == nil {
			folders[dir] = newModule(o, dir)
		}
		folders[dir].files[rel] = f
	}
	keys := map[string]bool{}
	names := map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		m := folders[dir]
		name, err := moduleName(dir)
		switch {
		case !m.isModule():
			err = errors.New("the folder is no module: it holds neither a chart nor hooks nor enabled")
		case err == nil && names[name] != "":
			err = fmt.Errorf("the folder %s has the name %s, too: rename one", names[name], name)
		}
		if err != nil {
			r.besides = append(r.besides, Note{dir, Left, err.Error()})
			continue
		}
		names[name], m.name, m.modules, keys[tree.Key(name)] = dir, name, names, true
		if unwritten {
			m.lacks("the global hooks")
		}
		for _, n := range left {
			if strings.HasPrefix(n.Path, dir+"/") {
				m.lacks(n.Path)
			}
		}
		r.modules = append(r.modules, m)
	}
	lists := map[string]bool{}
	for _, f := range beside {
		if f.path == "values.yaml" {
			lists = listSections(f.data)
		}
	}
	for _, m := range r.modules {
		if m.name != "global" {
			m.list = lists[tree.Key(m.name)]
			m.translate() // it may require any other one
		}
	}
	if len(names) == 0 && !slices.ContainsFunc(r.modules, func(m *module) bool { return m.hooks > 0 }) {
		if slices.ContainsFunc(beside, func(f oldFile) bool { return f.path == "Chart.yaml" }) {
			return nil, errors.New("the folder is a module itself: name the one above it, which holds folders with modules")
		}
		return nil, fmt.Errorf("there is no module in the folder: a module is a folder with a chart, hooks or an enabled script%s", first(r.besides))
	}
	for _, f := range beside {
		r.beside(f, keys)
	}
	return r, r.mend(ctx)
}

// ShellOperator brings a folder of hooks over, as one module of this name. The new tree loads.
// It fails when there is no hook in the folder whose bindings can be read.
func ShellOperator(ctx context.Context, hooks fs.FS, name string, o Options) (*Result, error) {
	plain, err := moduleName(name)
	if err != nil {
		return nil, fmt.Errorf("module %q: %w", name, err)
	}
	files, left, err := read(hooks, "")
	if err != nil {
		return nil, fmt.Errorf("cannot read the hooks: %w", message.WithoutPath(err))
	}
	on := true
	o.custom = customKinds(files)
	m := newModule(o, name)
	m.name, m.enabled = plain, &on
	for _, f := range files {
		m.hook(f.path, f)
	}
	r := &Result{besides: left, modules: []*module{m}}
	if r.compose(); m.hooks == 0 {
		return nil, fmt.Errorf("there is no hook in the folder whose bindings can be read: hooks are executable files that print their config from a text%s", first(r.Notes))
	}
	return r, r.mend(ctx)
}

// first adds the first of notes to an error.
func first(all []Note) string {
	if len(all) == 0 {
		return ""
	}
	return "; " + all[0].String()
}

// moduleName is the name of the module that a folder would be in the new tree.
func moduleName(folder string) (string, error) {
	if folder == "lib" || folder == "testdata" {
		return "", errors.New("no module may be in a folder of this name: rename it")
	}
	_, name, err := tree.ParseFolder(folder)
	return name, err
}

// beside brings a file beside the modules over, whose keys are given.
func (r *Result) beside(f oldFile, keys map[string]bool) {
	n := &notes{path: f.path}
	if f.path != "values.yaml" {
		n.add(Left, "Starling does not use it")
	} else if data := treeValues(n, f.data, keys); data != nil {
		r.root = append(r.root, tree.File{Path: f.path, Data: data})
	}
	r.besides = append(r.besides, n.all...)
}

// global brings the folder of global hooks over. unwritten says that there are any: none of
// them does yet what it did.
func (r *Result) global(hooks fs.FS, o Options) (unwritten bool, err error) {
	files, left, err := read(hooks, "global")
	if err != nil {
		return false, fmt.Errorf("cannot read the global hooks: %w", message.WithoutPath(err))
	}
	r.besides = append(r.besides, left...)
	m := newModule(o, "global")
	m.name = "global"
	for _, f := range files {
		rel := f.path
		f.path = path.Join("global", rel)
		m.files[rel] = f
	}
	for name, data := range schemas(m.files, m.note) {
		m.write("openapi/"+name, m.files["openapi/"+name].path, data)
	}
	for _, f := range files {
		if rel := f.path; !strings.HasPrefix(rel, "openapi/") {
			m.hook(strings.TrimPrefix(rel, "hooks/"), m.files[rel])
		}
	}
	r.modules = append(r.modules, m)
	return m.hooks > 0 || m.missing != "" || len(left) > 0, nil
}

// compose brings files and notes in order, and adds the report.
func (r *Result) compose() {
	r.Files, r.Notes = slices.Clone(r.root), slices.Clone(r.besides)
	for _, m := range r.modules {
		r.Files = append(r.Files, m.out...)
		if text := m.moduleFile(); text != "" {
			r.Files = append(r.Files, tree.File{Path: m.dir + "/module.star", Data: []byte(text)})
		}
		for _, n := range m.all {
			r.Notes = append(r.Notes, n.all...)
		}
	}
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return strings.Compare(a.Path, b.Path) })
	r.Notes = slices.Compact(r.Notes)
	r.Files = append(r.Files, tree.File{Path: ReportFile, Data: report(r.Notes)})
	slices.SortFunc(r.Files, func(a, b tree.File) int { return strings.Compare(a.Path, b.Path) })
}
