package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// reload puts these modules in force; those that are the pointers of before have not
// changed.
func (w *world) reload(mods ...*generation.Module) {
	w.t.Helper()
	w.runs, w.watched = nil, nil
	gen := &generation.Generation{Number: w.gen.Number + 1, Modules: map[string]*generation.Module{},
		Tree: &tree.Tree{ValuesFile: "values.yaml", Values: w.gen.Tree.Values, Hollow: w.hollow}}
	if w.values != nil {
		gen.Tree.Values = w.values
	}
	for _, m := range mods {
		if m.Global {
			gen.Global = m
			continue
		}
		gen.Modules[m.Name] = m
		gen.Names = append(gen.Names, m.Name)
	}
	slices.Sort(gen.Names)
	gen.Lists = w.lists
	w.next = gen
	w.in(Reload{Generation: gen})
}

// wantWatched compares the ids of watches that were started and stopped, without their numbers.
func (w *world) wantWatched(want ...string) {
	w.t.Helper()
	var got []string
	for _, id := range w.watched {
		got = append(got, strings.TrimRight(id, "0123456789"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// code is a hook with the digest of its file.
func code(digest string, h *generation.Hook) *generation.Hook {
	h.Digest = digest
	return h
}

// filtered is a watch whose filter has this identity.
func filtered(name, filter string) builtins.Binding {
	b := onWatch(name)
	b.Watch.FilterID = filter
	return b
}

// webAndShop are two modules, each with two hooks.
func webAndShop() (web, shop *generation.Module) {
	return mod("web", isOn(), code("1", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0)))),
		mod("shop", isOn(), code("1", hk("a", onWatch("nodes"))))
}

// A generation in which nothing has changed leads to nothing at all.
func TestAReloadWithoutChangesIsQuiet(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	w.wantReleased("shop#1", "web#1")
	before, saves := w.module("web"), w.saves
	w.reload(web, shop)
	w.wantRuns()
	w.wantWatched()
	w.wantReleased("shop#1", "web#1")
	if w.saves != saves || w.e.Status().Generation != 2 {
		t.Errorf("%d saves, generation %d", w.saves-saves, w.e.Status().Generation)
	}
	if diff := cmp.Diff(before, w.module("web")); diff != "" {
		t.Error(diff)
	}
}

// Only hooks run whose code has changed; watches go on, and so does what was set.
func TestAReloadRunsWhatWasEdited(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.hooks["web/b"] = func(RunHook) (effect.Effects, error) { return set("other", "x"), nil }
	w.start()

	next := mod("web", isOn(), code("2", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(2)), nil }
	w.reload(next, shop)
	w.wantRuns("web/a sync")
	w.wantWatched()
	w.wantReleased("shop#1", "web#1", "web#2")
	w.state("web", status.ModuleReady, "")
	if got := w.e.Values("web"); got["n"] != int64(2) || got["other"] != "x" {
		t.Errorf("values are %v", got)
	}

	// Another chart alone runs no hook.
	chart := mod("web", isOn(), code("2", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0))))
	chart.Tree.Values = map[string]any{"replicas": int64(3)}
	w.reload(chart, shop)
	w.wantRuns()
	w.wantReleased("shop#1", "web#1", "web#2", "web#3")

	// Another default namespace concerns all hooks, and moves the release.
	decl := isOn()
	decl.Namespace = "elsewhere"
	w.reload(mod("web", decl, code("2", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0)))), shop)
	w.wantRuns("web/b startup", "web/a sync")
	if !slices.Equal(w.gone, []string{"web"}) {
		t.Errorf("uninstalled %v", w.gone)
	}
}

