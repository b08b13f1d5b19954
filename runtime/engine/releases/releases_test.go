package releases

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

var (
	t0  = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	web = Ref{Module: "web", Name: "web", Namespace: "shop"}
)

// world carries out steps at once, but for those of Helm and of hooks, which a test ends.
type world struct {
	t    *testing.T
	p    *Pass
	m    Module
	now  time.Time
	ref  Ref
	bad  string // why values must not reach Helm
	has  map[builtins.Stage][]string
	all  []string // hooks of after_helm that are always due
	done []string
}

func newWorld(t *testing.T, installed ...Ref) *world {
	w := &world{t: t, p: New(installed...), now: t0, ref: web, has: map[builtins.Stage][]string{}}
	w.m = Module{Open: true, Release: true, Chart: true, Seen: map[string]any{"v": 1}}
	return w
}

// steps carries out all that is due.
func (w *world) steps() {
	for range 100 {
		step := w.p.Next(w.m, w.now)
		if step.Do == CheckValues {
			if w.bad != "" {
				w.done = append(w.done, "refused")
				w.p.Refuse(w.bad)
				continue
			}
			step = w.p.Install(w.ref, w.m)
		}
		switch step.Do {
		case Nothing:
			return
		case RunStage:
			hooks := map[string]bool{}
			due := w.has[step.Stage]
			if step.Always {
				due = w.all
			}
			for _, id := range due {
				hooks[id] = true
			}
			if len(hooks) > 0 {
				w.done = append(w.done, string(step.Stage))
			}
			w.p.Wait(step.Stage, hooks)
		case Hold:
			w.done = append(w.done, "hold")
			return
		case Install:
			w.done = append(w.done, "install "+step.Ref.Name)
			return
		case Uninstall:
			w.done = append(w.done, "uninstall "+step.Ref.Name)
			return
		case GiveBack:
			w.done = append(w.done, "give back "+step.Ref.Name)
			return
		case RemoveSets:
			w.done = append(w.done, "sets")
			w.p.Removing()
			return
		case End:
			w.done = append(w.done, "end")
			return
		}
	}
	w.t.Fatalf("no rest after %v", w.done)
}

// ran ends a run of a hook for a stage that may have moved the values.
func (w *world) ran(hook string, stage builtins.Stage, moves, succeeded bool) {
	events := []builtins.Event{{Type: EventType(stage), Binding: string(stage)}}
	if moves {
		w.moved(w.p.Cause().Then(hook, false, string(StageOf(events))))
	}
	w.p.Ran(hook, events, succeeded)
	w.steps()
}

// move is a change of values from outside.
func (w *world) move() { w.moved(nil) }

func (w *world) moved(causes ...*effect.Cause) {
	w.m.Seen = map[string]any{"v": w.m.Seen["v"].(int) + 1}
	w.p.Want(true, causes...)
}

func (w *world) released(err error, changed bool) {
	w.p.Released(Helm{Err: err, Changed: changed, Revision: 7}, w.now, 0)
	w.steps()
}

func (w *world) want(steps ...string) {
	w.t.Helper()
	if !slices.Equal(w.done, steps) {
		w.t.Errorf("steps: %q, want %q", w.done, steps)
	}
	w.done = nil
}

// After a failure the revision is told, too, also by a process that has not seen the release before.
func TestARevisionThatFailedIsKnown(t *testing.T) {
	for _, revision := range []int{3, 0} {
		w := newWorld(t)
		w.p.Released(Helm{Changed: true, Revision: 2}, w.now, 0)
		w.p.Released(Helm{Err: errors.New("no"), Changed: true, Revision: revision}, w.now, 0)
		if got := w.p.Revision(); got != max(revision, 2) {
			t.Errorf("it is %d after %d", got, revision)
		}
	}
}

