package generation

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
)

// checkConversions refuses two bindings that would convert the same
// CustomResourceDefinition, and says which versions no function leads to.
func (g *Generation) checkConversions() {
	first := map[string]*Hook{}
	for _, m := range g.All() {
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				if b.Convert == nil {
					continue
				}
				if other := first[b.Convert.CRD]; other != nil {
					m.join(fmt.Errorf("%s: hook %s: %s is converted by hook %s (%s) already; put all functions into one k8s.convert",
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
}

// Converts says whether a hook of the tree converts the CustomResourceDefinition of
// this name.
func (g *Generation) Converts(crd string) bool {
	for _, m := range g.All() {
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				if b.Convert != nil && b.Convert.CRD == crd {
					return true
				}
			}
		}
	}
	return false
}