// A watch goes on while it keeps the same of the same objects.
func TestAReloadKeepsWatches(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*builtins.WatchBinding)
		same bool
	}{
		"nothing":    {func(*builtins.WatchBinding) {}, true},
		"events":     {func(w *builtins.WatchBinding) { w.Events = []string{"added"} }, true},
		"quiet":      {func(w *builtins.WatchBinding) { w.Quiet = true }, true},
		"filter":     {func(w *builtins.WatchBinding) { w.FilterID = "2" }, false},
		"labels":     {func(w *builtins.WatchBinding) { w.Labels = "a=b" }, false},
		"namespaces": {func(w *builtins.WatchBinding) { w.Namespaces = []string{"a"} }, false},
		"kind":       {func(w *builtins.WatchBinding) { w.Kind = "Pod" }, false},
		"wakes":      {func(w *builtins.WatchBinding) { w.WakesID = "2" }, false},
		"wakes all":  {func(w *builtins.WatchBinding) { w.WakesAll = true }, false},
		"objects":    {func(w *builtins.WatchBinding) { w.KeepObject = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), code("1", hk("a", filtered("nodes", "1")))))
			w.start()
			b := filtered("nodes", "1")
			tt.edit(b.Watch)
			w.reload(mod("web", isOn(), code("2", hk("a", b))))
			if tt.same {
				w.wantWatched()
			} else {
				w.wantWatched("+web/a#nodes#", "-web/a#nodes")
			}
			if want := []string{"web/a sync"}; !b.Watch.Quiet {
				w.wantRuns(want...)
			}
			w.state("web", status.ModuleReady, "")
			id := w.e.Watches("web", "web/a")["nodes"]
			if (id == "web/a#nodes") != tt.same {
				t.Errorf("the watch has the id %s", id)
			}
			w.changed(id)
			if len(w.runs) != map[bool]int{true: 0, false: 1}[b.Watch.Events != nil] {
				t.Errorf("runs %v", w.runs)
			}
			if w.changed("web/a#nodes#9"); len(w.runs) > 1 {
				t.Errorf("runs %v", w.runs)
			}
		})
	}
}

// A hook that is gone takes its layer, its state, its watches and its metrics with it.
func TestAReloadTakesGoneHooksAway(t *testing.T) {
	web := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))), code("1", hk("b", onStartup(0))))
	w := newWorld(t, web)
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
		e := set("n", int64(1))
		e.State = map[string]any{"seen": int64(1)}
		return e, nil
	}
	w.start()
	if got := w.e.Values("web"); got["n"] != int64(1) {
		t.Fatalf("values are %v", got)
	}
	w.reload(mod("web", isOn(), code("1", hk("b", onStartup(0)))))
	w.wantRuns()
	w.wantWatched("-web/a#nodes")
	if diff := cmp.Diff([]string{"web web/a"}, w.left); diff != "" {
		t.Error(diff)
	}
	if got := w.e.Values("web"); got["n"] != nil {
		t.Errorf("values are %v", got)
	}
	if len(w.kept["web"]) != 0 {
		t.Errorf("kept is %v", copyKept(w.kept))
	}
	w.wantReleased("web#1", "web#2")
	w.changed("web/a#nodes")
	w.wantRuns()
}

// A new hook holds the release until it has run once; one that is edited until it was
// tried, because what has once succeeded does not close the gate.
func TestAReloadAndTheGate(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), code("1", hk("a", onStartup(0)))))
	w.start()
	w.hooks["web/b"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	next := mod("web", isOn(), code("1", hk("a", onStartup(0))), code("1", hk("b", onStartup(0))))
	next.Tree.Values = map[string]any{"replicas": int64(2)}
	w.reload(next)
	w.wantRuns("web/b startup")
	w.state("web", status.ModuleFailed, "hook b: ")
	w.wantReleased("web#1")
	delete(w.hooks, "web/b")
	w.advance(time.Minute)
	w.wantReleased("web#1", "web#2")

	w.hooks["web/b"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	next = mod("web", isOn(), code("1", hk("a", onStartup(0))), code("2", hk("b", onStartup(0))))
	next.Tree.Values = map[string]any{"replicas": int64(3)}
	w.reload(next)
	w.wantRuns("web/b startup")
	w.wantReleased("web#1", "web#2", "web#3")
}

// A hook that fails is tried at once with its new code, and keeps count of its tries.
func TestAReloadMendsAHookThatFails(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), code("1", hk("a", onStartup(0)))))
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, errBoom }
	w.start()
	w.advance(time.Minute)
	attempts := w.e.Status().Hooks[0].Attempt
	if attempts < 3 {
		t.Fatalf("%d attempts", attempts)
	}
	w.reload(mod("web", isOn(), code("2", hk("a", onStartup(0)))))
	if got := w.e.Status().Hooks[0]; len(w.runs) != 1 || got.Attempt != attempts+1 {
		t.Errorf("runs %v, attempt %d after %d", w.runs, got.Attempt, attempts)
	}
	delete(w.hooks, "web/a")
	w.reload(mod("web", isOn(), code("3", hk("a", onStartup(0)))))
	w.state("web", status.ModuleReady, "")
}

