// Package graph orders modules: who must be Ready before whom (requires), and
// who is only attempted earlier (after, weights). It is pure.
package graph

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// Node is one module.
type Node struct {
	// Name is unique in a graph.
	Name string
	// Weight takes part in the order by weight; nil does not: such a module
	// waits for no weight, and no weight waits for it.
	Weight *int
	// After names modules that are attempted first. Names that nobody has are
	// fine.
	After []string
	// Requires names modules that must be on and Ready. A name that nobody has
	// is a problem.
	Requires []string
}

// Graph is a set of modules in order. It never changes after [New].
type Graph struct {
	// Problems says, by name, why a module cannot be used: it depends on a
	// cycle, or requires a module that does not exist. All other modules go
	// on.
	Problems map[string]error

	nodes map[string]*node
	// weights are the distinct weights, ascending, of the modules that can be
	// used.
	weights []int
	// groups are the names of the modules of each weight, sorted.
	groups [][]string
	order  []string
	// followers are, by name, those that require a module or come after it.
	followers map[string][]string
	// looked counts the edges that were looked at to find cycles.
	looked int
}

type node struct {
	Node
	requires []string // sorted, without doubles
	after    []string // sorted, known names, without doubles
}

// New makes the graph. Of nodes with the same name the first counts.
func New(nodes []Node) *Graph {
	g := &Graph{Problems: map[string]error{}, nodes: make(map[string]*node, len(nodes))}
	for _, n := range nodes {
		if _, there := g.nodes[n.Name]; !there {
			g.nodes[n.Name] = &node{Node: n, requires: distinct(n.Requires), after: distinct(n.After)}
		}
	}
	for _, name := range g.names() {
		n := g.nodes[name]
		n.after = slices.DeleteFunc(n.after, func(a string) bool { return g.nodes[a] == nil })
		for _, r := range n.requires {
			if g.nodes[r] == nil {
				g.Problems[name] = fmt.Errorf("module %s requires %q, which is no module of this tree; %s",
					name, r, message.DidYouMean(r, g.names(), "check the name in requires="))
			}
		}
	}
	g.findCycles()
	g.group()
	g.sort()
	return g
}

func (g *Graph) names() []string { return slices.Sorted(maps.Keys(g.nodes)) }

func distinct(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// WaitsFor returns one module that must be settled before this one (attempted once, or
// off) and is not yet, "" when there is none: one that it comes after, or of a lower
// weight. Modules with a problem are none: they are never attempted. It looks first
// where modules settle last, so that asking often is cheap.
func (g *Graph) WaitsFor(name string, settled func(name string) bool) string {
	n := g.nodes[name]
	if n == nil || g.Problems[name] != nil {
		return ""
	}
	for _, a := range n.after {
		if g.Problems[a] == nil && !settled(a) {
			return a
		}
	}
	for _, group := range slices.Backward(g.below(n)) {
		for _, a := range group {
			if !settled(a) {
				return a
			}
		}
	}
	return ""
}

// GoesBefore returns one module that has to be gone before this one is taken away, "" when
// there is none: one that is going, and requires this one, comes after it, directly or
// through others, or is of a higher weight. Modules with a problem wait for nobody, and
// nobody waits for them.
func (g *Graph) GoesBefore(name string, going func(name string) bool) string {
	n := g.nodes[name]
	if n == nil || g.Problems[name] != nil {
		return ""
	}
	seen := map[string]bool{name: true}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, f := range g.followers[next[0]] {
			if seen[f] {
				continue
			}
			if going(f) {
				return f
			}
			seen[f], next = true, append(next, f)
		}
	}
	for _, group := range g.above(n) {
		if i := slices.IndexFunc(group, going); i >= 0 {
			return group[i]
		}
	}
	return ""
}

// Order returns all modules that can be used: each after what it requires and
// comes after, else by weight (none counts as 0), then by name.
func (g *Graph) Order() []string { return slices.Clone(g.order) }

