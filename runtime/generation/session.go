package generation

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/builtins"
)

// WithSession returns this generation with one more hook, which stands for what
// somebody types: nothing triggers it, and it may be called whatever has become of its
// module. Module is "global" for a hook among the global ones; free says that grants do
// not bind it. The module must be there, the global hooks need not.
func (g *Generation) WithSession(module string, decl *builtins.HookDecl, free bool) *Generation {
	out := *g
	out.Modules, out.hooks = maps.Clone(g.Modules), maps.Clone(g.hooks)
	of := g.Modules[module]
	if module == "global" {
		of = g.Global
		if of == nil {
			of = &Module{Name: module, Key: module, Global: true}
		}
	}
	m := *of
	h := &Hook{HookDecl: decl, Module: m.Name, ID: m.Name + "/" + decl.ID, Session: true, Free: free}
	m.Hooks = append(slices.Clone(m.Hooks), h)
	out.hooks[h.ID] = h
	if m.Global {
		out.Global = &m
	} else {
		out.Modules[module] = &m
	}
	return &out
}
