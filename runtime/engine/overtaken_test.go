package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// The wait of a release ends once, with the first change of its values or files, and the next one begins at once. All
// else does not end it.
func TestAChangeEndsTheWaitOfARelease(t *testing.T) {
	web := mod("web", isOn(), hk("a", onWatch("nodes")))
	var overtaken []uint64
	for _, c := range []struct {
		name   string
		change func(*world)
		ends   bool
	}{
		{"values of a hook", func(w *world) { w.changed("web/a#nodes") }, true},
		{"values of the config", func(w *world) {
			w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "n: 5\n"}})
		}, true},
		{"another chart", func(w *world) { w.reload(mod("web", isOn(), code("2", hk("a", onWatch("nodes"))))) }, true},
		{"the annotation", func(w *world) { w.in(Reconcile{Module: "web"}) }, false},
		{"time", func(w *world) { w.advance(time.Minute) }, false},
		{"a tick", func(w *world) { w.in(Tick{}) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			overtaken = nil
			w := newWorld(t, web)
			n := int64(0)
			w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { n++; return set("n", n), nil }
			w.told = func(a Action) {
				if a, is := a.(Overtake); is {
					overtaken = append(overtaken, a.Op)
				}
			}
			w.holdHelm = "web"
			w.start()
			held := w.heldHelm
			c.change(w)
			if !c.ends {
				if len(overtaken) > 0 {
					t.Fatal("it waits no more")
				}
				return
			}
			w.in(Tick{})
			if !slices.Equal(overtaken, []uint64{held.Op}) {
				t.Fatalf("ended are the waits of %v, not of %d alone", overtaken, held.Op)
			}
			w.in(Released{Op: held.Op, Changed: true, Err: &lane.Awaits{For: lane.AwaitsChange, Err: errors.New("late")}})
			if w.heldHelm.Op == held.Op {
				t.Fatal("the next one has not begun")
			}
			w.state("web", status.ModuleReleasing, "")
			w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: 2})
			w.state("web", status.ModuleReady, "")
		})
	}
}

// A release that is rolled back says why, is kept as it is, and is not tried again until something changes.
func TestAReleaseThatIsRolledBack(t *testing.T) {
	w := newWorld(t, mod("web", isOn()))
	w.holdHelm = "web"
	w.start()
	held := w.heldHelm
	w.in(Released{Op: held.Op, Changed: true, Revision: 3, Err: &lane.Awaits{For: lane.AwaitsChange, Err: errors.New("rolled back")}})
	w.state("web", status.ModuleFailed, "rolled back")
	w.advance(24 * time.Hour)
	if w.heldHelm.Op != held.Op {
		t.Fatal("it is tried again, and nothing has changed")
	}
	w.in(drifts(deployment))
	if len(w.repaired) != 1 {
		t.Errorf("repaired %v", w.repaired)
	}
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "n: 5\n"}})
	if w.heldHelm.Op == held.Op {
		t.Fatal("it is not tried with other values")
	}
	w.in(Released{Op: w.heldHelm.Op, Changed: true, Revision: 4})
	w.state("web", status.ModuleReady, "")
}