// A module that breaks, or may only look as if it were gone, stays as it was with those that need it;
// the others are as in the tree.
func TestAGenerationIsAdoptedModuleByModule(t *testing.T) {
	broken := func(name string) *generation.Module {
		m := mod(name, isOn())
		m.Err = errBoom
		return m
	}
	requires := func(name string, others ...string) *generation.Module {
		return mod(name, builtins.ModuleDecl{Enabled: true, Requires: others})
	}
	badSchema := mod("web", isOn())
	badSchema.Tree.ValuesSchema = &tree.File{Path: "web/openapi/values.yaml", Data: []byte("type: nonsense")}
	noInts := mod("web", isOn())
	noInts.Tree.ConfigSchema = &tree.File{Path: "web/openapi/config-values.yaml", Data: []byte("properties: {replicas: {type: string}}")}
	other := func() *generation.Module {
		m := mod("other", isOn())
		m.Tree.Values = map[string]any{"replicas": int64(2)}
		return m
	}
	renamed := func(release string) *generation.Module {
		m := mod("new", isOn())
		m.Decl.Release = release
		return m
	}
	released := func(m *generation.Module, release string) *generation.Module {
		m.Decl.Release = release
		return m
	}
	shopOfWeb := requires("shop", "web")
	for name, tt := range map[string]struct {
		before []*generation.Module // nil: web and shop
		next   []*generation.Module // beside other
		hollow []string
		held   map[string]string // by module, how the reason begins
		broken []string
		gone   []string
	}{
		"an error":          {next: []*generation.Module{broken("web"), mod("shop", isOn()), broken("old")}, held: map[string]string{"web": errBoom.Error()}, broken: []string{"old"}},
		"a schema":          {next: []*generation.Module{badSchema, mod("shop", isOn()), broken("old")}, held: map[string]string{"web": ""}, broken: []string{"old"}},
		"a schema of users": {next: []*generation.Module{noInts, mod("shop", isOn())}, held: map[string]string{"web": ""}, gone: nil},
		"a cycle": {next: []*generation.Module{requires("web", "shop"), requires("shop", "web"), broken("old")},
			held: map[string]string{"web": "", "shop": ""}, broken: []string{"old"}},
		"a hollow folder": {next: []*generation.Module{mod("shop", isOn())}, hollow: []string{"web"}, held: map[string]string{"web": "its folder holds nothing of a module"}},
		"a hollow folder of one that is required": {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{shopOfWeb}, hollow: []string{"web"},
			held: map[string]string{"web": "its folder holds nothing of a module"}},
		"one that is required is gone": {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{shopOfWeb},
			held: map[string]string{"shop": "module shop requires \"web\", which is no module of this tree", "web": "it is gone, while module shop, which is not as in the tree, requires it"}},
		"another name and an error": {next: []*generation.Module{mod("shop", isOn()), broken("www")},
			held: map[string]string{"web": "it is gone, while a new module, www, is broken: "}, broken: []string{"www"}},
		"another name that requires what is not there": {next: []*generation.Module{mod("shop", isOn()), requires("www", "nobody")},
			held: map[string]string{"web": "it is gone, while a new module, www, is broken: "}, broken: []string{"www"}},
		"another name, and what it requires is broken": {next: []*generation.Module{broken("shop"), requires("www", "shop")},
			held: map[string]string{"shop": errBoom.Error(), "web": "it is gone, while a new module, www, is broken: requires shop"}, broken: []string{"www"}},
		"what requires a broken one and has changed": {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{broken("web"), requires("shop", "web")},
			held: map[string]string{"web": errBoom.Error(), "shop": "requires web, which is not as in the tree"}},
		"what requires a broken one and has not":     {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{broken("web"), shopOfWeb}, held: map[string]string{"web": errBoom.Error()}},
		"what no longer requires a broken one":       {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{broken("web"), mod("shop", isOn())}, held: map[string]string{"web": errBoom.Error()}},
		"a new one that requires a broken one":       {next: []*generation.Module{broken("web"), mod("shop", isOn()), requires("new", "web")}, held: map[string]string{"web": ""}, broken: []string{"new"}},
		"a cycle by way of what was":                 {before: []*generation.Module{mod("web", isOn()), shopOfWeb}, next: []*generation.Module{requires("web", "shop"), broken("shop")}, held: map[string]string{"shop": errBoom.Error(), "web": ""}},
		"a new one in a cycle by way of what was":    {before: []*generation.Module{mod("web", builtins.ModuleDecl{Enabled: true, After: []string{"new"}}), mod("shop", isOn())}, next: []*generation.Module{broken("web"), mod("shop", isOn()), mod("new", builtins.ModuleDecl{Enabled: true, After: []string{"web"}})}, held: map[string]string{"web": ""}, broken: []string{"new"}},
		"the release of a broken one":                {next: []*generation.Module{broken("web"), released(mod("shop", isOn()), "web")}, held: map[string]string{"web": "", "shop": "module web has the release web in namespace too"}},
		"a new one with the release of a broken one": {next: []*generation.Module{broken("web"), mod("shop", isOn()), renamed("web")}, held: map[string]string{"web": ""}, broken: []string{"new"}},
		"the global hooks":                           {next: []*generation.Module{broken(globalName), mod("web", isOn()), mod("shop", isOn())}, held: map[string]string{globalName: errBoom.Error()}},
		"what was broken":                            {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), broken("old")}, broken: []string{"old"}},
		"what was broken is mended":                  {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), mod("old", isOn())}},
		"a new one is broken":                        {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), broken("old"), broken("new")}, broken: []string{"old", "new"}},
		"one less":                                   {next: []*generation.Module{mod("shop", isOn()), broken("old")}, broken: []string{"old"}, gone: []string{"web"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.before == nil {
				tt.before = []*generation.Module{mod("web", isOn()), mod("shop", isOn())}
			}
			w := newWorld(t, append(tt.before, broken("old"), mod("other", isOn()))...)
			w.gen.Tree.Values = map[string]any{"web": map[string]any{"replicas": int64(3)}}
			w.start()
			w.state("old", status.ModuleBroken, "")
			w.hollow = tt.hollow
			first := w.gen
			if slices.ContainsFunc(tt.next, func(m *generation.Module) bool { return m.Name == "old" }) == false {
				tt.next, tt.broken = append(tt.next, first.Modules["old"]), append(tt.broken, "old")
			}
			next := append(tt.next, other())
			for range 2 { // the same again
				w.released = nil
				w.reload(next...)
				w.advance(time.Hour)
				w.wantHeld(tt.held)
				if !slices.Equal(w.gone, tt.gone) || w.refused != "" || w.e.Status().Generation != w.gen.Number {
					t.Errorf("gone %v, refused %q", w.gone, w.refused)
				}
				w.state("other", status.ModuleReady, "")
				if w.last["other"] != "map[global:map[] replicas:2]" || len(tt.held) > 0 && w.last["web"] != "map[global:map[] replicas:3]" {
					t.Errorf("released with %v", w.last)
				}
				for _, name := range tt.broken {
					w.state(name, status.ModuleBroken, "")
				}
				if standby, err := Follow(w.opts, first, w.next); err != nil || !maps.Equal(standby.Held, w.gen.Held) {
					t.Errorf("before the start %v is held (%v), later %v", standby.Held, err, w.gen.Held)
				}
			}
			// Mended, all of it is in force.
			w.hollow = nil
			w.reload(mod("web", isOn()), mod("shop", isOn()), other())
			w.advance(time.Hour)
			w.wantHeld(nil)
			for _, name := range []string{"web", "shop"} {
				w.state(name, status.ModuleReady, "")
			}
		})
	}
}

