package webhook

import (
	"cmp"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// bound is a binding that takes requests of the API server.
type bound struct {
	hook    *generation.Hook
	binding *builtins.Binding
	labels  map[string]string // of the module
	grants  []builtins.Grant
}

// ref is the configuration object of a binding to reviews.
func (b bound) ref(instance string) effect.Ref {
	return effect.Ref{APIVersion: registration, Kind: kindOf(b.binding), Name: objectName(instance, b.hook, b.binding)}
}

// bindingsOf are all those of a tree, of modules that are off, too.
func bindingsOf(g *generation.Generation) []bound {
	var out []bound
	for _, mod := range g.All() {
		out = append(out, boundOf(mod, mod.Hooks)...)
	}
	return out
}

func boundOf(mod *generation.Module, hooks []*generation.Hook) []bound {
	var out []bound
	for _, h := range hooks {
		for i := range h.Bindings {
			if b := &h.Bindings[i]; b.Admission != nil || b.Converts() {
				out = append(out, bound{h, b, mod.Decl.Labels, mod.Decl.Grants})
			}
		}
	}
	return out
}

// want is what there should be.
type want struct {
	// gen is the tree that says so.
	gen *generation.Generation
	// synced: it is known what is registered.
	synced bool
	// unseen is why it is not known, if a watch has said so.
	unseen error
	// all are the bindings that must be registered now, names the objects that they are registered by, those of
	// hooks that wait, too.
	all   []bound
	names map[effect.Ref]bool
	// modules: Module objects are reviewed.
	modules bool
	// converting: some binding converts, whether its module is on or not.
	converting bool
	// decided says of which modules it is known what they want.
	decided map[string]bool
	// keeps: of what is not wanted, only that goes which is in owns, the names of what the tree may have registered.
	keeps  bool
	owns   map[string]bool
	routes map[string]route
}

// because says of each hook to be registered why it is not, unless err is nil.
func (w want) because(err error) map[string]error {
	out := map[string]error{}
	for _, b := range w.all {
		if err != nil {
			out[b.hook.ID] = err
		}
	}
	return out
}

func (m *Manager) wanted() want {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := want{gen: m.gen.Load(), synced: m.synced[watchValidating] && m.synced[watchMutating], decided: map[string]bool{}, routes: map[string]route{},
		unseen: cmp.Or(m.broken[watchValidating], m.broken[watchMutating]), keeps: m.keeps, owns: map[string]bool{}, names: map[effect.Ref]bool{}}
	for _, b := range bindingsOf(w.gen) {
		w.owns[objectName(m.o.Instance, b.hook, b.binding)] = true
		if b.binding.Convert != nil {
			w.converting = true
			// A conversion depends on nothing but its functions. Objects must be readable while a module is off, too.
			routesOf(b.hook, false, true, w.routes)
		}
	}
	var waits []bound
	for _, mod := range w.gen.All() {
		hooks, served := m.served[mod.Name]
		served = served && !m.inherited[mod.Name]
		w.decided[mod.Name] = mod.Err == nil && (served || len(boundOf(mod, mod.Hooks)) == 0)
		if served {
			w.all, waits = append(w.all, boundOf(mod, hooks)...), append(waits, boundOf(mod, m.waits[mod.Name])...)
		}
		for _, h := range hooks {
			routesOf(h, true, true, w.routes)
		}
	}
	for _, b := range slices.Concat(w.all, waits) {
		if b.binding.Admission != nil {
			w.names[b.ref(m.o.Instance)] = true
		}
	}
	if w.modules = m.o.CheckModule != nil && (len(w.all) > 0 || w.converting || m.o.Always); w.modules {
		w.routes[modulesPath] = route{hook: modulesHook, modules: true}
	}
	return w
}
