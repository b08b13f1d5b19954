package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func weight(w int) *int { return &w }

func TestOrder(t *testing.T) {
	tests := []struct {
		name  string
		nodes []Node
		want  string
	}{
		{"nothing", nil, ""},
		{"by name", []Node{{Name: "b"}, {Name: "a"}}, "a b"},
		{"requires", []Node{{Name: "a", Requires: []string{"b"}}, {Name: "b"}}, "b a"},
		{"after", []Node{{Name: "a", After: []string{"b", "gone"}}, {Name: "b"}}, "b a"},
		{"weights", []Node{{Name: "a", Weight: weight(30)}, {Name: "b", Weight: weight(20)}, {Name: "c", Weight: weight(-1)}}, "c b a"},
		{"no weight waits for none", []Node{{Name: "a", Weight: weight(30)}, {Name: "b"}}, "b a"},
		{"a held group keeps higher ones back", []Node{
			{Name: "a", Weight: weight(1), After: []string{"z"}}, {Name: "b", Weight: weight(2)}, {Name: "z"},
		}, "z a b"},
		{"doubled names", []Node{{Name: "a", Requires: []string{"b", "b"}}, {Name: "b"}, {Name: "a"}}, "b a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := New(tt.nodes)
			if len(g.Problems) > 0 {
				t.Fatalf("problems: %v", g.Problems)
			}
			if got := strings.Join(g.Order(), " "); got != tt.want {
				t.Errorf("order %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name  string
		nodes []Node
		want  map[string]string
		order string
	}{
		{
			"unknown requirement",
			[]Node{{Name: "a", Requires: []string{"cert-manger"}}, {Name: "cert-manager"}},
			map[string]string{"a": `module a requires "cert-manger", which is no module of this tree; did you mean cert-manager?`},
			"cert-manager",
		},
		{
			"unknown requirement, nothing near",
			[]Node{{Name: "a", Requires: []string{"zzz"}}, {Name: "cert-manager"}},
			map[string]string{"a": `module a requires "zzz", which is no module of this tree; check the name in requires=`},
			"cert-manager",
		},
		{
			"itself",
			[]Node{{Name: "a", Requires: []string{"a"}}, {Name: "b"}},
			map[string]string{"a": "these modules wait for each other: a requires a; take one of these steps away"},
			"b",
		},
		{
			"only who is on the cycle",
			[]Node{
				{Name: "a", Requires: []string{"b"}}, {Name: "b", After: []string{"c"}}, {Name: "c", Requires: []string{"a"}},
				{Name: "d", Requires: []string{"a"}}, {Name: "e", After: []string{"c"}},
			},
			map[string]string{
				"a": "these modules wait for each other: a requires b, b comes after c, c requires a; take one of these steps away",
				"b": "these modules wait for each other: a requires b, b comes after c, c requires a; take one of these steps away",
				"c": "these modules wait for each other: a requires b, b comes after c, c requires a; take one of these steps away",
			},
			"d e",
		},
		{
			"against the weights, those that lie between go on",
			[]Node{
				{Name: "a", Weight: weight(10), Requires: []string{"c"}}, {Name: "b", Weight: weight(20)},
				{Name: "c", Weight: weight(30)}, {Name: "d", Weight: weight(10)},
			},
			map[string]string{
				"a": "these modules wait for each other: a requires c, c (weight 30) comes after a (weight 10); take one of these steps away",
				"c": "these modules wait for each other: a requires c, c (weight 30) comes after a (weight 10); take one of these steps away",
			},
			"d b",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := New(tt.nodes)
			got := map[string]string{}
			for name, err := range g.Problems {
				got[name] = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if got := strings.Join(g.Order(), " "); got != tt.order {
				t.Errorf("order %q, want %q", got, tt.order)
			}
		})
	}
}

func TestNeighbours(t *testing.T) {
	g := New([]Node{
		{Name: "a", Weight: weight(10)},
		{Name: "b", Weight: weight(20), Requires: []string{"x", "a"}},
		{Name: "c", Weight: weight(30), After: []string{"x", "a", "loop"}, Requires: []string{"b"}},
		{Name: "d", Requires: []string{"c"}},
		{Name: "x"},
		{Name: "loop", Weight: weight(5), Requires: []string{"loop", "b"}},
	})
	for name, want := range map[string]string{"a": "", "b": "a", "c": "a x b", "d": "", "loop": "", "nobody": ""} {
		settled, order := map[string]bool{}, []string{}
		for {
			next := g.WaitsFor(name, func(n string) bool { return settled[n] })
			if next == "" {
				break
			}
			settled[next] = true
			order = append(order, next)
		}
		if got := strings.Join(order, " "); got != want {
			t.Errorf("%s waits for %q, want %q", name, got, want)
		}
	}
}

// TestRandom compares with the plain reading of the rules.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var nodes []Node
		n := 1 + r.IntN(8)
		for i := range n {
			node := Node{Name: fmt.Sprintf("m%d", i)}
			if r.IntN(2) == 0 {
				node.Weight = weight(r.IntN(4))
			}
			for range r.IntN(2) {
				node.Requires = append(node.Requires, fmt.Sprintf("m%d", r.IntN(n)))
			}
			for range r.IntN(2) {
				node.After = append(node.After, fmt.Sprintf("m%d", r.IntN(n)))
			}
			nodes = append(nodes, node)
		}
		g := New(nodes)
		waits := func(a, b Node) bool {
			return slices.Contains(a.Requires, b.Name) || slices.Contains(a.After, b.Name) ||
				a.Weight != nil && b.Weight != nil && *b.Weight < *a.Weight
		}
		at := map[string]int{}
		for i, name := range g.Order() {
			at[name] = i
		}
		if len(at)+len(g.Problems) != n {
			t.Fatalf("%+v: order %v and problems %v are not all modules", nodes, g.Order(), g.Problems)
		}
		reach := make([][]bool, n)
		for i := range n {
			reach[i] = make([]bool, n)
			for j := range n {
				reach[i][j] = waits(nodes[i], nodes[j])
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		for i := range n {
			if g.Problems[nodes[i].Name] != nil && !reach[i][i] {
				t.Fatalf("%+v: %s is on no cycle: %v", nodes, nodes[i].Name, g.Problems[nodes[i].Name])
			}
			for j := range n {
				a, aok := at[nodes[i].Name]
				b, bok := at[nodes[j].Name]
				if aok && bok && waits(nodes[i], nodes[j]) && b >= a {
					t.Fatalf("%+v: %s must come after %s: %v", nodes, nodes[i].Name, nodes[j].Name, g.Order())
				}
			}
		}
	}
}

// Modules that all come after each other cost no more than a few looks at each edge.
func TestManyCyclesAreFoundInAFewLooks(t *testing.T) {
	const n = 300
	var nodes []Node
	for i := range n {
		node := Node{Name: fmt.Sprintf("m%04d", i)}
		for j := range n {
			if j != i {
				node.After = append(node.After, fmt.Sprintf("m%04d", j))
			}
		}
		nodes = append(nodes, node)
	}
	g := New(nodes)
	if len(g.Problems) != n {
		t.Errorf("%d of %d modules have a problem", len(g.Problems), n)
	}
	if most := 4 * n * n; g.looked > most {
		t.Errorf("%d looks at an edge, of %d edges", g.looked, n*n)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, cyclic := range []bool{false, true} {
		b.Run(fmt.Sprintf("cyclic=%v", cyclic), func(b *testing.B) {
			var nodes []Node
			for i := range 1000 {
				n := Node{Name: fmt.Sprintf("m%04d", i), Weight: weight(i)}
				if i > 0 {
					n.Requires = []string{fmt.Sprintf("m%04d", i-1)}
				}
				if cyclic && i < 500 {
					n.Requires = append(n.Requires, fmt.Sprintf("m%04d", 999-i))
				}
				nodes = append(nodes, n)
			}
			for b.Loop() {
				New(nodes)
			}
		})
	}
}
