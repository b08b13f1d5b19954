package generation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
)

// joinConversions has one of several hooks that convert one CustomResourceDefinition answer with the functions
// of all, for the API server asks one place: the one with snapshots, or else the first.
func (m *Module) joinConversions() {
	first, by := map[string]*builtins.ConvertBinding{}, map[string]*Hook{}
	answers := func(h *Hook, i int) {
		joined := *h.Bindings[i].Convert
		joined.Steps, joined.Alone = maps.Clone(joined.Steps), map[[2]string]bool{}
		first[joined.CRD], by[joined.CRD], h.Bindings[i].Convert = &joined, h, &joined
	}
	for _, h := range m.Hooks { // it alone has the snapshots
		for i := range h.Bindings {
			if b := h.Bindings[i].Convert; b != nil && len(b.Snapshots) > 0 && first[b.CRD] == nil {
				answers(h, i)
			}
		}
	}
	for _, h := range m.Hooks {
		for i := range h.Bindings {
			b := h.Bindings[i].Convert
			if b == nil || b == first[b.CRD] {
				continue
			}
			one := first[b.CRD]
			switch {
			case one == nil:
				answers(h, i)
				continue
			case len(b.Snapshots) > 0:
				m.join(fmt.Errorf("%s: hook %s: %s is converted by hook %s (%s), too, and both have snapshots=; put the functions that need them into one k8s.convert",
					b.Pos, h.HookDecl.ID, b.CRD, by[b.CRD].HookDecl.ID, one.Pos))
				continue
			}
			for _, step := range slices.SortedFunc(maps.Keys(b.Steps), func(x, y [2]string) int { return slices.Compare(x[:], y[:]) }) {
				if one.Steps[step] != nil {
					m.join(fmt.Errorf("%s: hook %s: (%q, %q) of %s is converted by hook %s (%s) already", b.Pos, h.HookDecl.ID, step[0], step[1], b.CRD, by[b.CRD].HookDecl.ID, one.Pos))
					continue
				}
				one.Steps[step], one.Alone[step] = b.Steps[step], true
			}
			other := *b
			other.Joined = true
			h.Bindings[i].Convert = &other
		}
	}
}

// checkConversions refuses modules that would convert the same
// CustomResourceDefinition, and says which versions no function leads to.
func (g *Generation) checkConversions() {
	first := map[string]*Hook{}
	for m, h := range g.Hooks() {
		for _, b := range h.Bindings {
			if !b.Converts() {
				continue
			}
			if other := first[b.Convert.CRD]; other != nil {
				m.join(fmt.Errorf("%s: hook %s: %s is converted by hook %s (%s) already; hooks of one module convert a definition",
					b.Convert.Pos, h.HookDecl.ID, b.Convert.CRD, other.ID, other.Pos))
				continue
			}
			first[b.Convert.CRD] = h
			var missing []string
			for _, pair := range b.Convert.Unreachable() {
				missing = append(missing, pair[0]+" to "+pair[1])
			}
			if len(missing) > 0 {
				g.Problems = append(g.Problems, tree.Problem{Path: b.Convert.Pos, Module: m.Name, Msg: fmt.Sprintf(
					"hook %s: no function of k8s.convert leads from %s; the API server asks for that when both versions of %s are served or stored",
					h.HookDecl.ID, strings.Join(missing, ", or from "), b.Convert.CRD)})
			}
		}
	}
}

// Converter is the hook that answers for the CustomResourceDefinition of this name, and its binding; nil: none does.
func (g *Generation) Converter(crd string) (h *Hook, binding string) {
	for _, h := range g.Hooks() {
		for _, b := range h.Bindings {
			if b.Converts() && b.Convert.CRD == crd {
				return h, b.Name
			}
		}
	}
	return nil, ""
}

// Converts says whether a hook of the tree converts the CustomResourceDefinition of
// this name.
func (g *Generation) Converts(crd string) bool { h, _ := g.Converter(crd); return h != nil }
