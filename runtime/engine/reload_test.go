package engine

import (
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
	w.in(Reload{Generation: gen})
}

func (w *world) wantWatched(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.watched); diff != "" {
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
				w.wantWatched("+web/a#nodes#0.1", "-web/a#nodes")
			}
			if want := []string{"web/a sync"}; !b.Watch.Quiet {
				w.wantRuns(want...)
			}
			w.state("web", status.ModuleReady, "")
			w.changed(map[bool]string{true: "web/a#nodes", false: "web/a#nodes#0.1"}[tt.same])
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

// A generation that breaks what works is refused as a whole; what was broken before may
// stay so.
func TestWhichGenerationsAreRefused(t *testing.T) {
	broken := func(name string) *generation.Module {
		m := mod(name, isOn())
		m.Err = errBoom
		return m
	}
	requires := func(name, other string) *generation.Module {
		return mod(name, builtins.ModuleDecl{Enabled: true, Requires: []string{other}})
	}
	badSchema := mod("web", isOn())
	badSchema.Tree.ValuesSchema = &tree.File{Path: "web/openapi/values.yaml", Data: []byte("type: nonsense")}
	for name, tt := range map[string]struct {
		next   []*generation.Module
		hollow []string
		values map[string]any
		want   string
	}{
		"an error":                  {next: []*generation.Module{broken("web"), mod("shop", isOn()), broken("old")}, want: "module web: " + errBoom.Error()},
		"a schema":                  {next: []*generation.Module{badSchema, mod("shop", isOn()), broken("old")}, want: "module web: "},
		"a cycle":                   {next: []*generation.Module{requires("web", "shop"), requires("shop", "web"), broken("old")}, want: "module shop: "},
		"a hollow folder":           {next: []*generation.Module{mod("shop", isOn()), broken("old")}, hollow: []string{"web"}, want: "module web: its folder holds nothing of a module"},
		"another name and an error": {next: []*generation.Module{mod("shop", isOn()), broken("old"), broken("www")}, want: "module web is gone, while a new one, www, is broken"},
		"nothing":                   {want: "there is no module in it"},
		"what was broken":           {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), broken("old")}},
		"what was broken is mended": {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), mod("old", isOn())}},
		"a new one is broken":       {next: []*generation.Module{mod("web", isOn()), mod("shop", isOn()), broken("old"), broken("new")}},
		"one less":                  {next: []*generation.Module{mod("shop", isOn()), broken("old")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn()), mod("shop", isOn()), broken("old"))
			w.start()
			w.state("old", status.ModuleBroken, "")
			w.hollow = tt.hollow
			released := slices.Clone(w.released)
			first := w.gen
			w.reload(tt.next...)
			if tt.want == "" {
				if w.refused != "" || w.gen == first {
					t.Fatalf("refused: %s", w.refused)
				}
				return
			}
			if !strings.HasPrefix(w.refused, tt.want) {
				t.Errorf("refused for %q, want %q", w.refused, tt.want)
			}
			w.state("web", status.ModuleReady, "")
			w.state("shop", status.ModuleReady, "")
			if w.gen != first || w.e.Status().Generation != 1 || len(w.gone) > 0 || len(w.runs) > 0 || !slices.Equal(w.released, released) {
				t.Errorf("generation %d, gone %v, runs %v, released %v", w.e.Status().Generation, w.gone, w.runs, w.released)
			}
			if err := Check(w.opts, first, &generation.Generation{Tree: &tree.Tree{Hollow: tt.hollow}, Modules: byName(tt.next), Names: namesOf(tt.next)}); err == nil || err.Error() != w.refused {
				t.Errorf("before the start it says %v, later %s", err, w.refused)
			}
		})
	}
}

func byName(mods []*generation.Module) map[string]*generation.Module {
	out := map[string]*generation.Module{}
	for _, m := range mods {
		out[m.Name] = m
	}
	return out
}

func namesOf(mods []*generation.Module) (names []string) {
	for _, m := range mods {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// A hook waits for the requests to the one before it, and no longer.
func TestAHookBeginsOnceTheLastRequestHasEnded(t *testing.T) {
	web := func(queue string) *generation.Module {
		h := code(queue, hk("a", onWatch("nodes"), builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}))
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
