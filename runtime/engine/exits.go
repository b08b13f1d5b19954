package engine

import (
	"encoding/json"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// Modules are taken away in the reverse of the order in which they are installed: first
// those that require others, come after them, or are of a higher weight. For those that
// an earlier process has left, what they had declared is kept.

// place is what a module declares of its place in the order.
type place struct {
	Requires []string `json:"requires,omitempty"`
	After    []string `json:"after,omitempty"`
	Weight   *int     `json:"weight,omitempty"`
}

func placeOf(d *builtins.ModuleDecl) place { return place{d.Requires, d.After, d.Weight} }

func (p place) put(d *builtins.ModuleDecl) {
	d.Requires, d.After, d.Weight = p.Requires, p.After, p.Weight
}

func (p place) none() bool { return len(p.Requires)+len(p.After) == 0 && p.Weight == nil }

// orderKey holds the places of all modules among what is kept for the global hooks.
const orderKey = "order"

// readOrder reads them. A record that cannot be read gives no order, and stops nothing.
func readOrder(kept map[string][]byte) map[string]place {
	out := map[string]place{}
	if json.Unmarshal(kept[orderKey], &out) != nil {
		return map[string]place{}
	}
	return out
}

// noteOrder looks at the places of all modules that are there, and has them kept when they
// are other ones.
func (e *Engine) noteOrder() {
	places, nodes := map[string]place{}, make([]graph.Node, 0, len(e.modules))
	for _, m := range e.modules {
		p := placeOf(&m.gen.Decl)
		if !p.none() {
			places[m.name] = p
		}
		// A module that is required and gone is no mistake here.
		nodes = append(nodes, graph.Node{Name: m.name, Weight: p.Weight, After: slices.Concat(p.Requires, p.After)})
	}
	e.exits = graph.New(nodes)
	var data []byte
	if len(places) > 0 {
		data, _ = json.Marshal(places) // names and numbers
	}
	e.global.store.Put(orderKey, data)
	e.touch(e.global)
}

// there says whether something of the module is in the cluster that goes with it.
func (m *module) there() bool { return m.pass.Installed() || len(m.sets) > 0 || m.store.Has(upKey) }

// goesFirst names a module that has to be gone before this one is taken away, or "".
func (e *Engine) goesFirst(m *module) string {
	return e.exits.GoesBefore(m.name, func(name string) bool {
		switch other := e.modules[name]; {
		case other == nil || !other.there():
			return false
		case other.removed: // now or later
			return verdicts.Decide(e.facts(other)).State != status.ModulePaused
		default:
			return verdicts.Decide(e.facts(other)).Do == verdicts.Uninstall
		}
	})
}

// wait has a module that would be taken away wait for those that go before it.
func (e *Engine) wait(m *module) {
	if m.verdict.Do != verdicts.Uninstall || m.leaving || m.pass.Uninstalling() {
		return
	}
	if name := e.goesFirst(m); name != "" {
		m.verdict = m.verdict.Behind(name)
	}
}