func TestAPass(t *testing.T) {
	w := newWorld(t)
	w.has = map[builtins.Stage][]string{builtins.StageBeforeHelm: {"b"}, builtins.StageAfterHelm: {"a"}}
	w.steps()
	w.want()
	w.p.Begin()
	w.steps()
	w.want("before_helm")
	w.ran("b", builtins.StageBeforeHelm, false, false) // it must succeed
	w.want()
	w.ran("b", builtins.StageBeforeHelm, true, true) // its own change is part of this pass
	w.want("install web")
	if w.p.Idle() || !w.p.Working() || w.p.Ready() {
		t.Error("Helm does not work")
	}
	w.released(nil, true)
	w.want("after_helm")
	w.ran("a", builtins.StageAfterHelm, false, false) // it is enough that it was tried
	w.want()
	if !w.p.Ready() || !w.p.Idle() || w.p.Revision() != 7 || !slices.Equal(w.p.Refs(), []Ref{web}) {
		t.Errorf("ready %v, idle %v, revision %d, refs %v", w.p.Ready(), w.p.Idle(), w.p.Revision(), w.p.Refs())
	}
	w.move()
	w.steps()
	w.ran("b", builtins.StageBeforeHelm, false, true)
	w.released(nil, false) // without a change the hooks after it have nothing to do
	w.want("before_helm", "install web")
	if !w.p.Idle() {
		t.Error("it is not idle")
	}
}

// Hooks that always run after Helm do so without a change, too.
func TestHooksAfterEachPass(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageAfterHelm], w.all = []string{"a", "always"}, []string{"always"}
	w.p.Begin()
	w.steps()
	w.released(nil, true)
	w.ran("a", builtins.StageAfterHelm, false, true)
	w.ran("always", builtins.StageAfterHelm, false, true)
	w.want("install web", "after_helm")
	w.move()
	w.steps()
	w.released(nil, false)
	w.want("install web", "after_helm")
	if got := w.p.Waiting(); !slices.Equal(got, []string{"always"}) {
		t.Errorf("it waits for %q", got)
	}
	// Values that they set make one more pass, and not one after the other for ever.
	for range MaxRounds - 1 {
		w.ran("always", builtins.StageAfterHelm, true, true)
		w.released(nil, false)
	}
	w.ran("always", builtins.StageAfterHelm, true, true)
	w.want("install web", "after_helm", "install web", "after_helm", "hold")
}

func TestAModuleWithoutAChartIsReady(t *testing.T) {
	w := newWorld(t)
	w.m.Chart = false
	w.p.Begin()
	w.steps()
	if w.want(); !w.p.Ready() {
		t.Error("it is not ready")
	}
}

func TestAPassWaits(t *testing.T) {
	for name, change := range map[string]func(*Module){
		"it may not begin":          func(m *Module) { m.Open = false },
		"it may not go on":          func(m *Module) { m.Release = false },
		"enabled() has not said so": func(m *Module) { m.Asking = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.has[builtins.StageBeforeHelm] = []string{"b"}
			w.p.Begin()
			if open := w.m; name == "it may not begin" {
				change(&w.m)
				w.steps()
				w.want()
				w.m = open
			}
			w.steps()
			w.want("before_helm")
			open := w.m
			change(&w.m)
			if name != "it may not begin" {
				w.ran("b", builtins.StageBeforeHelm, false, true)
				w.want()
			}
			w.m = open
			w.steps()
			if w.p.Stage() != "" {
				w.ran("b", builtins.StageBeforeHelm, false, true)
			}
			if got := w.done[len(w.done)-1]; got != "install web" {
				t.Errorf("it ends with %s", got)
			}
		})
	}
}

// Values that move while before_helm hooks run have them run once more, a few times; one more
// pass makes up for what moves then.
func TestHooksBeforeHelmRunOnceMore(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageBeforeHelm] = []string{"b"}
	w.p.Begin()
	w.steps()
	for range MaxRounds {
		w.move() // somebody else
		w.ran("b", builtins.StageBeforeHelm, false, true)
	}
	w.want("before_helm", "before_helm", "before_helm", "install web")
	w.released(nil, true)
	w.want("before_helm")
}

func TestHooksAfterHelmThatMoveTheValuesWithoutEnd(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageAfterHelm] = []string{"a"}
	w.p.Begin()
	w.steps()
	for range MaxRounds {
		w.released(nil, true)
		w.ran("a", builtins.StageAfterHelm, true, true)
	}
	w.want("install web", "after_helm", "install web", "after_helm", "install web", "after_helm", "hold")
	if why := w.p.Held(); !strings.Contains(why, "after 3 passes: v;") {
		t.Errorf("held: %q", why)
	}
	w.move() // a change from outside begins anew
	w.steps()
	w.want("install web")
}

