package generation

import (
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/values"
)

// Whole is a generation with what follows from all of its modules together.
type Whole struct {
	*Generation
	// Values are what the tree's values.yaml says, Unknown what is wrong with that.
	Values  values.Config
	Unknown []values.Problem
	// Graph is the order of the modules.
	Graph *graph.Graph
	// Switches are the `<camelName>Enabled` of all modules, sorted.
	Switches []string
}

// Whole looks at all modules together.
func (g *Generation) Whole() *Whole {
	w := &Whole{Generation: g, Graph: graph.New(g.Nodes()), Switches: g.Switches()}
	w.Values, w.Unknown = values.ParseTree(g.Tree.Values, g.Tree.ValuesFile, g.Known())
	return w
}

// Order names all modules, in order; those with a problem come last.
func (w *Whole) Order() []string {
	out := w.Graph.Order()
	for _, name := range w.Names {
		if w.Graph.Problems[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// Section is what the tree's values.yaml says of a module.
func (w *Whole) Section(m *Module) map[string]any {
	if m.Global {
		return w.Values.Global
	}
	return w.Values.Sections[m.Name]
}
