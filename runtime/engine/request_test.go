package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
)

// end ends the run that is on hold. The next run of the hook is held, too.
func (w *world) end(err error) {
	w.t.Helper()
	if w.held == nil {
		w.t.Fatal("no run is on hold")
	}
	a := w.held[w.hold][0].(RunHook)
	w.held = nil
	w.in(RunDone{Run: a.Run, Err: err})
}

// A request goes before what waits in the lane, but not twice in a row; one that fails is not
// tried again.
func TestRequestsWaitInTheLane(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0), onReceive("/x")), hk("b", onStartup(1)), hk("c", onStartup(2))))
	w.hold = "web/a"
	w.start()
	for id := range uint64(3) {
		w.in(ask(id+1, "web/a"))
	}
	w.wantRuns("web/a startup")
	w.end(nil)
	w.wantRuns("web/a request")
	w.end(errBoom)
	w.wantRuns("web/b startup", "web/a request")
	wantSaid(t, w, "request 1: "+errBoom.Error())
	w.end(nil)
	w.wantRuns("web/c startup", "web/a request")
	w.end(nil)
	wantSaid(t, w, "request 2: <nil>", "request 3: <nil>")
	w.advance(time.Hour)
	if len(w.runs) > 0 {
		t.Errorf("runs %v", w.runs)
	}
	if s := w.e.Status().Hooks[0]; s.Runs != 4 || s.Failures != 1 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

func TestTooManyRequestsWait(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onReceive("/x"))))
	w.hold = "web/a"
	w.start()
	for id := range uint64(1 + maxWaitingRequests) {
		w.in(ask(id+1, "web/a"))
	}
	wantSaid(t, w)
	w.in(ask(200, "web/a"))
	wantSaid(t, w, "request 200: 100 requests wait for hook web/a already: try again later")
	w.end(nil)
	w.in(ask(201, "web/a"))
	wantSaid(t, w, "request 1: <nil>")
}

// The time between two runs is no matter of requests: they have their own rate.
func TestRequestsDoNotWaitForMinInterval(t *testing.T) {
	h := hk("a", onStartup(0), onReceive("/x"))
	h.MinInterval, h.Burst = time.Hour, 1
	w := newWorld(t, mod("web", isOn(), h))
	w.start()
	w.in(ask(1, "web/a"))
	w.in(ask(2, "web/a"))
	wantSaid(t, w, "request 1: <nil>", "request 2: <nil>")
}

// Requests that wait have an answer at once when there is none to be waited for.
func TestRequestsThatWaitAreRefused(t *testing.T) {
	web := func(edit func(*generation.Hook)) *generation.Module {
		h := hk("a", onWatch("nodes"), onReceive("/x"))
		edit(h)
		return mod("web", isOn(), h)
	}
	const notNow = ": it does not answer now"
	for name, c := range map[string]struct {
		happens func(*world)
		want    string
	}{
		"module off": {func(w *world) { w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}}) },
			"module web is not running" + notNow},
		"module gone":  {func(w *world) { w.reload(mod("shop", isOn())) }, "module web is not running" + notNow},
		"snapshots":    {func(w *world) { w.in(WatchFailed{ID: "web/a#nodes", Reason: "stopped", Lacks: true}) }, "its snapshots are not complete" + notNow},
		"another lane": {func(w *world) { w.reload(web(func(h *generation.Hook) { h.Queue = "other" })) }, "it is another one now, or gone" + notNow},
		"another path": {func(w *world) {
			w.reload(web(func(h *generation.Hook) { h.Bindings = slices.Clone(h.Bindings[:1]) }))
			w.end(nil)
		}, `hook web/a takes no requests at "receive"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web(func(*generation.Hook) {}))
			w.hold = "web/a"
			w.start()
			w.in(ask(1, "web/a"))
			wantSaid(t, w)
			c.happens(w)
			if len(w.said) == 0 || !strings.HasPrefix(w.said[0], "request 1: hook web/a") || !strings.HasSuffix(w.said[0], c.want) {
				t.Errorf("said %q", w.said)
			}
		})
	}
}

// An object goes while a call about it waits.
func TestACallWaitsForAnObjectThatGoes(t *testing.T) {
	h := eachHook("a", false)
	h.Fn, h.Parallel = noFunction{}, 2
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"], w.objects["y"] = Object{Name: "x"}, Object{Name: "y"}
	w.start()
	w.in(Requested{ID: 9, Hook: "web/a", Key: "z"})
	wantSaid(t, w, "request 9: hook web/a runs for each object of nodes: say for which; there are x, y")
	w.hold = "web/a"
	w.happens("modified", "y")
	w.in(Requested{ID: 1, Hook: "web/a", Key: "x"})
	w.in(Requested{ID: 2, Hook: "web/a", Key: "y"})
	w.happens("deleted", "x")
	w.end(nil)
	wantSaid(t, w, "request 1: hook web/a runs for each object of nodes: say for which; there are y")
	w.end(errors.New("boom"))
	wantSaid(t, w, "request 2: boom")
	if got := fmt.Sprint(w.runs[len(w.runs)-1]); got != "web/a[y] modified" {
		t.Errorf("the last run is %s", got)
	}
}

// Of a session's hook there are runs in a module that does not run.
func TestASessionRunsBesideAModuleThatIsOff(t *testing.T) {
	h := hk("a")
	h.Session, h.Fn = true, noFunction{}
	w := newWorld(t, mod("web", builtins.ModuleDecl{}, h))
	w.start()
	w.in(Requested{ID: 1, Hook: "web/a"})
	wantSaid(t, w, "request 1: <nil>")
}

// A hook that must not run stays registered, whether its watches are complete or not: its failure policy decides, as
// for any hook that fails.
func TestABarredHookStaysRegistered(t *testing.T) {
	for _, complete := range []bool{true, false} {
		guard := hk("guard", builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}, onWatch("nodes"))
		w := newWorld(t, mod("web", isOn(), guard, hk("b", onReceive("/x"))))
		w.unsynced["web/guard#nodes"] = !complete
		w.e = New(w.opts)
		w.in(Config{State: ConfigPresent})
		w.in(Start{Generation: w.gen, Barred: map[string]string{"web/guard": "quarantined"}})
		if got := w.served[len(w.served)-1]; got != "web: web/guard web/b" {
			t.Errorf("complete %v: served %q", complete, w.served)
		}
	}
}