// wantHeld compares the reasons why modules are not as in the tree, which people see.
func (w *world) wantHeld(want map[string]string) {
	w.t.Helper()
	if len(want) != len(w.gen.Held) {
		w.t.Errorf("held %v, want %v", w.gen.Held, want)
	}
	for name, why := range want {
		if got := w.gen.Held[name]; got == "" || !strings.HasPrefix(got, why) {
			w.t.Errorf("%s is held for %q, want %q", name, got, why)
		}
		if name == globalName {
			continue
		}
		if m := w.module(name); m.State != status.ModuleReady || len(m.Problems) == 0 || !strings.Contains(m.Problems[0], "before the last change of the module tree: "+why) {
			w.t.Errorf("%s is shown as %+v", name, m)
		}
	}
}

// A tree without any module is none that anybody wants.
func TestATreeWithoutModulesIsRefused(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	first := w.gen
	w.reload()
	if w.refused != "there is no module in it" || w.gen != first || len(w.gone) > 0 {
		t.Errorf("refused for %q, gone %v", w.refused, w.gone)
	}
	if _, err := Follow(w.opts, first, w.next); err == nil || err.Error() != w.refused {
		t.Errorf("before the start: %v", err)
	}
}

// A module that is held runs on with its hooks, by the generation that its code is in, also in a process
// that starts with it.
func TestAModuleThatIsHeldRunsOn(t *testing.T) {
	web, shop := webAndShop()
	w := newWorld(t, web, shop)
	w.start()
	first := w.gen
	bad := mod("web", isOn(), code("2", hk("a", onWatch("nodes"))))
	bad.Err = errBoom
	w.reload(bad, shop)
	w.reload(bad, shop)
	w.wantRuns()
	w.wantWatched()
	var of *generation.Generation
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		of = r.Generation
		return set("n", int64(1)), nil
	}
	w.changed("web/a#nodes")
	w.wantRuns("web/a modified")
	if of != first || of.Hook("web/a") != nil && of.Hook("web/a") != web.Hooks[0] {
		t.Error("the run is not of the generation that its code is in")
	}
	if got := w.e.Values("web"); got["n"] != int64(1) {
		t.Errorf("values are %v", got)
	}
	w.start()
	w.state("web", status.ModuleReady, "")
	w.wantHeld(map[string]string{"web": errBoom.Error()})
}

