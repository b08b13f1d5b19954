package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/watch"
)

// An object that was deleted and made anew while nobody watched comes as a change, of generation 1 as before: what it says
// is heard.
func TestAnObjectThatWasMadeAnewIsHeard(t *testing.T) {
	b := newInbox()
	u := &userConfig{put: b.put, own: effect.Instance{Namespace: "ops", Name: "starling"}, objects: map[string]modules.Object{}, asked: map[string]engine.ConfigObject{}, gone: map[string]bool{}}
	u.read(func() *engine.Config { return &engine.Config{State: engine.ConfigPresent} })
	u.again()
	u.state = engine.ConfigPresent
	change := func(uid, size string) {
		obj := map[string]any{
			"metadata": map[string]any{"name": "web", "uid": uid, "generation": int64(1)},
			"spec":     map[string]any{"instance": "ops/starling", "values": map[string]any{"size": size}},
		}
		kept, _, err := modules.Filter(obj)
		if err != nil {
			t.Fatal(err)
		}
		u.change([]watch.Event{{Type: watch.Modified, Name: "web", Result: kept}})
	}
	change("one", "small")
	for _, want := range []string{"small", "large"} {
		in, ok := b.take()
		if config, is := in.(engine.Config); !ok || !is || !strings.Contains(fmt.Sprint(config.Objects["web"]), want) {
			t.Fatalf("the engine hears of %+v, want %s", in, want)
		}
		change("two", "large")
	}
	// Nor does what it said before outlive one that says nothing.
	u.change([]watch.Event{{Type: watch.Deleted, Name: "web"}})
	if in, ok := b.take(); !ok || len(in.(engine.Config).Objects) != 0 {
		t.Fatalf("the engine hears of %+v, want no object", in)
	}
	kept, _, err := modules.Filter(map[string]any{
		"metadata": map[string]any{"name": "web", "uid": "three", "generation": int64(1), "labels": map[string]any{effect.InstanceLabel: "ops.starling"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	u.change([]watch.Event{{Type: watch.Added, Name: "web", Result: kept}})
	if _, ok := b.take(); !ok {
		t.Error("the engine does not hear of an object that was made anew without a spec")
	}
}
