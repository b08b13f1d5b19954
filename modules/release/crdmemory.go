package release

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// crdMemory holds what this process has applied, so that a steady state writes nothing: whose it is → name of the
// definition. It is of a module's crds/, or of those of its chart, see ofChart.
type crdMemory struct {
	mu      sync.Mutex
	applied map[string]map[string]appliedCRD
	names   map[string]map[string]bool // which there are, of those who were asked since the start
	// serving lets one caller at a time wait for new kinds: one look at discovery mostly serves all of them.
	serving sync.Mutex
}

// appliedCRD is a definition of a file, and what the API server made of it: another uid
// or generation means that somebody has removed or changed it.
type appliedCRD struct {
	sum        [sha256.Size]byte
	uid        types.UID
	generation int64
	// left is the definition where it is left to somebody else, see [Manager.staying], and nil
	// where it is applied; leftTo is whose is there.
	left   *crd
	leftTo string
}

// begin forgets all. It is asked at the same time: people are shown what was left.
func (c *crdMemory) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied, c.names = map[string]map[string]appliedCRD{}, map[string]map[string]bool{}
}

// of returns what was applied.
func (c *crdMemory) of(module, name string) (appliedCRD, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.applied[module][name]
	return a, ok
}

func (c *crdMemory) set(module, name string, a appliedCRD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied[module] == nil {
		c.applied[module] = map[string]appliedCRD{}
	}
	c.applied[module][name] = a
}

// has says whether somebody has a definition of this name, and whether that is known: they were asked since the start.
func (c *crdMemory) has(whose, name string) (has, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, known := c.names[whose]
	return names[name], known
}

// defines says whether anybody who was asked since the start has a definition of this name.
func (c *crdMemory) defines(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, names := range c.names {
		if names[name] {
			return true
		}
	}
	return false
}

// heldBy is the first by name of the other modules whose definition of this name is there, with its digest.
func (c *crdMemory) heldBy(name, than string) (module, sum string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for whose, all := range c.applied {
		if a, has := all[name]; has && a.left == nil && moduleOf(whose) != than && (module == "" || moduleOf(whose) < module) {
			module, sum = moduleOf(whose), sumText(a.sum)
		}
	}
	return module, sum
}

// leftTo lists the definitions of a module in whose place others are there.
func (c *crdMemory) leftTo(module string) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, whose := range []string{module, ofChart(module)} {
		for _, name := range slices.Sorted(maps.Keys(c.applied[whose])) {
			if a := c.applied[whose][name]; a.left != nil {
				out = append(out, leftText(name, a.leftTo))
			}
		}
	}
	return out
}

func leftText(name, to string) string {
	return fmt.Sprintf("CustomResourceDefinition %s is there, differs, and is that of %s, which stays: leave out one of the two", name, to)
}

// keep notes which definitions somebody has, as soon as that is known, and drops all others.
func (c *crdMemory) keep(whose string, names map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[whose] = names
	maps.DeleteFunc(c.applied[whose], func(name string, _ appliedCRD) bool { return !names[name] })
}

// again forgets all definitions of somebody, so the next look reads them.
func (c *crdMemory) again(whose string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.applied, whose)
}

// yielded are definitions that were left to somebody who has them no more, each with whose it is.
func (c *crdMemory) yielded() map[string]*crd {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, first := map[string]bool{}, map[string]string{}
	for whose, all := range c.applied {
		for name, a := range all {
			switch {
			case a.left == nil:
				held[name] = true
			case first[name] == "" || whose < first[name]:
				first[name] = whose
			}
		}
	}
	out := map[string]*crd{}
	for name, whose := range first {
		if !held[name] {
			out[whose+" "+name] = c.applied[whose][name].left
		}
	}
	return out
}

// forget notes that a module has no definitions any more. Nothing is kept of modules that are not there.
func (c *crdMemory) forget(module string, there func(module string) bool) {
	c.keep(module, nil)
	c.keep(ofChart(module), nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.names, func(whose string, _ map[string]bool) bool { return !there(moduleOf(whose)) })
}
