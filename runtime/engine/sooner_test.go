package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// failing is a world whose module has one hook that has failed until its next try is minutes away.
type failing struct {
	*world
	fails   bool
	started time.Time // when the last run did
	held    Action    // that stays under way
}

// moments are those of a run at which it may fail: what is under way then, and the answer of a failure.
var moments = map[string]struct {
	is     func(Action) bool
	answer func(Action) Input
}{
	"the run": {func(a Action) bool { _, is := a.(RunHook); return is }, func(a Action) Input { return RunDone{Run: a.(RunHook).Run, Err: errBoom} }},
	"the commit": {func(a Action) bool { _, is := a.(Commit); return is }, func(a Action) Input {
		return Committed{Run: a.(Commit).Run, Err: errBoom}
	}},
	"the save": {func(a Action) bool { s, is := a.(Save); return is && len(s.Runs) > 0 }, func(a Action) Input { return Saved{Op: a.(Save).Op, Err: errBoom} }},
}

// fail has the hook fail at a moment until its next try is minutes away, and waits for that try: it is under way then.
func (f *failing) fail(moment string, trigger func()) {
	f.t.Helper()
	at := moments[moment]
	n := 0
	f.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		n++ // the next layer always differs
		e := set("n", int64(n))
		e.Writes = []effect.Write{{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "out"}}}
		return e, nil
	}
	f.stop = func(a Action) bool {
		if _, is := a.(RunHook); is {
			f.started = f.now
		}
		if !f.fails || !at.is(a) {
			return false
		}
		f.held = a
		return true
	}
	f.fails = true
	trigger()
	for range 9 {
		if f.held == nil {
			f.t.Fatalf("%s is not under way; ran %q", moment, f.runs)
		}
		f.answer(moment)
		f.next(f.started.Add(6 * time.Minute))
	}
	if f.held == nil {
		f.t.Fatalf("%s: no tenth try", moment)
	}
}

// answer has what is under way fail.
func (f *failing) answer(moment string) {
	in := moments[moment].answer(f.held)
	if done, is := in.(RunDone); is {
		done.Lookups = f.looks[f.held.(RunHook).Key]
		in = done
	}
	f.held = nil
	f.in(in)
}

// next moves the clock until something is under way again, at most to a time.
func (f *failing) next(most time.Time) {
	for f.held == nil && !f.wakeAt.IsZero() && !f.wakeAt.After(most) {
		f.now, f.wakeAt = f.wakeAt, time.Time{}
		f.in(Tick{})
	}
}

// soon fails the try that is under way, and wants the next one a second after that began. The one after it, which
// fails as well, is minutes away again.
func (f *failing) soon(moment string) {
	f.t.Helper()
	began := f.started
	f.answer(moment)
	due := began.Add(time.Second)
	if due.Before(f.now) {
		due = f.now
	}
	f.next(due)
	if moment == "the save" && f.started.After(began) {
		return // what is kept waits for the API server, the hook has not
	}
	if f.held == nil || f.started.After(due) {
		f.t.Fatalf("the next try has not begun %s after the last one", due.Sub(began))
	}
	again := f.started
	f.answer(moment)
	if f.next(again.Add(4 * time.Minute)); f.held != nil && f.started.Sub(again) < 4*time.Minute {
		f.t.Errorf("nothing has come meanwhile, and the next try begins %s after the last one", f.started.Sub(again))
	}
}

