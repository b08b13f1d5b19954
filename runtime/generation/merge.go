package generation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/values"
)

// Merge returns this generation with some modules as the one before has them: their code, and
// what the tree's values say of them. Held says why, by name, "global" for the global hooks. New
// modules that cannot be used have nothing but an error: unfit says which.
func (g *Generation) Merge(before *Generation, held, unfit map[string]string) *Generation {
	if len(held)+len(unfit) == 0 {
		return g
	}
	out := *g
	out.Held, out.Unfit, out.origins = held, unfit, map[string]*Generation{}
	out.Modules, out.found = maps.Clone(g.Modules), maps.Clone(g.found)
	tree := *g.Tree
	tree.Values = maps.Clone(tree.Values)
	if tree.Values == nil {
		tree.Values = map[string]any{}
	}
	out.Tree = &tree
	alone := before
	if len(before.origins) > 0 { // else each generation would hold on to earlier ones
		one := *before
		one.origins = nil
		alone = &one
	}
	for name := range held {
		if out.origins[name] = before.origins[name]; out.origins[name] == nil {
			out.origins[name] = alone
		}
		if out.found != nil {
			out.found[name] = before.found[name]
		}
		if name == values.GlobalKey {
			out.Global = before.Global
			take(tree.Values, before.Tree.Values, name)
			continue
		}
		m := before.Modules[name]
		out.Modules[name] = m
		take(tree.Values, before.Tree.Values, m.Key)
		take(tree.Values, before.Tree.Values, values.EnabledKey(m.Key))
	}
	for name, why := range unfit {
		one := *out.Modules[name]
		if one.Err == nil {
			one.Err = errors.New(why)
		}
		one.Hooks, one.Enabled, one.Readiness, one.ChartValues = nil, nil, nil, nil
		one.SettingsCheck, one.SettingsDigest = nil, ""
		one.Decl.Requires, one.Decl.After = nil, nil
		out.Modules[name] = &one
	}
	out.Names = slices.Sorted(maps.Keys(out.Modules))
	out.hooks = map[string]*Hook{}
	for _, h := range out.Hooks() {
		out.hooks[h.ID] = h
	}
	return &out
}

// take puts the value of a key into the place of another one.
func take(into, from map[string]any, key string) {
	delete(into, key)
	if v, there := from[key]; there {
		into[key] = v
	}
}

// Of returns the generation that the code of a module was compiled in last: this one, unless
// the module is held. It has the files of that code.
func (g *Generation) Of(module string) *Generation {
	if from := g.origins[module]; from != nil {
		return from
	}
	return g
}

// HeldReason says which modules are not as in the tree, and why; "" without any.
func (g *Generation) HeldReason() string {
	const shown = 3
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g.Held)) {
		if name == values.GlobalKey {
			parts = append(parts, "the global hooks: "+g.Held[name])
		} else {
			parts = append(parts, "module "+name+": "+g.Held[name])
		}
	}
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Conflicts says of modules that claim the same thing, by name, what it is, and who claims it
// too. Those of one tree have an Err; in a merged generation others may.
func (g *Generation) Conflicts() map[string]string {
	out, owners := map[string]string{}, map[string]string{}
	for _, m := range g.All() {
		for _, claim := range m.claims() {
			switch other := owners[claim]; other {
			case "":
				owners[claim] = m.Name
			case m.Name:
			default:
				out[m.Name] = fmt.Sprintf("module %s has %s too", other, claim)
				out[other] = fmt.Sprintf("module %s has %s too", m.Name, claim)
			}
		}
	}
	return out
}

// claims are what no two modules may have.
func (m *Module) claims() []string {
	claims := []string{"the values key " + m.Key, "the values key " + values.EnabledKey(m.Key)}
	for _, key := range values.PolicyKeys(m.Key) {
		claims = append(claims, "the values key "+key)
	}
	if m.Tree != nil && m.Tree.Chart != nil {
		claims = append(claims, strings.TrimSpace("the release "+m.Decl.Release+" in namespace "+m.Decl.Namespace))
	}
	for _, h := range m.Hooks {
		for i := range h.Bindings {
			switch b := &h.Bindings[i]; {
			case b.Receive != nil:
				claims = append(claims, "the path "+b.Receive.Path)
			case b.Converts():
				claims = append(claims, "the conversion of "+b.Convert.CRD)
			}
		}
	}
	return claims
}