// Hooks of several modules that set each other off without end, by what they export, are stopped,
// whatever their stages are; one that moves while ours run has them run once more.
func TestModulesThatMoveEachOthersValuesWithoutEnd(t *testing.T) {
	for _, other := range []builtins.Stage{builtins.StageBeforeHelm, builtins.StageAfterHelm} {
		w := newWorld(t)
		w.has[builtins.StageBeforeHelm] = []string{"b"}
		w.p.Begin()
		w.steps()
		rounds := 0
		for ; w.p.Held() == "" && rounds < MaxRow; rounds++ {
			w.ran("b", builtins.StageBeforeHelm, true, true)
			w.released(nil, true)
			w.m.Seen = map[string]any{"v": w.m.Seen["v"].(int) + 1}
			w.p.Want(false, w.p.Cause().Then("b", false, string(builtins.StageBeforeHelm)).Then("db/a", false, string(other)))
			w.steps()
		}
		if why := w.p.Held(); rounds != MaxRow/2 || !strings.Contains(why, "after 40 runs of before_helm and after_helm hooks") || !strings.Contains(why, ": v;") {
			t.Errorf("after %d rounds held: %q", rounds, why)
		}
		w.done = nil
		w.move()
		w.steps()
		w.want("before_helm")
		var cause *effect.Cause
		w.p.Want(false, cause.Then("db/a", false, string(builtins.StageBeforeHelm)))
		w.ran("b", builtins.StageBeforeHelm, true, true)
		w.want("before_helm")
		w.ran("b", builtins.StageBeforeHelm, true, true)
		w.want("install web")
	}
}

// Values that somebody else has changed as well are no row of after_helm hooks, however that goes
// on, and whichever is heard of first.
func TestOthersEndARowOfPasses(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newWorld(t)
		w.has[builtins.StageAfterHelm] = []string{"a"}
		w.p.Begin()
		w.steps()
		for range 2 * MaxRounds {
			w.released(nil, true)
			var long *effect.Cause
			for range 100 {
				long = long.Then("web/n", true, "")
			}
			if first {
				w.moved(long)
			}
			w.ran("a", builtins.StageAfterHelm, true, true)
			if !first {
				w.moved(long) // while Helm works
			}
		}
		if why := w.p.Held(); why != "" {
			t.Errorf("first %t: held: %q", first, why)
		}
	}
}

// A change that an after_helm hook makes late, while before_helm hooks run, is one of others.
func TestALateChangeHasHooksBeforeHelmRunOnceMore(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageBeforeHelm] = []string{"b"}
	w.p.Begin()
	w.steps()
	var cause *effect.Cause
	w.moved(cause.Then("b", false, string(builtins.StageBeforeHelm)), cause.Then("a", false, string(builtins.StageAfterHelm)))
	w.ran("b", builtins.StageBeforeHelm, true, true)
	w.want("before_helm", "before_helm")
	w.ran("b", builtins.StageBeforeHelm, true, true)
	w.want("install web")
}

// A pass that may not go on is wanted as soon as it may.
func TestAPassThatMayNotGoOnBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageBeforeHelm] = []string{"b"}
	w.p.Begin()
	w.steps()
	w.m.Release, w.m.Open = false, false
	w.steps()
	w.m.Release, w.m.Open = true, true
	w.steps()
	w.want("before_helm", "before_helm")
}

func TestValuesThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.bad = "values: no"
	w.p.Begin()
	w.steps()
	if w.want("refused"); w.p.Held() != "values: no" || !w.p.Idle() {
		t.Errorf("held: %q", w.p.Held())
	}
	w.bad = ""
	w.move()
	w.steps()
	if w.want("install web"); w.p.Held() != "" {
		t.Errorf("held: %q", w.p.Held())
	}
}

func TestWorkThatFailsIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.p.Begin()
	w.steps()
	w.released(errors.New("no"), false)
	w.want("install web")
	if w.p.Failed().Err != "no" || w.p.Ready() || !w.p.Failed().At.After(w.now) {
		t.Errorf("err %q, ready %v, retry at %v", w.p.Failed().Err, w.p.Ready(), w.p.Failed().At)
	}
	w.p.RetrySoon(w.now.Add(time.Millisecond))
	w.now = w.now.Add(time.Millisecond)
	w.steps()
	w.want("install web")
	w.released(nil, true)
	if w.p.Failed().Err != "" || !w.p.Ready() {
		t.Errorf("err %q, ready %v", w.p.Failed().Err, w.p.Ready())
	}
}

func TestAReleaseWithAnotherName(t *testing.T) {
	old := Ref{Module: "web", Name: "old", Namespace: "shop"}
	w := newWorld(t, old)
	w.p.Begin()
	w.steps()
	w.want("uninstall old")
	w.p.Uninstalled(old, nil, w.now, 0)
	w.steps()
	w.want("install web")
}

func TestTheWayOut(t *testing.T) {
	for _, hooks := range []bool{true, false} {
		t.Run(fmt.Sprintf("hooks %v", hooks), func(t *testing.T) {
			w := newWorld(t, web)
			w.m = Module{Ends: true, Leaving: hooks, Sets: true}
			var before, after []string
			if hooks {
				w.has = map[builtins.Stage][]string{builtins.StageBeforeDelete: {"d"}, builtins.StageAfterDelete: {"d"}}
				before, after = []string{"before_delete"}, []string{"after_delete"}
			}
			w.steps()
			w.want(append(before, map[bool][]string{false: {"uninstall web"}}[hooks]...)...)
			if hooks {
				if w.p.MustLeave() {
					t.Error("nothing is uninstalled yet: it may still come back")
				}
				w.ran("d", builtins.StageBeforeDelete, false, true)
				w.want("uninstall web")
			}
			w.p.Uninstalled(web, errors.New("no"), w.now, 0)
			w.steps()
			w.want()
			w.now = w.p.Failed().At
			w.steps()
			w.want("uninstall web")
			if !w.p.MustLeave() {
				t.Error("an uninstall that has begun is not brought to its end")
			}
			w.p.Uninstalled(web, nil, w.now, 0)
			w.steps()
			if hooks {
				w.want(after...)
				w.ran("d", builtins.StageAfterDelete, false, true)
			}
			w.want("sets")
			w.p.Removed(nil, w.now, 0)
			w.m.Sets = false
			w.steps()
			w.want("end")
		})
	}
}

// A release that is given back is not there any more; one that could not be is tried again.
func TestAReleaseIsGivenBack(t *testing.T) {
	ref := Ref{Module: "web", Name: "web", Namespace: "web"}
	w := newWorld(t, ref)
	w.m = Module{GivesBack: true, Sets: true, Chart: true}
	w.steps()
	w.want("give back web")
	if !w.p.Working() || w.p.Uninstalling() {
		t.Error("it is no work, or an uninstall")
	}
	w.p.Uninstalled(ref, errors.New("boom"), w.now, 0)
	w.now = w.p.Failed().At
	w.steps()
	w.want("give back web")
	w.p.Uninstalled(ref, nil, w.now, 0)
	w.steps()
	w.want()
	if w.p.Installed() {
		t.Error("it is still there")
	}
}

// A module that goes down while Helm works waits for that, and begins anew after it.
func TestStopWhileHelmWorks(t *testing.T) {
	w := newWorld(t)
	w.has[builtins.StageAfterHelm] = []string{"a"}
	w.p.Begin()
	w.steps()
	w.p.Stop()
	if !w.p.Working() {
		t.Fatal("the work of Helm is not waited for")
	}
	w.m.Open = false
	w.p.Released(Helm{Changed: true, Revision: 7, Stopped: true}, w.now, 0)
	w.steps()
	if w.want("install web"); w.p.Ready() || !w.p.Idle() || !w.p.Installed() {
		t.Error("what an earlier life has begun counts")
	}
	w.m.Open = true
	w.p.Begin()
	w.steps()
	w.want("install web")
	w.released(nil, false)
	w.want("after_helm") // once in each life also without a change
}
