package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// findCycles makes every module on a cycle a problem. It looks for one cycle at
// a time, as short as it can, and goes on without its modules: who only waits
// for them is no part of it.
func (g *Graph) findCycles() {
	for found := true; found; {
		found = false
		v := g.view()
		for _, part := range v.parts() {
			in := make([]bool, len(v.all))
			for _, i := range part {
				in[i] = true
			}
			for cycle := v.cycleIn(part, in); cycle != nil; cycle = v.cycleIn(part, in) {
				found = true
				var names []string
				for _, i := range cycle {
					names, in[i] = append(names, v.names[i]), false
				}
				err := g.cycleError(names)
				for _, name := range names {
					g.Problems[name] = err
				}
			}
		}
		g.looked += v.looked
	}
}

// cycleError names the chain: "a requires b, b comes after a".
func (g *Graph) cycleError(cycle []string) error {
	var steps []string
	for i, name := range cycle {
		next := cycle[(i+1)%len(cycle)]
		n := g.nodes[name]
		switch {
		case slices.Contains(n.requires, next):
			steps = append(steps, fmt.Sprintf("%s requires %s", name, next))
		case slices.Contains(n.after, next):
			steps = append(steps, fmt.Sprintf("%s comes after %s", name, next))
		default:
			steps = append(steps, fmt.Sprintf("%s (weight %d) comes after %s (weight %d)",
				name, g.weight(name), next, g.weight(next)))
		}
	}
	return fmt.Errorf("these modules wait for each other: %s; take one of these steps away", strings.Join(steps, ", "))
}

// view is the graph as numbers: modules without problems, then one barrier for
// each weight. A module waits for the barrier below its weight; a barrier waits
// for the modules of its weight and for the barrier below. So a thousand
// weights need a few thousand edges and not a million.
type view struct {
	names []string
	// explicit are the edges of requires and after, all holds the barriers'
	// too.
	explicit, all [][]int
	// looked counts the edges that were looked at.
	looked int
}

func (g *Graph) view() *view {
	g.group()
	v := &view{}
	index := map[string]int{}
	for _, name := range g.names() {
		if g.Problems[name] == nil {
			index[name] = len(v.names)
			v.names = append(v.names, name)
		}
	}
	size := len(v.names) + len(g.groups)
	v.explicit, v.all = make([][]int, size), make([][]int, size)
	for name, i := range index {
		n := g.nodes[name]
		for _, d := range distinct(slices.Concat(n.requires, n.after)) {
			if j, ok := index[d]; ok {
				v.explicit[i] = append(v.explicit[i], j)
			}
		}
		v.all[i] = slices.Clone(v.explicit[i])
		if n.Weight != nil {
			if group, _ := slices.BinarySearch(g.weights, *n.Weight); group > 0 {
				v.all[i] = append(v.all[i], len(v.names)+group-1)
			}
		}
	}
	for group, members := range g.groups {
		barrier := len(v.names) + group
		if group > 0 {
			v.all[barrier] = append(v.all[barrier], barrier-1)
		}
		for _, name := range members {
			v.all[barrier] = append(v.all[barrier], index[name])
		}
	}
	return v
}

// maxTries is of how many edges the shortest cycle is looked for, maxLooked how many edges are looked at for
// that once there is one.
const maxTries, maxLooked = 50, 10_000

// cycleIn returns a short cycle among those of a strongly connected part that are still in, nil when it
// finds none. Weights alone go down only, so every cycle has an explicit edge. Of the first edges the one
// with the shortest cycle wins: it blames the fewest modules.
func (v *view) cycleIn(part []int, in []bool) (best []int) {
	tries, looked := 0, v.looked
	for _, i := range part {
		for _, j := range v.explicit[i] {
			if !in[i] || !in[j] {
				continue
			}
			if tries++; tries > maxTries || best != nil && (len(best) <= 2 || v.looked > looked+maxLooked) {
				return best
			}
			way := slices.DeleteFunc(v.path(j, i, in), func(k int) bool { return k >= len(v.names) }) // no barriers
			if len(way) > 0 && (best == nil || len(way) < len(best)) {
				best = way
			}
		}
	}
	return best
}

// path returns the shortest way from one number to another, from its end, nil when there is none.
func (v *view) path(from, to int, in []bool) (out []int) {
	came := make([]int, len(v.all)) // from which number, plus one
	came[from] = from + 1
	for queue := []int{from}; came[to] == 0; queue = queue[1:] {
		if len(queue) == 0 {
			return nil
		}
		v.looked += len(v.all[queue[0]])
		for _, j := range v.all[queue[0]] {
			if came[j] == 0 && in[j] {
				came[j] = queue[0] + 1
				queue = append(queue, j)
			}
		}
	}
	for i := to; i != from; i = came[i] - 1 {
		out = append(out, i)
	}
	out = append(out, from)
	slices.Reverse(out[1:])
	return out
}

// parts returns the strongly connected parts of the view, each sorted, ordered
// by their first number (Tarjan's algorithm, without recursion).
func (v *view) parts() [][]int {
	t := &tarjan{v: v, index: map[int]int{}, low: map[int]int{}, on: map[int]bool{}}
	for i := range v.all {
		if _, seen := t.index[i]; !seen {
			t.visit(i)
		}
	}
	byFirst := map[int][]int{}
	for _, p := range t.parts {
		slices.Sort(p)
		byFirst[p[0]] = p
	}
	var out [][]int
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		out = append(out, byFirst[first])
	}
	return out
}

type tarjan struct {
	v          *view
	index, low map[int]int
	on         map[int]bool
	stack      []int
	parts      [][]int
}

type frame struct{ at, edge int }

func (t *tarjan) visit(root int) {
	work := []frame{{at: root}}
	for len(work) > 0 {
		f := &work[len(work)-1]
		if f.edge == 0 {
			t.index[f.at], t.low[f.at] = len(t.index), len(t.index)
			t.stack = append(t.stack, f.at)
			t.on[f.at] = true
		}
		if f.edge < len(t.v.all[f.at]) {
			next := t.v.all[f.at][f.edge]
			f.edge++
			t.v.looked++
			if _, seen := t.index[next]; !seen {
				work = append(work, frame{at: next})
			} else if t.on[next] {
				t.low[f.at] = min(t.low[f.at], t.index[next])
			}
			continue
		}
		work = work[:len(work)-1]
		if len(work) > 0 {
			up := work[len(work)-1].at
			t.low[up] = min(t.low[up], t.low[f.at])
		}
		if t.low[f.at] == t.index[f.at] {
			i := slices.Index(t.stack, f.at)
			part := slices.Clone(t.stack[i:])
			t.stack = t.stack[:i]
			for _, n := range part {
				delete(t.on, n)
			}
			t.parts = append(t.parts, part)
		}
	}
}