// A change has a failing hook tried again a second after its last try, whenever it comes: while the run is under way,
// its commit, or the write of what is kept.
func TestAChangeShortensTheWaitWheneverItComes(t *testing.T) {
	sources := map[string]struct {
		world  func(t *testing.T) *world
		first  func(w *world)
		change func(w *world)
	}{
		"a watch": {
			func(t *testing.T) *world {
				w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
				w.start()
				return w
			},
			func(w *world) { w.changed("web/a#nodes") },
			func(w *world) { w.changed("web/a#nodes") },
		},
		"an object of for_each": {
			func(t *testing.T) *world { return parents(t, "x") },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) { w.happens("modified", "x") },
		},
		"a child": {
			func(t *testing.T) *world { return parents(t, "x", "y") },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) { w.children(child("c", effect.WakesKeys("x"))) },
		},
		"something for all objects": {
			func(t *testing.T) *world { return parents(t, "x") },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) { w.children(child("c", nil)) },
		},
		"a row that a controller has read": {
			func(t *testing.T) *world { return readers(t, map[string]string{"x": "/a/p"}) },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) { w.pods(pod("p")) },
		},
		"values that a controller has read": {
			func(t *testing.T) *world { return readers(t, map[string]string{"x": "values"}) },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) {
				w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "color: blue\n"}})
			},
		},
		"values": {
			func(t *testing.T) *world {
				w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
				w.start()
				return w
			},
			func(w *world) { w.changed("web/a#nodes") },
			func(w *world) {
				w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "color: blue\n"}})
			},
		},
		"a stage": {
			func(t *testing.T) *world {
				w := newWorld(t, mod("web", isOn(), hk("a", onBefore(), onWatch("nodes"))))
				w.start()
				return w
			},
			func(w *world) { w.changed("web/a#nodes") },
			func(w *world) {
				w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "color: blue\n"}})
			},
		},
		"a tick of a schedule": {
			func(t *testing.T) *world {
				w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"), onSchedule(builtins.ScheduleBinding{Cron: "*/30 * * * *", Timezone: "UTC"}))))
				w.start()
				return w
			},
			func(w *world) { w.changed("web/a#nodes") },
			func(w *world) { w.advance(30 * time.Minute) },
		},
		"another look that was asked for": {
			func(t *testing.T) *world { return parents(t, "x") },
			func(w *world) { w.happens("modified", "x") },
			func(w *world) {
				m := w.e.modules["web"]
				w.e.requeueAt(m.hooks[0].subjects.At("x"), w.now.Add(time.Millisecond))
				w.now = w.now.Add(time.Millisecond)
				w.in(Tick{})
			},
		},
	}
	for name, source := range sources {
		for moment := range moments {
			t.Run(name+", "+moment, func(t *testing.T) {
				f := &failing{world: source.world(t)}
				f.fail(moment, func() { source.first(f.world) })
				source.change(f.world)
				f.soon(moment)
			})
		}
	}
}

// The same of a release, and of enabled(): values that move while Helm works, or while they are asked.
func TestValuesThatMoveShortenTheWaitOfAReleaseAndOfEnabled(t *testing.T) {
	move := func(w *world, color string) {
		w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true", "web": "color: " + color + "\n"}})
	}
	m := mod("web", isOn())
	w := newWorld(t, m)
	w.start()
	w.helmErr["web"] = errors.New("no")
	move(w, "red")
	w.advance(time.Hour)
	w.holdHelm, w.heldHelm = "web", Release{}
	w.advance(6 * time.Minute)
	move(w, "blue")
	w.in(Released{Op: w.heldHelm.Op, Err: errors.New("no")})
	if at := w.e.modules["web"].pass.Failed().At; at.IsZero() || at.After(w.now.Add(time.Second)) {
		t.Errorf("Helm's next try is %s later", at.Sub(w.now))
	}

	m = mod("web", isOn())
	m.Enabled = noFunction{}
	w = newWorld(t, m)
	fails := errors.New("no")
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return builtins.Decision{}, fails }
	var asked Evaluate
	w.told = func(a Action) {
		if a, is := a.(Evaluate); is {
			asked = a
		}
	}
	w.start()
	w.advance(time.Hour)
	w.holdEvaluate = true
	w.advance(6 * time.Minute)
	move(w, "blue")
	w.in(Evaluated{Op: asked.Op, Err: fails})
	if at := w.e.modules["web"].eval.At; at.IsZero() || at.After(w.now.Add(time.Second)) {
		t.Errorf("enabled() is asked again %s later", at.Sub(w.now))
	}
}
