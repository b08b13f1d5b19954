package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// gathered is a module whose for_each hook, four runs at a time, sets a value of each object.
// Writes of what is kept end when a test says so.
type gathered struct {
	*testing.T
	w       *world
	e       *Engine
	running map[string]int // runs that have not ended, waiting ones included, by object
	runs    []RunHook      // in the order of their begin
	active  []RunHook      // those that the test has not ended yet
	saves   []Save
	most    int // of active ones
}

func newGathered(t *testing.T, objects int) *gathered {
	other := hk("b", onBinding("tick"))
	w := newWorld(t, mod("web", isOn(), eachHook("a", false), other))
	for i := range objects {
		name := fmt.Sprintf("o%03d", i)
		w.objects[name] = Object{Name: name}
	}
	x := &gathered{T: t, w: w, e: New(w.opts), running: map[string]int{}}
	x.in(Config{State: ConfigPresent})
	x.in(Start{Generation: w.gen})
	return x
}

func onBinding(name string) builtins.Binding {
	return builtins.Binding{Name: name, Schedule: &builtins.ScheduleBinding{Cron: "* * * * *"}}
}

func (x *gathered) in(in Input) {
	x.Helper()
	for _, a := range x.e.Handle(x.w.now, in) {
		switch a := a.(type) {
		case RunHook:
			if x.running[a.Key]++; x.running[a.Key] > 1 {
				x.Errorf("%s has two runs side by side", a.Key)
			}
			x.runs, x.active = append(x.runs, a), append(x.active, a)
			x.most = max(x.most, len(x.active))
		case Save:
			x.saves = append(x.saves, a)
		case StartWatch:
			x.in(x.w.synced(a))
		}
	}
}

// end ends the oldest run that computes; what it sets differs each time.
func (x *gathered) end() {
	x.Helper()
	a := x.active[0]
	x.active = x.active[1:]
	effects := effect.Effects{}
	if a.Key != "" {
		effects = set("sites."+a.Key, int64(a.Run))
	}
	x.in(RunDone{Run: a.Run, Effects: effects})
}

func (x *gathered) saved(err error) {
	x.Helper()
	a := x.saves[0]
	x.saves = x.saves[1:]
	x.running = map[string]int{}
	for _, a := range x.active {
		x.running[a.Key]++
	}
	x.in(Saved{Op: a.Op, Err: err})
}

// Runs that only wait to be kept let others of their hook begin, up to a bound; four at a
// time compute all the same. A few writes keep the values of all.
func TestRunsThatWaitToBeKeptLetOthersBegin(t *testing.T) {
	x := newGathered(t, 300)
	for len(x.active) > 0 {
		x.end()
	}
	if x.most != 4 || len(x.saves) != 1 {
		t.Fatalf("%d runs at a time, %d writes", x.most, len(x.saves))
	}
	if n := len(x.runs); n < 100 || n > 140 {
		t.Errorf("%d runs have begun while the first write is under way", n)
	}
	writes := 0
	for len(x.saves) > 0 {
		writes++
		x.saved(nil)
		for len(x.active) > 0 {
			x.end()
		}
	}
	m := x.e.modules["web"]
	if sites, _ := x.e.Values(m.name)["sites"].(map[string]any); len(sites) != 300 || len(x.runs) != 300 || writes > 8 || !m.store.Clean() {
		t.Errorf("%d values, %d runs, %d writes", len(sites), len(x.runs), writes)
	}
}

// A write waits for runs that are under way, but not long; one run alone is kept at once.
func TestAWriteWaitsALittleForRunsThatAreUnderWay(t *testing.T) {
	x := newGathered(t, 4)
	x.end()
	if len(x.saves) > 0 {
		t.Fatal("it does not wait")
	}
	x.w.now = x.w.now.Add(gatherFor)
	if x.in(Tick{}); len(x.saves) != 1 || len(x.saves[0].Hooks) != 1 {
		t.Fatalf("writes after that time: %s", shown(x.saves))
	}
	x.saved(nil)
	for len(x.active) > 0 {
		x.end()
	}
	if len(x.saves) != 1 || len(x.saves[0].Hooks) != 3 {
		t.Fatalf("writes once the last run has ended: %s", shown(x.saves))
	}
	x.saved(nil)
	x.in(WatchChanged{ID: eachID, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "o000"}}})
	if x.end(); len(x.saves) != 1 {
		t.Error("one run alone waits")
	}
}

// A write that fails has all its runs run again; values show only what is kept.
func TestAFailedWriteFailsAllRunsThatWaitedForIt(t *testing.T) {
	x := newGathered(t, 20)
	for len(x.active) > 0 {
		x.end()
	}
	x.saved(errors.New("timeout"))
	if sites := x.e.Values("web")["sites"]; sites != nil {
		t.Fatalf("values count that are not kept: %v", sites)
	}
	x.w.now = x.w.now.Add(builtins.DefaultRetry.Max)
	x.in(Tick{})
	for len(x.active)+len(x.saves) > 0 {
		for len(x.active) > 0 {
			x.end()
		}
		for len(x.saves) > 0 {
			x.saved(nil)
		}
	}
	if sites := x.e.Values("web")["sites"].(map[string]any); len(sites) != 20 || len(x.runs) != 41 { // one of them is of the schedule
		t.Errorf("%d values after %d runs", len(sites), len(x.runs))
	}
}

// Another hook of the lane has its turn once all that was under way is kept; a change of an
// object that waits has its run after that.
func TestAnotherHookWaitsForWhatIsKept(t *testing.T) {
	x := newGathered(t, 8)
	x.end()
	x.in(WatchChanged{ID: eachID, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "o000"}}})
	x.w.now = x.w.now.Add(time.Minute)
	x.in(Tick{})
	for len(x.active) > 0 {
		if x.active[0].Key == "" {
			t.Fatal("the other hook runs beside objects that are not kept")
		}
		x.end()
	}
	for len(x.saves) > 0 {
		x.saved(nil)
	}
	if last := x.runs[len(x.runs)-1]; last.Hook.ID != "web/b" && x.runs[len(x.runs)-2].Hook.ID != "web/b" {
		t.Errorf("the last run is one of %s about %q", last.Hook.ID, last.Key)
	}
}

// A module that is switched off while runs wait to be kept comes back as if they had not
// been.
func TestAModuleThatIsSwitchedOffWhileRunsWait(t *testing.T) {
	x := newGathered(t, 12)
	for len(x.active) > 0 {
		x.end()
	}
	x.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	x.running = map[string]int{}
	x.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "true"}})
	for len(x.active)+len(x.saves) > 0 {
		for len(x.saves) > 0 {
			x.saved(nil)
		}
		for len(x.active) > 0 {
			x.end()
		}
	}
	m := x.e.modules["web"]
	if sites, _ := x.e.Values(m.name)["sites"].(map[string]any); len(sites) != 12 || m.life == down || !m.store.Clean() {
		t.Errorf("%d values; module %v", len(sites), m.verdict.State != status.ModuleOff)
	}
}
