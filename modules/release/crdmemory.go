package release

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// crdMemory holds the definitions of all who were asked for theirs since the start, so that a steady state writes
// nothing: whose they are → name → what is there. They are of a module's crds/, or of those of its chart, see ofChart.
type crdMemory struct {
	mu    sync.Mutex
	known map[string]map[string]knownCRD
	// serving lets one caller at a time wait for new kinds: one look at discovery mostly serves all of them.
	serving sync.Mutex
}

// knownCRD is a definition of a file, and what the API server made of it: another uid or generation means that
// somebody has removed or changed it. The zero value is one that nobody has looked at.
type knownCRD struct {
	sum        [sha256.Size]byte
	uid        types.UID
	generation int64
	// left is the definition where it is left to somebody else, see [Manager.staying], and nil
	// where it is applied; leftTo is whose is there.
	left   *crd
	leftTo string
}

func (k knownCRD) applied() bool { return k.left == nil && k.sum != [sha256.Size]byte{} }

// begin forgets all. It is asked at the same time: people are shown what was left.
func (c *crdMemory) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = map[string]map[string]knownCRD{}
}

// of returns what is known; false: there is no such definition, as far as anybody was asked.
func (c *crdMemory) of(whose, name string) (knownCRD, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, has := c.known[whose][name]
	return k, has
}

// asked says whether somebody was asked since the start.
func (c *crdMemory) asked(whose string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[whose] != nil
}

func (c *crdMemory) set(whose, name string, k knownCRD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[whose] == nil {
		c.known[whose] = map[string]knownCRD{}
	}
	c.known[whose][name] = k
}

// each calls f for all definitions, in the order of their owners and names.
func (c *crdMemory) each(f func(whose, name string, k knownCRD)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, whose := range slices.Sorted(maps.Keys(c.known)) {
		for _, name := range slices.Sorted(maps.Keys(c.known[whose])) {
			f(whose, name, c.known[whose][name])
		}
	}
}

// defines says whether anybody has a definition of this name.
func (c *crdMemory) defines(name string) (found bool) {
	c.each(func(_, other string, _ knownCRD) { found = found || other == name })
	return found
}

// heldBy is the first of the other modules whose definition of this name is there, with its digest.
func (c *crdMemory) heldBy(name, than string) (module, sum string) {
	c.each(func(whose, other string, k knownCRD) {
		if module == "" && other == name && k.applied() && moduleOf(whose) != than {
			module, sum = moduleOf(whose), sumText(k.sum)
		}
	})
	return module, sum
}

// leftTo lists the definitions of a module in whose place others are there.
func (c *crdMemory) leftTo(module string) (out []string) {
	c.each(func(whose, name string, k knownCRD) {
		if moduleOf(whose) == module && k.left != nil {
			out = append(out, leftText(name, k.leftTo))
		}
	})
	return out
}

func leftText(name, to string) string {
	return fmt.Sprintf("CustomResourceDefinition %s is there, differs, and is that of %s, which stays: leave out one of the two", name, to)
}

// yielded are definitions that were left to somebody who has them no more, the first one of each name.
func (c *crdMemory) yielded() (out []*crd) {
	held := map[string]bool{}
	c.each(func(_, name string, k knownCRD) { held[name] = held[name] || k.applied() })
	c.each(func(_, name string, k knownCRD) {
		if k.left != nil && !held[name] {
			held[name] = true
			out = append(out, k.left)
		}
	})
	return out
}

// keep notes which definitions somebody has, as soon as that is known, and drops all others.
func (c *crdMemory) keep(whose string, names map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string]knownCRD{}
	for name := range names {
		next[name] = c.known[whose][name]
	}
	c.known[whose] = next
}

// again forgets what is there of all definitions of somebody, and keeps their names: the next look reads them.
func (c *crdMemory) again(whose string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.known[whose] {
		c.known[whose][name] = knownCRD{}
	}
}

// forget notes that a module has no definitions any more. Nothing is kept of modules that are not there.
func (c *crdMemory) forget(module string, there func(module string) bool) {
	c.keep(module, nil)
	c.keep(ofChart(module), nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(whose string, names map[string]knownCRD) bool { return len(names) == 0 && !there(moduleOf(whose)) })
}
