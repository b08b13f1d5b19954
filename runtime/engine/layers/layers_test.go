package layers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// all is the values of some modules, and the global ones.
type all struct {
	*Layers
	t  *testing.T
	of map[string]*Module
}

// begin adds global values and modules, whose charts are these templates.
func begin(t *testing.T, charts map[string]string) *all {
	a := &all{t: t, of: map[string]*Module{}}
	a.Layers = New(Options{Evaluate: func(_ string, _ func() []string, evaluate func() error) error { return evaluate() }})
	a.add("global", &generation.Module{Name: "global", Key: "global", Global: true})
	for name, text := range charts {
		gen := &generation.Module{Name: name, Key: name, Tree: &tree.Module{Values: map[string]any{"own": int64(1)}}}
		if text != "" {
			gen.Reads = reads.Chart(map[string][]byte{"templates/a.yaml": []byte(text)})
		}
		a.add(name, gen)
	}
	a.Compose()
	return a
}

func (a *all) add(name string, gen *generation.Module, subjects ...string) {
	a.t.Helper()
	there := map[string]bool{}
	for _, s := range subjects {
		there[s] = true
	}
	static, broken := a.Prepare(gen, nil, "values.yaml")
	if broken != "" {
		a.t.Fatal(broken)
	}
	if a.of[name] == nil {
		a.of[name] = a.Add(gen)
	}
	a.of[name].Renew(gen, static, there)
}

func op(path string, v any) []effect.ValueOp {
	return []effect.ValueOp{{Op: effect.OpSet, Path: strings.Split(path, "."), Value: v}}
}

func (a *all) want(what string, got any, want string) {
	a.t.Helper()
	if text := fmt.Sprint(got); text != want {
		a.t.Errorf("%s: %s, want %s", what, text, want)
	}
}

func TestValuesMoveOnceTheyAreShown(t *testing.T) {
	a := begin(t, map[string]string{"web": "{{ .Values.global.a }}", "shop": "{{ .Values.own }}", "all": ""})
	web, global := a.of["web"], a.of["global"]
	web.Set("web/x of a", op("x.a", int64(1)))
	web.Set("web/x of b", op("x.b", int64(1)))
	a.want("not shown", web.View(), "map[global:map[] own:1]")
	version := web.Version()
	a.want("moved", web.Show(), "[web]")
	a.want("shown", web.View(), "map[global:map[] own:1 x:map[a:1 b:1]]")
	a.want("versions", web.Version()-version, "1")
	a.want("nothing is set", web.Show(), "[]")
	web.Set("web/x of a", op("x.a", int64(1)))
	a.want("the same is set", web.Show(), "[]")

	global.Set("global/f", op("global.a", int64(1)))
	a.want("moved by a", global.Show(), "[global all web]")
	global.Set("global/f", slices.Concat(op("global.a", int64(1)), op("global.b", int64(1))))
	a.want("moved by b", global.Show(), "[global all]")
	a.want("who does not read it sees it", a.of["shop"].View(), "map[global:map[a:1 b:1] own:1]")
	a.Drop(web)
	global.Set("global/f", op("global.a", int64(2)))
	a.want("moved without web", global.Show(), "[global all]")
}

func TestConfigMovesWhatDiffers(t *testing.T) {
	a := begin(t, map[string]string{"web": "{{ .Values.global.a }}", "shop": "{{ .Values.own }}"})
	a.want("first", a.Configure(values.Config{Global: map[string]any{"a": int64(1)}, Sections: map[string]map[string]any{"shop": {"own": int64(2)}}}), "[global shop web]")
	a.want("the same", a.Configure(values.Config{Global: map[string]any{"a": int64(1)}, Sections: map[string]map[string]any{"shop": {"own": int64(2)}}}), "[]")
	a.want("another global", a.Configure(values.Config{Global: map[string]any{"a": int64(1), "b": int64(1)}, Sections: map[string]map[string]any{"shop": {"own": int64(2)}}}), "[global]")
	a.want("a section is gone", a.Configure(values.Config{Global: map[string]any{"a": int64(1), "b": int64(1)}}), "[shop]")
}

func TestSwitchesOfGlobalHooks(t *testing.T) {
	a := begin(t, nil)
	global := a.of["global"]
	if global.Set("global/f", op("global.a", int64(1))) {
		t.Error("a value switches something")
	}
	if !global.Set("global/g", op("webEnabled", true)) || global.Set("global/g", op("webEnabled", true)) {
		t.Error("a switch moves when it is set, and then no more")
	}
	on := a.Switch("webEnabled")
	if on == nil || !*on || a.Switch("shopEnabled") != nil {
		t.Error(on)
	}
	by, how := a.SwitchedBy("webEnabled")
	a.want("by", by+fmt.Sprint(how.Value), "global/gtrue")
	sight, err := global.For("global/f", nil).Compose(op("shopEnabled", true))
	a.want("sight of another hook", sight, "map[global:map[] shopEnabled:true webEnabled:true]")
	if err != nil {
		t.Error(err)
	}
}

