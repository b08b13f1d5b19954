package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// lacking is a world whose process has taken over with an older tree: that lacks the module shop and the hook web/b,
// which has set a value, remembers something and has applied a set, and the hook web/c, which has a finalizer, and it switches the module site off.
func lacking(t *testing.T) (w *world, newer []*generation.Module) {
	web, shop := webAndShop()
	site := mod("site", isOn())
	w = newWorld(t, web, shop, site)
	w.opts.Grace = 10 * time.Second
	w.hooks["web/b"] = func(RunHook) (effect.Effects, error) {
		out := set("n", int64(1))
		out.Memory = effect.Memory{State: map[string]any{"known": true}}
		out.Writes = []effect.Write{{Kind: effect.WriteSet, Set: &effect.Set{Name: "s"}}}
		return out, nil
	}
	w.start()
	w.sets = []string{"starling/web/b"}
	w.gen = newWorld(t, mod("web", isOn(), code("1", hk("a", onWatch("nodes")))), site).gen
	w.gen.Tree.Values = map[string]any{"siteEnabled": false}
	held := finalizers.Finalizer{Hook: "web/c", APIVersion: "v1", Kind: "Node", Name: finalizers.Prefix + "web-c"}
	w.kept["web"][object.DataKey(finalizers.Key, held.Hook)] = held.Encode()
	w.stays = "noon"
	w.start()
	return w, []*generation.Module{web, shop, site}
}

// While another process may have a newer tree, nothing goes that the tree lacks or switches off: no release, no set,
// and nothing that hooks have kept. Later all of it goes as if it had left the tree then.
func TestATreeThatMayBeOlderTakesNothingAway(t *testing.T) {
	w, _ := lacking(t)
	layer := object.DataKey(subjects.LayerKey, "web/b")
	check := func(when, until string) {
		t.Helper()
		w.advance(time.Hour)
		if len(w.gone)+len(w.unheld) > 0 || w.kept["web"][layer] == nil {
			t.Errorf("%s: gone %v, finalizers of %v, kept %v", when, w.gone, w.unheld, copyKept(w.kept))
		}
		w.state("shop", status.ModulePaused, "not in the module tree; it stays as it is until "+until)
		w.state("site", status.ModuleOff, "siteEnabled: false in values.yaml; it stays as it is until "+until)
		w.state("web", status.ModuleReady, "")
	}
	check("at first", "noon")
	w.in(Stays{Until: "midnight"})
	check("for another reason", "midnight")

	w.in(Stays{})
	w.state("shop", status.ModuleUninstalling, "in a moment")
	w.advance(9 * time.Second)
	if slices.Contains(w.gone, "shop") {
		t.Errorf("gone at once: %v", w.gone)
	}
	w.advance(time.Second)
	slices.Sort(w.gone)
	if want := []string{"shop", "site", "starling/web/b"}; !slices.Equal(w.gone, want) {
		t.Errorf("gone %v, want %v", w.gone, want)
	}
	if len(w.unheld) != 1 {
		t.Errorf("finalizers of %v are gone", w.unheld)
	}
	w.stays = ""
	w.start()
	if w.kept["web"][layer] != nil {
		t.Errorf("the next process keeps %v", copyKept(w.kept))
	}
}

// A module has its release under another name in the older tree: neither name is taken away.
func TestAnOlderTreeRenamesNoRelease(t *testing.T) {
	web, _ := webAndShop()
	w := newWorld(t, web)
	w.start()
	renamed := mod("web", isOn(), code("1", hk("a", onWatch("nodes"))))
	renamed.Decl.Release = "site"
	w.gen = newWorld(t, renamed).gen
	w.stays = "noon"
	w.start()
	w.advance(time.Hour)
	w.state("web", status.ModuleBlocked, "its release has another name or namespace; it stays as it is until noon")
	if len(w.gone) > 0 || len(w.installed) != 1 {
		t.Errorf("gone %v, installed %v", w.gone, w.installed)
	}
	w.in(Stays{})
	w.state("web", status.ModuleReady, "")
	if !slices.Equal(w.gone, []string{"web"}) || len(w.installed) != 1 || w.installed[0].Name != "site" {
		t.Errorf("gone %v, installed %v", w.gone, w.installed)
	}
}

// A user switches a module off while the tree takes nothing away: it goes at once.
func TestUsersSwitchOffWhatTheTreeDoesNot(t *testing.T) {
	w, _ := lacking(t)
	off(w, "web")
	if want := []string{"web", "starling/web/b"}; !slices.Equal(w.gone, want) {
		t.Errorf("gone %v, want %v", w.gone, want)
	}
}

// The newer tree arrives: modules and hooks go on with what is kept of them.
func TestANewerTreeArrives(t *testing.T) {
	w, newer := lacking(t)
	w.values = map[string]any{}
	remembered := false
	b := w.hooks["web/b"]
	w.hooks["web/b"] = func(r RunHook) (effect.Effects, error) {
		remembered = r.Memory.State["known"] == true
		return b(r)
	}
	w.reload(newer...)
	w.in(Stays{})
	w.advance(time.Hour)
	for _, name := range []string{"web", "shop", "site"} {
		w.state(name, status.ModuleReady, "")
	}
	if len(w.gone) > 0 || !remembered {
		t.Errorf("gone %v; the hook remembers: %v", w.gone, remembered)
	}
}

