package engine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// trees are the states that a module tree goes through. A module that is the same in two
// of them is the same pointer.
type trees struct {
	modules map[string]*generation.Module
	count   int
}

// forms are those that each module may have; "" means that it is not there.
var forms = map[string][]string{
	globalName: {"plain", "edited", ""},
	"db":       {"plain", "edited", "lane", "extra", "extra edited", "bare", "chart"},
	"web":      {"plain", "edited", "free", "asked"},
	"dyn":      {"plain"},
	"safe":     {"plain", "chart"},
	"quick":    {"plain", "", "edited", "", "each"},
}

var formNames = []string{globalName, "db", "web", "dyn", "safe", "quick"}

// sound is above the numbers of all trees in which every module can be used.
const sound = 1 << 20

func (ts *trees) pick(r *rand.Rand) int { return r.IntN(sound) }

// pickAny may pick a tree in which a module is broken.
func (ts *trees) pickAny(r *rand.Rand) int {
	return ts.pick(r) + sound*max(0, r.IntN(3*len(formNames))-2*len(formNames)+1)
}

// generation is the tree of a number, whose digits say the form of each module, and which one
// is broken.
func (ts *trees) generation(n int) *generation.Generation {
	ts.count++
	bad := ""
	if i := n / sound; i > 0 {
		n, bad = n%sound, formNames[i-1]
	}
	g := &generation.Generation{Number: ts.count, Tree: &tree.Tree{ValuesFile: "values.yaml"}, Modules: map[string]*generation.Module{}}
	for _, name := range formNames {
		form := forms[name][n%len(forms[name])]
		n /= len(forms[name])
		if form == "" {
			continue
		}
		if name == bad {
			form += " broken"
		}
		m := ts.modules[name+" "+form]
		if m == nil {
			if m = moduleOf(name, strings.TrimSuffix(form, " broken")); name == bad {
				m.Err = errBoom
			}
			ts.modules[name+" "+form] = m
		}
		if m.Global {
			g.Global = m
			continue
		}
		g.Modules[name] = m
		g.Names = append(g.Names, name)
	}
	slices.Sort(g.Names)
	return g
}

func moduleOf(name, form string) *generation.Module {
	digest := "plain"
	if strings.HasSuffix(form, "edited") {
		digest = "edited"
	}
	one := 1
	decl := builtins.ModuleDecl{Enabled: name != "dyn"}
	var hooks []*generation.Hook
	switch name {
	case globalName:
		hooks = append(hooks, hk("g", onStartup(0), onWatch("nodes")))
	case "db":
		decl.Weight = &one
		nodes := hk("nodes", onWatch("nodes"), onReceive("/"+name))
		if nodes.Queue = "slow"; form == "lane" {
			nodes.Queue = ""
		}
		hooks = append(hooks, nodes, hk("start", onStartup(0)), hk("before", onBefore()))
		if form != "bare" {
			hooks = append(hooks, hk("after", onAfter()))
		}
		if strings.HasPrefix(form, "extra") {
			hooks = append(hooks, hk("extra", onStartup(0)))
		}
	case "web":
		if form != "free" {
			decl.Requires = []string{"db"}
		}
		hooks = append(hooks, hk("nodes", onStartup(1), onWatch("nodes"), onAfter(), onReceive("/web")))
	case "dyn":
		hooks = append(hooks, hk("a", onStartup(0)))
	case "quick":
		nodes := hk("nodes", onWatch("nodes"), onReceive("/"+name))
		if form == "each" {
			nodes.ForEach, nodes.Parallel, nodes.Bindings = "nodes", 2, nodes.Bindings[:1]
		}
		hooks = append(hooks, nodes)
	}
	for _, h := range hooks {
		h.Digest = digest
	}
	m := mod(name, decl, hooks...)
	switch {
	case form == "chart":
		m.Tree.Values = map[string]any{"replicas": int64(2)}
	case name == "web" && form == "asked":
		m.Enabled = noFunction{}
	}
	if name == "db" {
		m.Tree.CRDs = []tree.File{{Path: "crds/a.yaml", Data: []byte(form[:1])}}
	}
	return m
}

// However a process came to a tree, at its start or by reloads in the midst of its work,
// with failures and crashes on the way: it ends in the same state, and then it is quiet.
func TestRandomReloadsSettleTheSame(t *testing.T) {
	for seed := range seeds(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		ts := &trees{modules: map[string]*generation.Module{}}
		last := truth{nodes: r.Int64N(4), wanted: r.IntN(2) == 0, config: goodConfigs()[r.IntN(len(goodConfigs()))], tree: ts.pick(r)}

		plain := newChaos(t, nil)
		plain.trees, plain.truth = ts, last
		plain.boot()
		plain.settle()

		c := newChaos(t, r)
		c.trees, c.truth = ts, truth{nodes: r.Int64N(4), config: goodConfigs()[0], tree: ts.pick(r)}
		c.boot()
		for range 40 + r.IntN(160) {
			c.disturb()
		}
		c.calm = true
		for id := range c.live {
			c.inbox = append(c.inbox, WatchFailed{ID: id})
		}
		c.change(func(t *truth) { *t = last })
		c.settle()
		c.mend()

		if diff := cmp.Diff(plain.final(), c.final()); diff != "" {
			c.complain("the end differs (-in order, +in disorder):\n%s", diff)
		}
		for ref := range c.releases {
			if c.trees.generation(last.tree).Modules[ref.Module] == nil {
				c.complain("%s is not in the tree, and its release is there", ref.Module)
			}
		}
		if runs(c.e) > 0 || len(c.e.gone()) > 0 {
			c.complain("left are %v, modules %v", c.e.askedBy, c.e.agenda.Others())
		}
		if t.Failed() {
			t.Fatalf("seed %d, final inputs %+v; the last of what happened:\n%s", seed, last, strings.Join(c.log[max(0, len(c.log)-80):], "\n"))
		}
	}
}
