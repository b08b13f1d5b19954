package generation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// checkSecrets refuses watches of Secrets that no grant of the module covers: of all kinds,
// what is read of this one must be stated where a reviewer looks for it.
func (m *Module) checkSecrets() {
	for _, h := range m.Hooks {
		for i := range h.Bindings {
			w := h.Bindings[i].Watch
			if h.Controller != nil && w.Read == "" && h.Bindings[i].Name != h.ForEach {
				continue // desired does not see what its children hold
			}
			if w == nil || w.APIVersion != "v1" || w.Kind != "Secret" || m.maySee(w) {
				continue
			}
			file := "module.star"
			if m.Global {
				file = "global/module.star"
			}
			m.join(fmt.Errorf("%s: hook %s may not watch Secrets %s; add to the grants of %s: %s", w.Pos, h.HookDecl.ID, places(w), file, grantLine(m, w)))
		}
	}
}

// maySee says whether the grants cover all that a watch shows.
func (m *Module) maySee(w *builtins.WatchBinding) bool {
	namespaces := w.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{"*"}
	}
	names := w.Names
	if len(names) == 0 {
		names = []string{""} // all
	}
	for _, namespace := range namespaces {
		for _, name := range names {
			for _, verb := range []string{"list", "watch"} {
				if !slices.ContainsFunc(m.Decl.Grants, func(g builtins.Grant) bool { return m.shows(g, w, verb, namespace, name) }) {
					return false
				}
			}
		}
	}
	return true
}

// shows says whether a grant covers a verb on the Secrets of a watch with this name.
func (m *Module) shows(g builtins.Grant, w *builtins.WatchBinding, verb, namespace, name string) bool {
	in := slices.Contains(g.Namespaces, "*") || slices.Contains(g.Namespaces, namespace) ||
		g.Namespaces == nil && m.Decl.Namespace != "" && namespace == m.Decl.Namespace
	return g.APIVersion == "v1" && g.Kind == "Secret" && !g.Owned && in &&
		(g.Names == nil || slices.Contains(g.Names, name)) && (g.Labels == "" || g.Labels == w.Labels) &&
		(slices.Contains(g.Verbs, verb) || slices.Contains(g.Verbs, "*"))
}

func places(w *builtins.WatchBinding) string {
	if len(w.Namespaces) == 0 {
		return "in all namespaces"
	}
	return "in " + strings.Join(w.Namespaces, ", ")
}

// grantLine is the line that would do.
func grantLine(m *Module, w *builtins.WatchBinding) string {
	line := `grant("v1", "Secret", verbs = ["get", "list", "watch"]`
	switch {
	case len(w.Namespaces) == 0:
		line += `, namespaces = ["*"]`
	case len(w.Namespaces) != 1 || w.Namespaces[0] != m.Decl.Namespace:
		line += ", namespaces = " + list(w.Namespaces)
	}
	if len(w.Names) > 0 {
		line += ", names = " + list(w.Names)
	}
	return line + ")"
}

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
