package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// holdConfig has writes of what is kept for the global hooks stay under way. The result carries out the last one.
func (w *world) holdConfig() (carryOut func()) {
	var held Save
	w.stop = func(a Action) bool {
		save, is := a.(Save)
		if is = is && save.Module == globalName; is {
			held = save
		}
		return is
	}
	return func() {
		w.t.Helper()
		w.stop = nil
		if held.Op == 0 {
			w.t.Fatal("nothing is kept")
		}
		w.in(w.carryOut(held))
	}
}

// Nothing is done by a config that is not kept: a process that is killed before that has made nothing that the next
// one, which goes by what is kept while there is no ConfigMap, does not know of.
func TestTheConfigCountsOnceItIsKept(t *testing.T) {
	w := newWorld(t, mod("web", builtins.ModuleDecl{}, hk("start", onStartup(1))))
	w.start()
	carryOut := w.holdConfig()
	w.config("webEnabled=true", "web=x: 1")
	w.state("web", status.ModuleOff, "add `webEnabled: true`")
	w.wantRuns()
	w.wantReleased()

	next := newWorld(t, mod("web", builtins.ModuleDecl{}, hk("start", onStartup(1))))
	next.e = New(next.opts)
	next.in(Config{State: ConfigMissing})
	next.in(Start{Generation: next.gen, Kept: w.kept, Installed: slices.Clone(w.installed)})
	next.state("web", status.ModuleOff, "add `webEnabled: true`")

	carryOut()
	w.wantRuns("web/start startup")
	w.wantReleased("web#1")
	w.in(Config{State: ConfigMissing})
	w.state("web", status.ModuleReady, "")
}

// While what is kept cannot be written the config of before is in force, and is tried again.
func TestAConfigThatCannotBeKeptDoesNotCount(t *testing.T) {
	w := newWorld(t, mod("web", isOn()), mod("shop", isOn()))
	w.start()
	w.config("web=x: 1")
	w.wantReleased("shop#1", "web#1", "web#2")
	w.saveErr = errBoom
	w.config("web=x: 2")
	w.config("web=x: 2", "shopEnabled=false", "global=y: 1")
	w.config("web=x: 3", "shop=y: 1")
	w.advance(longSave)
	if got := w.e.Values("web")["x"]; got != int64(1) || len(w.gone) > 0 {
		t.Errorf("in force is %v, gone is %v", got, w.gone)
	}
	w.wantReleased("shop#1", "web#1", "web#2")
	w.saveErr = nil
	w.advance(longSave)
	w.wantReleased("shop#1", "web#1", "web#2", "shop#2", "web#3")
	// A config that is taken back before it is kept leaves nothing that waits.
	w.saveErr = errBoom
	w.config("web=x: 4", "shop=y: 1")
	w.config("web=x: 3", "shop=y: 1")
	w.in(Reconcile{Module: "web"})
	w.saveErr = nil
	w.advance(longSave)
	w.in(Reconcile{Module: "web"})
	w.state("web", status.ModuleReady, "")
	w.wantReleased("shop#1", "web#1", "web#2", "shop#2", "web#3")
}

// longSave is longer than a write that has failed waits.
const longSave = time.Minute

// The first config counts once it is kept, too: no module is decided before.
func TestNothingIsDecidedBeforeTheFirstConfigIsKept(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.e = New(w.opts)
	carryOut := w.holdConfig()
	w.config("webEnabled=false")
	w.in(Start{Generation: w.gen})
	w.state("web", status.ModuleStarting, "reading the configuration")
	if ready, why := w.e.Ready(); ready || why != "reading the configuration" {
		t.Errorf("ready %t: %s", ready, why)
	}
	carryOut()
	w.state("web", status.ModuleOff, "webEnabled: false in config")
	w.wantReleased()
}

// A tree that brings what the user's config speaks of meets that config, not the one of before.
func TestANewTreeMeetsTheConfigThatIsMeant(t *testing.T) {
	asks := func(kind string) *tree.File {
		return &tree.File{Path: "web/openapi/config-values.yaml", Data: []byte("properties: {x: {type: " + kind + "}}\n")}
	}
	web, next := mod("web", isOn(), hk("start", onStartup(1))), mod("web", isOn(), hk("start", onStartup(1)))
	web.Tree.ConfigSchema, next.Tree.ConfigSchema = asks("integer"), asks("string")
	next.Hooks[0].Digest = "edited"
	w := newWorld(t, web)
	w.start()
	w.config("web=x: a", "shopEnabled=false")
	w.wantReleased("web#1")
	carryOut := w.holdConfig()
	w.reload(next, mod("shop", isOn(), hk("boot", onStartup(1))))
	w.state("shop", status.ModuleStarting, "reading the configuration")
	w.wantReleased("web#1")
	w.wantRuns()
	carryOut()
	w.state("shop", status.ModuleOff, "shopEnabled: false in config")
	w.wantReleased("web#1", "web#2")
	if got := w.e.Values("web")["x"]; got != "a" {
		t.Errorf("in force is %v", got)
	}
}

// Nothing of a module is made before its place among the others is kept: a process that has it no more in its tree
// takes it away in that order.
func TestNothingIsMadeBeforeItsPlaceIsKept(t *testing.T) {
	w := newWorld(t, mod("db", isOn()))
	w.start()
	carryOut := w.holdConfig()
	w.reload(mod("db", isOn()), mod("app", builtins.ModuleDecl{Enabled: true, After: []string{"db"}}))
	w.changed("nobody")
	w.wantReleased("db#1")
	carryOut()
	w.wantReleased("db#1", "app#1")

	next := newWorld(t, mod("other", isOn()))
	next.e, next.kept, next.installed = New(next.opts), w.kept, slices.Clone(w.installed)
	next.in(Config{State: ConfigMissing})
	next.in(Start{Generation: next.gen, Kept: w.kept, Installed: slices.Clone(w.installed)})
	next.advance(time.Hour)
	if want := []string{"app", "db"}; !slices.Equal(next.gone, want) {
		t.Errorf("gone are %v, want %v", next.gone, want)
	}
}
