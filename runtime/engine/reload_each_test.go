package engine

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// An edited hook with for_each runs once for each of its objects, whose states stay; one
// that is gone has its finalizers taken off.
func TestAReloadOfAHookWithForEach(t *testing.T) {
	w := eachWorld(t, true, "x", "y")
	w.gen.Modules["web"].Hooks[0].Digest = "1"
	bad := "none"
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		if r.Key == bad {
			return effect.Effects{}, errBoom
		}
		n, _ := r.State["n"].(int64)
		eff := set("seen."+r.Key, n)
		if r.Key == "" {
			eff = set("all", n)
		}
		eff.State = map[string]any{"n": n + 1}
		return eff, nil
	}
	w.start()
	w.ran("web/a[x] sync; web/a[y] sync")

	// The same code in another chart: nothing runs.
	w.reload(mod("web", isOn(), code("1", eachHook("a", true))))
	w.ran("")
	w.reload(mod("web", isOn(), code("2", eachHook("a", true))))
	w.ran("web/a[x] sync; web/a[y] sync")
	if seen := w.e.Values("web")["seen"].(map[string]any); seen["x"] != int64(1) || seen["y"] != int64(1) {
		t.Errorf("values are %v", seen)
	}
	w.wantWatched()
	w.state("web", status.ModuleReady, "")

	// One object that fails holds back nothing, and is tried again.
	bad = "x"
	w.reload(mod("web", isOn(), code("3", eachHook("a", true))))
	w.ran("web/a[x] sync; web/a[y] sync")
	w.state("web", status.ModuleReady, "")
	bad = "none"
	w.advance(time.Minute)
	w.ran("web/a[x] sync")
	w.happens("deleted", "x")
	w.ran("web/a[x] cleanup")

	// About all objects at once from now on: what each has set goes.
	w.reload(mod("web", isOn(), code("4", hk("a", onWatch("nodes")))))
	w.ran("web/a sync")
	if got := w.e.Values("web"); got["seen"] != nil || got["all"] != int64(0) {
		t.Errorf("values are %v", got)
	}
	if len(w.unheld) == 0 || w.objects["y"].Held {
		t.Errorf("finalizers are %v, objects %v", w.unheld, w.objects)
	}
	w.state("web", status.ModuleReady, "")
	w.reload(mod("web", isOn()))
	if len(w.kept["web"]) > 0 {
		t.Errorf("kept is %v", copyKept(w.kept))
	}
}
