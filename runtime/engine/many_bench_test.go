package engine

import (
	"fmt"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// BenchmarkManyModules is what one change of one object takes in the engine, among so many
// modules with two hooks each.
func BenchmarkManyModules(b *testing.B) {
	for _, modules := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(modules), func(b *testing.B) {
			x := newManyBench(b, modules)
			for i := 0; b.Loop(); i++ {
				x.change(i)
			}
		})
	}
}

// BenchmarkConfig is one changed section of the user's config, among so many.
func BenchmarkConfig(b *testing.B) {
	for _, modules := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(modules), func(b *testing.B) {
			x := newManyBench(b, modules)
			data := map[string]string{}
			for i := range modules {
				data[fmt.Sprintf("m%d", i)] = "image: {repository: example.org/web, tag: v1}\nreplicas: 3\n"
			}
			for i := 0; b.Loop(); i++ {
				data["m1"] = fmt.Sprintf("replicas: %d\n", i)
				x.in(Config{State: ConfigPresent, Data: data})
			}
		})
	}
}

// newManyBench returns an engine in which all modules are ready.
func newManyBench(b testing.TB, modules int) *eachBench {
	b.Helper()
	var mods []*generation.Module
	for i := range modules {
		mods = append(mods, mod(fmt.Sprintf("m%d", i), isOn(), hk("a", onWatch("nodes")), hk("b", onStartup(0))))
	}
	w := newWorld(nil, mods...)
	x := &eachBench{e: New(w.opts), now: w.now, effects: func(RunHook) effect.Effects {
		return effect.Effects{Writes: []effect.Write{{Kind: effect.WriteApply}}}
	}}
	x.in(Config{State: ConfigPresent})
	x.in(Start{Generation: w.gen})
	x.names, x.watch = []string{"n"}, "m0/a#nodes"
	x.in(Tick{})
	if x.runs != 2*modules {
		b.Fatalf("%d modules had %d runs", modules, x.runs)
	}
	return x
}

// BenchmarkManyHooks is the same among so many hooks of one module.
func BenchmarkManyHooks(b *testing.B) {
	for _, hooks := range []int{10, 300, 3000} {
		b.Run(fmt.Sprint(hooks), func(b *testing.B) {
			x := newManyHooksBench(b, hooks)
			for i := 0; b.Loop(); i++ {
				x.change(i)
			}
		})
	}
}

func newManyHooksBench(b testing.TB, n int) *eachBench {
	b.Helper()
	hooks := []*generation.Hook{hk("a", onWatch("nodes"))}
	for i := range n {
		hooks = append(hooks, hk(fmt.Sprintf("h%d", i), onStartup(0)))
	}
	w := newWorld(nil, mod("web", isOn(), hooks...))
	x := &eachBench{e: New(w.opts), now: w.now, effects: noEffects, names: []string{"n"}, watch: "web/a#nodes"}
	x.in(Config{State: ConfigPresent})
	x.in(Start{Generation: w.gen})
	if x.runs != n+1 {
		b.Fatalf("%d hooks had %d runs", n+1, x.runs)
	}
	return x
}