// below returns the groups with a lower weight.
func (g *Graph) below(n *node) [][]string {
	if n.Weight == nil {
		return nil
	}
	i, _ := slices.BinarySearch(g.weights, *n.Weight)
	return g.groups[:i]
}

// above returns the groups with a higher weight.
func (g *Graph) above(n *node) [][]string {
	if n.Weight == nil {
		return nil
	}
	i, there := slices.BinarySearch(g.weights, *n.Weight)
	if there {
		i++
	}
	return g.groups[i:]
}

func (g *Graph) usable(names []string) []string {
	var out []string
	for _, n := range names {
		if g.Problems[n] == nil {
			out = append(out, n)
		}
	}
	return out
}

// compare orders by weight, then by name.
func (g *Graph) compare(a, b string) int {
	return cmp.Or(cmp.Compare(g.weight(a), g.weight(b)), strings.Compare(a, b))
}

func (g *Graph) weight(name string) int {
	if w := g.nodes[name].Weight; w != nil {
		return *w
	}
	return 0
}

// group collects the modules of each weight.
func (g *Graph) group() {
	byWeight := map[int][]string{}
	for _, name := range g.names() {
		if w := g.nodes[name].Weight; w != nil && g.Problems[name] == nil {
			byWeight[*w] = append(byWeight[*w], name)
		}
	}
	g.weights = slices.Sorted(maps.Keys(byWeight))
	g.groups = nil
	for _, w := range g.weights {
		g.groups = append(g.groups, byWeight[w])
	}
}

// sort makes the order: of all modules that wait for nothing any more the first
// by weight and name is next. Groups of one weight are linked through one
// counter each, not by an edge for each pair.
func (g *Graph) sort() {
	g.followers = map[string][]string{}
	left := map[string]int{}                // edges that a module still waits for
	groupLeft := make([]int, len(g.groups)) // modules of the group and of lower ones not yet in order
	total := 0
	for i, group := range g.groups {
		total += len(group)
		groupLeft[i] = total
	}
	index := map[string]int{}
	for i, group := range g.groups {
		for _, name := range group {
			index[name] = i
		}
	}
	ready := &queue{less: func(a, b string) bool { return g.compare(a, b) < 0 }}
	// open is how many groups may go; a group goes when all lower ones are in
	// order.
	open := 0
	held := make([][]string, len(g.groups))
	release := func(name string) {
		if i, ok := index[name]; ok && i > open {
			held[i] = append(held[i], name)
			return
		}
		heap.Push(ready, name)
	}
	for _, name := range g.names() {
		if g.Problems[name] != nil {
			continue
		}
		n := g.nodes[name]
		for _, d := range g.usable(distinct(slices.Concat(n.requires, n.after))) {
			left[name]++
			g.followers[d] = append(g.followers[d], name)
		}
	}
	for _, name := range g.names() {
		if g.Problems[name] == nil && left[name] == 0 {
			release(name)
		}
	}
	done := 0
	for ready.Len() > 0 {
		name := heap.Pop(ready).(string)
		g.order = append(g.order, name)
		for _, f := range g.followers[name] {
			if left[f]--; left[f] == 0 {
				release(f)
			}
		}
		if _, weighted := index[name]; !weighted {
			continue
		}
		for done++; open < len(g.groups) && done == groupLeft[open]; {
			if open++; open < len(g.groups) {
				for _, h := range held[open] {
					heap.Push(ready, h)
				}
			}
		}
	}
}

// queue is a heap of names.
type queue struct {
	names []string
	less  func(a, b string) bool
}

func (q *queue) Len() int           { return len(q.names) }
func (q *queue) Less(i, j int) bool { return q.less(q.names[i], q.names[j]) }
func (q *queue) Swap(i, j int)      { q.names[i], q.names[j] = q.names[j], q.names[i] }
func (q *queue) Push(x any)         { q.names = append(q.names, x.(string)) }
func (q *queue) Pop() any {
	last := q.names[len(q.names)-1]
	q.names = q.names[:len(q.names)-1]
	return last
}