func TestProposalsAreChecked(t *testing.T) {
	a := begin(t, map[string]string{"web": ""})
	global, web := a.of["global"], a.of["web"]
	global.Set("global/f", slices.Concat(op("global.a", int64(1)), op("webEnabled", true)))
	p := global.Propose()
	for _, tt := range []struct{ path, refused string }{{"global.b", ""}, {"global.a", "global/f"}, {"webEnabled", "global/f"}, {"shopEnabled", ""}} {
		if err := p.Check("global/g", "global/g", "", op(tt.path, true)); (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
	q := web.Propose()
	q.Set("web/a", op("x", int64(1)))
	if err := q.Check("web/b", "web/b", "", op("x", int64(2))); err == nil {
		t.Error("what another run asks for does not count")
	}
	if err := web.Propose().Check("web/b", "web/b", "", op("x", int64(2))); err != nil || web.Layer("web/a") != nil || q.Layer("web/a") == nil {
		t.Errorf("a proposal changes the values: %v", err)
	}
	a.o.Evaluate = func(string, func() []string, func() error) error { return errors.New("it must not be") }
	if err := web.Propose().Check("web/b", "web/b", "", op("x", int64(2))); err == nil {
		t.Error("it is evaluated")
	}
}

func TestWhatHooksSetOutlivesTheTree(t *testing.T) {
	a := begin(t, map[string]string{"web": ""})
	web := a.of["web"]
	web.Keep("web/a", op("x", int64(1)))
	web.Set("web/b", op("y", int64(1)))
	web.Show()
	basis := web.Basis()
	a.add("web", &generation.Module{Name: "web", Key: "web", Tree: &tree.Module{Values: map[string]any{"own": int64(5)}}}, "web/a")
	a.want("moved", a.Compose(), "[web]")
	a.want("web/b is gone", web.View(), "map[global:map[] own:5 x:1]")
	if now := web.Basis(); now == basis || now != web.Basis() {
		t.Error("the basis does not tell")
	}
}

// In whatever order things move, values are those that are composed from nothing.
func TestRandomMovesEndWhereAFreshStartDoes(t *testing.T) {
	charts := map[string]string{"a": "{{ .Values.global.x }}", "b": "{{ .Values.global.y.z }}", "c": "", "d": "{{ .Values.own }}"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		a := begin(t, charts)
		seen := map[string]string{}
		note := func(names []string) {
			for _, name := range names {
				seen[name] = fmt.Sprint(a.of[name].Seen())
			}
		}
		for name, m := range a.of {
			seen[name] = fmt.Sprint(m.Seen())
		}
		config := values.Config{}
		for range 30 {
			names := []string{"a", "b", "c", "d", "global", "global"}
			name := names[r.IntN(len(names))]
			m, subject := a.of[name], fmt.Sprintf("%s/%d", name, r.IntN(2))
			switch path := []string{"x", "y.z", "y.w", "own"}[r.IntN(4)]; {
			case r.IntN(4) == 0:
				config = values.Config{Global: map[string]any{"y": map[string]any{"z": int64(r.IntN(3))}}, Sections: map[string]map[string]any{name: {"own": int64(r.IntN(3))}}}
				note(a.Configure(config))
			case r.IntN(5) == 0:
				m.Set(subject, nil)
			case name == "global":
				m.Set(subject, op("global."+path, int64(r.IntN(3))))
			default:
				m.Set(subject, op(path, int64(r.IntN(3))))
			}
			if r.IntN(2) == 0 {
				note(m.Show())
			}
		}
		for _, m := range a.of {
			note(m.Show())
		}
		fresh := begin(t, charts)
		for name, m := range a.of {
			for subject, ops := range m.set {
				fresh.of[name].Keep(subject, ops)
			}
			there := map[string]bool{name + "/0": true, name + "/1": true}
			fresh.of[name].Renew(m.gen, fresh.of[name].values, there)
		}
		fresh.Configure(config)
		fresh.Compose()
		for name, m := range a.of {
			a.want(fmt.Sprintf("seed %d: %s", seed, name), m.View(), fmt.Sprint(fresh.of[name].View()))
			if name != "global" && seen[name] != fmt.Sprint(fresh.of[name].Seen()) {
				t.Errorf("seed %d: %s was told of %s, and it is %v", seed, name, seen[name], fresh.of[name].Seen())
			}
		}
	}
}

// Modules that do not read a global value cost nothing when it moves, however many they are.
func TestAGlobalValueCostsItsReadersAlone(t *testing.T) {
	cost := func(modules int) float64 {
		charts := map[string]string{"web": "{{ .Values.global.a }}"}
		for i := range modules {
			charts[fmt.Sprint("other", i)] = "{{ .Values.global.b.c }}"
		}
		a := begin(t, charts)
		n := int64(0)
		return testing.AllocsPerRun(100, func() {
			n++
			a.of["global"].Set("global/f", op("global.a", n))
			if moved := a.of["global"].Show(); len(moved) != 2 {
				t.Fatal(moved)
			}
		})
	}
	if few, many := cost(10), cost(1000); many > few*1.1 {
		t.Errorf("%v allocations among 1,000 modules, %v among 10", many, few)
	}
}

// The readers of a value are those of the generation that is in force.
func TestReadersFollowTheTree(t *testing.T) {
	a := begin(t, map[string]string{"web": "{{ .Values.global.a }}"})
	change := func(path string, v int64, want string) {
		t.Helper()
		a.of["global"].Set("global/f", op(path, v))
		a.want(path, a.of["global"].Show(), want)
	}
	change("global.b", 1, "[global]")
	gen := *a.of["web"].gen
	gen.Reads = reads.Chart(map[string][]byte{"templates/a.yaml": []byte("{{ .Values.global.b }}")})
	a.add("web", &gen)
	a.Compose()
	change("global.b", 2, "[global web]")
	change("global.a", 1, "[global web]") // b is gone
	change("global.a", 2, "[global]")
	a.Drop(a.of["web"])
	if len(a.readers) > 0 {
		t.Errorf("readers of a module that is gone: %v", a.readers)
	}
}
