package engine

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/object"
)

// A record that a newer version has kept, of a kind that this one does not know, is there when that one leads again: no
// start, write or reload takes it away. It goes with its module.
func TestWhatANewerVersionHasKeptStays(t *testing.T) {
	const newer, global = "schemes.web", "config-of-tomorrow"
	layer := object.DataKey(subjects.LayerKey, "web/gone")
	shop := mod("shop", isOn())
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))), shop)
	w.opts.Grace = 10 * time.Second
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(1)), nil }
	w.kept = map[string]map[string][]byte{
		"web":      {newer: []byte("{"), layer: []byte(`{"hook":"web/gone","ops":[]}`)},
		globalName: {global: []byte("?")},
	}
	check := func(when string) {
		t.Helper()
		if string(w.kept["web"][newer]) != "{" || string(w.kept[globalName][global]) != "?" {
			t.Errorf("%s, this is kept: %q", when, w.kept)
		}
	}
	w.start()
	check("after a start")
	if w.kept["web"][layer] != nil {
		t.Error("the layer of a hook that is gone is kept")
	}
	w.changed("web/a#nodes")
	check("after a run")
	w.reload(mod("web", isOn(), code("2", hk("a", onWatch("nodes")))), shop)
	check("after a reload")
	w.start()
	check("after a restart")
	w.reload(shop)
	w.advance(time.Hour)
	if len(w.kept["web"]) > 0 {
		t.Errorf("the module has gone, and this is kept of it: %q", w.kept["web"])
	}
	if string(w.kept[globalName][global]) != "?" {
		t.Error("what is kept for all has gone with the module")
	}
}