// A hook waits for the requests to the one before it, and no longer.
func TestAHookBeginsOnceTheLastRequestHasEnded(t *testing.T) {
	web := func(queue string) *generation.Module {
		h := code(queue, hk("a", onWatch("nodes"), builtins.Binding{Name: "v", Receive: &builtins.ReceiveBinding{Path: "/v"}}))
		h.Queue = queue
		return mod("web", isOn(), h)
	}
	w := newWorld(t, web(""))
	w.start()
	w.hold = "web/a"
	w.in(Requested{ID: 1, Hook: "web/a", Request: &builtins.Request{Binding: "v"}})
	w.hold = ""
	w.reload(web("other"))
	w.wantRuns()
	w.in(RunDone{Run: w.held["web/a"][0].(RunHook).Run})
	w.wantRuns("web/a sync")
}

// A run that has not begun, because its watch had ended, is none that failed: what it was for
// waits for the next one.
func TestARunThatHasNotBegunIsNotLost(t *testing.T) {
	h := hk("a", onBefore(), onWatch("nodes"))
	w := newWorld(t, mod("web", isOn(), h))
	w.hold = "web/a"
	w.start()
	w.hold = ""
	w.in(RunDone{Run: w.held["web/a"][0].(RunHook).Run, Incomplete: true})
	w.runs = nil
	w.advance(time.Minute)
	w.wantRuns("web/a sync", "web/a helm")
	w.state("web", status.ModuleReady, "")
	if s := w.e.Status().Hooks[0]; s.Failures > 0 || s.Runs != 2 {
		t.Errorf("%d runs, %d have failed", s.Runs, s.Failures)
	}
}
