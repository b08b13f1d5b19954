package verdicts

import (
	"encoding/json"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/graph"
)

// Modules are taken away in the reverse of the order in which they are installed: first
// those that require others, come after them, or are of a higher weight. For those that
// an earlier process has left, what they had declared is kept.

// Place is what a module declares of its place in the order.
type Place struct {
	Requires []string `json:"requires,omitempty"`
	After    []string `json:"after,omitempty"`
	Weight   *int     `json:"weight,omitempty"`
}

// PlaceOf is the place that a module declares.
func PlaceOf(d *builtins.ModuleDecl) Place { return Place{d.Requires, d.After, d.Weight} }

// Put has a declaration name the place.
func (p Place) Put(d *builtins.ModuleDecl) {
	d.Requires, d.After, d.Weight = p.Requires, p.After, p.Weight
}

func (p Place) none() bool { return len(p.Requires)+len(p.After) == 0 && p.Weight == nil }

// Places are those of all modules that are there, by name.
type Places map[string]Place

// ReadPlaces is the reverse of Encode. A record that cannot be read gives no order, and stops
// nothing.
func ReadPlaces(data []byte) Places {
	out := Places{}
	if json.Unmarshal(data, &out) != nil {
		return Places{}
	}
	return out
}

// Encode is what is kept of the places; nil when no module declares one.
func (p Places) Encode() []byte {
	some := Places{}
	for name, place := range p {
		if !place.none() {
			some[name] = place
		}
	}
	if len(some) == 0 {
		return nil
	}
	data, _ := json.Marshal(some) // names and numbers
	return data
}

// Exits is the order in which modules go, see [graph.Graph.GoesBefore].
func (p Places) Exits() *graph.Graph {
	nodes := make([]graph.Node, 0, len(p))
	for name, place := range p {
		// A module that is required and gone is no mistake here.
		nodes = append(nodes, graph.Node{Name: name, Weight: place.Weight, After: slices.AppendSeq(slices.Clone(place.After), builtins.Required(place.Requires))})
	}
	return graph.New(nodes)
}
