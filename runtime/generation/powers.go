package generation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// checkPowers refuses hooks with a power that module.star does not show: to change objects as somebody writes them, to
// convert those of a definition, and to hold up their deletion. Kinds that the module itself defines need no line.
func (g *Generation) checkPowers() {
	for m, h := range g.Hooks() {
		if h.Session || h.Free {
			continue
		}
		for _, p := range h.Powers() {
			if !p.Granted(m.Decl.Grants) && !g.owns(m, &p) {
				m.join(fmt.Errorf("%s: hook %s %s, and module.star does not show it; add to module(grants = […]): %s", p.Pos, h.HookDecl.ID, p.Does, p.Grant()))
			}
		}
	}
}

// owns says whether the definition of the kind that the power is about is that of the module: of two modules with one
// that of the first is applied. A file for a group of Kubernetes itself defines nothing.
func (g *Generation) owns(m *Module, p *builtins.Power) bool {
	if group := p.Group(); p.Verb != builtins.VerbConvert && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")) || !m.defines(p) {
		return false
	}
	all := g.All()
	return !slices.ContainsFunc(all[:slices.Index(all, m)], func(before *Module) bool { return before.defines(p) })
}

// defines says whether the module has a definition of the kind that the power is about.
func (m *Module) defines(p *builtins.Power) bool {
	if m.Tree == nil {
		return false
	}
	group := p.Group()
	if p.Verb == builtins.VerbConvert {
		_, group, _ = strings.Cut(p.Name, ".")
	}
	for _, f := range m.Tree.CRDs {
		if !bytes.Contains(f.Data, []byte(group)) {
			continue
		}
		for _, d := range Definitions(f.Data) {
			names := d.Spec.Names
			if p.Verb == builtins.VerbConvert && p.Name == names.Plural+"."+d.Spec.Group ||
				p.Verb != builtins.VerbConvert && d.Spec.Group == p.Group() && (p.Kind == names.Kind || p.Plural != "" && p.Plural == names.Plural) {
				return true
			}
		}
	}
	return false
}