// The newer tree has a controller that owns one kind more: nothing is known of its children of that kind, so none goes,
// and a parent that is being deleted stays. Later they go as always.
func TestAnOlderTreeKeepsChildrenOfOtherKinds(t *testing.T) {
	const former = "web/a#children-secret"
	begun := func(w *world) bool {
		return slices.ContainsFunc(w.watched, func(id string) bool { return strings.HasPrefix(id, "+"+former) })
	}
	older := func(t *testing.T) *world {
		w := newWorld(t, owner("1", "ConfigMap", "Secret"))
		w.objects["x"] = Object{Name: "x"}
		w.start()
		w.gen = newWorld(t, owner("2", "ConfigMap")).gen
		w.stays, w.watched = "noon", nil
		w.seen = func(a RunHook) { w.waits = reconcile.Unsure(a.Unsynced) }
		w.start()
		w.happens("deleted", "x")
		w.advance(time.Hour)
		if _, there := w.objects["x"]; !there || begun(w) {
			t.Errorf("the parent is there: %v; watched %v", there, w.watched)
		}
		w.state("web", status.ModuleReady, "")
		return w
	}
	t.Run("the hold ends", func(t *testing.T) {
		w := older(t)
		w.in(Stays{})
		w.advance(time.Hour)
		if _, there := w.objects["x"]; there || !begun(w) {
			t.Errorf("the parent is there: %v; watched %v", there, w.watched)
		}
	})
	t.Run("the newer tree arrives", func(t *testing.T) {
		w := older(t)
		w.reload(owner("3", "ConfigMap", "Secret"))
		w.advance(time.Hour)
		if _, there := w.objects["x"]; there || !begun(w) {
			t.Errorf("the parent is there: %v; watched %v", there, w.watched)
		}
	})
	t.Run("a tree without the other kind arrives", func(t *testing.T) {
		w := older(t)
		w.reload(owner("3", "ConfigMap", "Secret"))
		w.watched = nil
		w.objects["y"] = Object{Name: "y"}
		w.happens("added", "y")
		w.reload(owner("4", "ConfigMap"))
		w.happens("deleted", "y")
		w.advance(time.Hour)
		if _, there := w.objects["y"]; !there || begun(w) {
			t.Errorf("the parent is there: %v; watched %v", there, w.watched)
		}
		w.in(Stays{})
		w.advance(time.Hour)
		if _, there := w.objects["y"]; there || !begun(w) {
			t.Errorf("the parent is there: %v; watched %v", there, w.watched)
		}
	})
}

// The tree switches a module off that has webhooks: they stay registered. Users switch it off as always.
func TestAnOlderTreeKeepsWebhooksOfModulesThatAreOff(t *testing.T) {
	reviewed := code("1", hk("a", onWatch("nodes"), builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}))
	for name, no := range map[string]Config{
		"in the ConfigMap":     {State: ConfigPresent, Data: map[string]string{"shopEnabled": "false"}},
		"in the Module object": {State: ConfigPresent, ObjectsState: ConfigPresent, Objects: map[string]ConfigObject{"shop": {Enabled: new(false)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mod("web", isOn(), reviewed), mod("shop", isOn(), reviewed))
			w.start()
			w.gen.Tree.Values = map[string]any{"webEnabled": false}
			w.stays, w.served = "noon", nil
			w.start()
			w.in(no)
			w.advance(time.Hour)
			if want := []string{"shop: shop/a", "shop:"}; !slices.Equal(w.served, want) {
				t.Errorf("served %q, want %q", w.served, want)
			}
			w.in(Stays{})
			if want := []string{"shop: shop/a", "shop:", "web:"}; !slices.Equal(w.served, want) {
				t.Errorf("served %q, want %q", w.served, want)
			}
		})
	}
}

// The newer tree has a cleanup where this one has none: its finalizers stay on objects until the tree counts.
func TestAnOlderTreeKeepsFinalizersOfANewerHook(t *testing.T) {
	for name, older := range map[string]*generation.Hook{"for_each": eachHook("a", false), "no for_each": hk("a", onWatch("nodes"))} {
		w := eachWorld(t, true, "x")
		w.start()
		if !w.objects["x"].Held {
			t.Fatal("no finalizer")
		}
		w.gen = newWorld(t, mod("web", isOn(), code("0", older))).gen
		w.stays = "noon"
		w.start()
		w.advance(time.Hour)
		if !w.objects["x"].Held {
			t.Errorf("%s: the finalizer is gone", name)
		}
		w.state("web", status.ModuleReady, "")
		w.in(Stays{})
		w.advance(time.Hour)
		if w.objects["x"].Held {
			t.Errorf("%s: the finalizer stays", name)
		}
	}
}
