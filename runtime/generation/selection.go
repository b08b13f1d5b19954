package generation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// Several instances can share a tree: the selector of each says which modules it has. The others
// are loaded as far as module.star, for their labels, and nothing of them is done.

// NameLabel is the key by which a selector knows the name of a module, beside its labels.
const NameLabel = "name"

// labelsOf are what a selector sees of a module.
func (m *Module) labelsOf() labels.Set {
	all := maps.Clone(m.Decl.Labels)
	if all == nil {
		all = map[string]string{}
	}
	all[NameLabel] = m.Name
	return all
}

// selects says whether the instance has the module. The labels of one that does not load are not
// known: it stays where it was; one that was nowhere yet is had, broken as it is, by every instance
// whose selector its name does not rule out.
func (l *loader) selects(m *Module) bool {
	if l.selector == nil || m.Global {
		return true
	}
	if m.Err == nil {
		return l.selector.Matches(m.labelsOf())
	}
	if had, known := l.had[m.Name]; known {
		return had
	}
	requirements, selectable := l.selector.Requirements()
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == NameLabel && !r.Matches(m.labelsOf())
	})
}

// leaveOut takes the modules out that other instances have.
func (g *Generation) leaveOut() {
	g.Elsewhere = map[string]bool{}
	for name, m := range g.Modules {
		if m.elsewhere {
			g.Elsewhere[name] = true
			delete(g.Modules, name)
		}
	}
	g.Names = slices.DeleteFunc(g.Names, func(name string) bool { return g.Elsewhere[name] })
	g.Problems = slices.DeleteFunc(g.Problems, func(p tree.Problem) bool { return g.Elsewhere[p.Module] })
}

// ElsewhereKeys are the keys by which values and config call the modules that other instances have,
// sorted.
func (g *Generation) ElsewhereKeys() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(g.Elsewhere)) {
		out = append(out, tree.Key(name))
	}
	return out
}

// Known are the modules that values and config may speak about, by name, and then those of other instances.
func (g *Generation) Known() (out []values.KnownModule) {
	for _, name := range g.Names {
		out = append(out, values.KnownModule{Name: name, Key: g.Modules[name].Key})
	}
	for _, key := range g.ElsewhereKeys() {
		out = append(out, values.KnownModule{Key: key, Elsewhere: true})
	}
	return out
}

// Switches are the `<camelName>Enabled` of all modules, sorted. Global hooks run in each instance, so they may
// set those of other instances, too.
func (g *Generation) Switches() (out []string) {
	for _, m := range g.Known() {
		out = append(out, values.EnabledKey(m.Key))
	}
	slices.Sort(out)
	return out
}

// NotHere is said of a module that another instance has.
func (g *Generation) NotHere(name string) string {
	return fmt.Sprintf("module %s is not one of --modules-selector %s, so another instance has it", name, g.Tree.Selector)
}

// checkLists tells of modules that read which modules are on: of those that other instances have
// nobody here knows.
func (g *Generation) checkLists() {
	if !g.Lists || len(g.Elsewhere) == 0 {
		return
	}
	for _, name := range g.Names {
		m := g.Modules[name]
		if keys, _ := m.Reads.Keys(); m.Err == nil && slices.Contains(keys, values.EnabledModules) {
			at := cmp.Or(m.Decl.Pos, m.Tree.Dir)
			g.Problems = append(g.Problems, tree.Problem{Path: at, Module: name,
				Msg: "it reads global." + values.EnabledModules + ", which names the modules of this instance alone: those of --modules-selector " + g.Tree.Selector.String()})
		}
	}
}
