package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// standBy begins a process that waits for the Lease, and fails the test with the first action that
// is not for it.
func (w *world) standBy() {
	w.t.Helper()
	w.told = func(a Action) {
		switch a.(type) {
		case StartWatch, StopWatch, Evaluate, CheckSettings, Review, Serve, Respond, Adopted, Gone, Unpublish, Wake, Note:
		default:
			w.t.Errorf("a standby wants %T %+v", a, a)
		}
	}
	w.e = New(w.opts)
	w.queue, w.wakeAt, w.reviews, w.watched, w.said = nil, time.Time{}, nil, nil, nil
	w.in(Start{Generation: w.gen, Kept: w.kept, Installed: slices.Clone(w.installed), Standby: true})
	w.in(Config{State: ConfigPresent})
}

// lastReview is the last that was said of reviews: the run that answers one, or why there is none.
func (w *world) lastReview() string {
	w.t.Helper()
	if len(w.reviews) == 0 {
		w.t.Fatal("nothing is published")
	}
	last := w.reviews[len(w.reviews)-1]
	run, err := last.Answer(7, w.now, &builtins.Request{Binding: "v"})
	if err != nil {
		return err.Error()
	}
	view, err := run.Values.Compose(nil)
	return fmt.Sprint(view, run.Config, run.State, run.SecretTexts(), run.Synced, run.Namespace, err)
}

var onReview = builtins.Binding{Name: "v", Admission: &builtins.AdmissionBinding{}}

// guardedModule is the module web of [guarded], of which one hook has this code.
func guardedModule(digest string) *generation.Module {
	guard := hk("guard", onReview, onWatch("nodes"), onStartup(1), onReceive("/x"), onAfter())
	guard.Digest = digest
	web := mod("web", builtins.ModuleDecl{Enabled: true, Requires: []string{"db"}}, guard, hk("other", onWatch("nodes")))
	web.Enabled = noFunction{}
	return web
}

// guarded is a tree whose module web answers reviews by what hooks have set and remember.
func guarded(t *testing.T) *world {
	w := newWorld(t, mod("db", isOn()), guardedModule("1"), mod(globalName, isOn(), hk("sets", onWatch("zones"), onStage(builtins.StageAfterAll))))
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return builtins.Decision{}, nil }
	w.hooks["global/sets"] = func(RunHook) (effect.Effects, error) { return set("global.zone", "zone-a"), nil }
	w.hooks["web/guard"] = func(RunHook) (effect.Effects, error) {
		out := set("text", "one")
		out.Memory = effect.Memory{State: map[string]any{"token": "s3cret"}, StateSecrets: [][]string{{"token"}}}
		return out, nil
	}
	return w
}

// A standby answers a review with what the one that leads answers it with, and withholds all else,
// whatever it is told.
func TestAStandbyAnswersAsTheOneThatLeads(t *testing.T) {
	w := guarded(t)
	w.start()
	leads := w.lastReview()
	if !strings.Contains(leads, "zone-a") || !strings.Contains(leads, "one") || !strings.Contains(leads, "s3cret") {
		t.Fatal(leads)
	}
	released, saves := len(w.released), w.saves
	w.runs = nil
	w.standBy()
	if got := w.lastReview(); got != leads {
		t.Errorf("got  %s\nwant %s", got, leads)
	}
	if ready, why := w.e.Ready(); !ready {
		t.Error("not ready: ", why)
	}
	if st := w.e.Status(); st.Leader || !st.Ready || !w.e.AtRest() {
		t.Errorf("status %+v", st)
	}
	w.state("web", status.ModuleWaiting, "stands by")
	var watches []string
	for _, id := range w.watched {
		if strings.HasPrefix(id, "+web/guard#") {
			watches = append(watches, id[1:])
		}
	}
	if len(watches) != 1 || watches[0] == watchID("web/guard", "nodes", 0) {
		t.Fatalf("watches %q", w.watched)
	}

	w.changed(watches[0])
	w.in(WatchSynced{ID: watches[0], Served: true})
	w.in(Reconcile{Module: "web"})
	w.in(Requested{ID: 1, Hook: "web/guard", Request: &builtins.Request{Binding: "receive"}})
	w.advance(24 * time.Hour)
	w.in(Config{State: ConfigPresent, Data: map[string]string{"web": "replicas: 2"}})
	if got := w.lastReview(); !strings.Contains(got, "replicas:2") {
		t.Errorf("the user sets a value: %s", got)
	}
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	if got := w.lastReview(); !strings.Contains(got, "not running") {
		t.Errorf("the user switches the module off: %s", got)
	}
	w.in(Config{State: ConfigPresent})
	if got := w.lastReview(); got != leads {
		t.Errorf("as before: %s", got)
	}
	if want := []string{"request 1: hook web/guard: this starling does not hold the lease: it does not answer now"}; !slices.Equal(w.said, want) {
		t.Errorf("said %q", w.said)
	}
	runs := w.runs
	w.reload(w.gen.Modules["db"], guardedModule("2"), w.gen.Global)
	w.advance(time.Hour)
	if got := w.lastReview(); got != leads {
		t.Errorf("another generation: %s", got)
	}
	if len(runs)+len(w.runs) > 0 || len(w.released) != released || w.saves != saves {
		t.Errorf("runs %v %v, released %v, %d saves", runs, w.runs, w.released[released:], w.saves-saves)
	}

	// The one that gets the Lease begins as after a restart.
	w.told = nil
	w.start()
	if answers, why := w.e.Answers(); !answers {
		t.Error("the next one does not answer: ", why)
	}
	if got := w.lastReview(); got != leads || len(w.runs) == 0 {
		t.Errorf("the next one answers %s, after runs %v", got, w.runs)
	}
}

// A standby knows which modules are on, and answers a review that reads them.
func TestAStandbyKnowsWhichModulesAreOn(t *testing.T) {
	w := guarded(t)
	lists(w.gen.Modules["web"])
	w.gen.Lists = true
	w.start()
	leads := w.lastReview()
	w.standBy()
	if got := w.lastReview(); got != leads || !strings.Contains(got, "enabledModules:[db web]") {
		t.Errorf("got  %s\nwant %s", got, leads)
	}
	if ready, why := w.e.Ready(); !ready {
		t.Error("not ready: ", why)
	}
	if _, err := w.e.Parents("web", "a"); err == nil || !strings.Contains(err.Error(), "stands by") {
		t.Error(err)
	}
}

// A standby is not told when the release of a module is gone, so it says that the module is off, and shows none that
// is not in the tree.
func TestAStandbyShowsNoModuleThatIsGone(t *testing.T) {
	gone := mod("gone", isOn(), hk("bye", onStage(builtins.StageBeforeDelete)))
	w := newWorld(t, mod("web", isOn()), gone)
	w.start()
	w.standBy()
	w.state("web", status.ModuleWaiting, "stands by")
	w.in(Config{State: ConfigPresent, Data: map[string]string{"webEnabled": "false"}})
	w.state("web", status.ModuleOff, "webEnabled: false")
	w.reload(mod("web", isOn()))
	w.advance(time.Minute)
	st := w.e.Status()
	if len(st.Modules) != 1 || len(st.Hooks) != 0 {
		t.Errorf("it shows %+v %+v", st.Modules, st.Hooks)
	}
}

// A standby goes by what the one that leads keeps: layers and states that come, change and go.
func TestAStandbyFollowsWhatIsKept(t *testing.T) {
	w := guarded(t)
	w.start()
	first := w.e
	w.standBy()
	second, withheld := w.e, w.told
	for n, text := range []string{"two", "three", ""} {
		w.hooks["web/guard"] = func(RunHook) (effect.Effects, error) {
			if text == "" {
				return effect.Effects{}, nil
			}
			out := set("text", text)
			out.Memory = effect.Memory{State: map[string]any{"text": text}}
			return out, nil
		}
		w.hooks["global/sets"] = func(RunHook) (effect.Effects, error) { return set("global.zone", fmt.Sprint("zone-", n)), nil }
		w.e, w.told = first, nil
		w.in(WatchChanged{ID: "global/sets#zones", Events: []builtins.Event{{Type: "modified", Binding: "zones", Name: "a"}}})
		w.changed("web/guard#nodes")
		leads := w.lastReview()
		w.e, w.told = second, withheld
		for _, module := range []string{globalName, "web"} {
			w.in(Kept{Module: module, Data: w.kept[module]})
		}
		if got := w.lastReview(); got != leads {
			t.Errorf("%q:\n got %s\nwant %s", text, got, leads)
		}
		w.reviews = w.reviews[len(w.reviews)-1:]
		w.in(Kept{Module: "web", Data: w.kept["web"]})
		if len(w.reviews) != 1 {
			t.Errorf("%q: the same is published again", text)
		}
	}
	notes := len(w.notes)
	w.in(Kept{Module: "web", Data: map[string][]byte{"layer.x": []byte("{")}})
	w.in(Kept{Module: "unknown", Data: map[string][]byte{"layer.x": []byte("{")}})
	if got := w.notes[notes:]; len(got) != 1 || !strings.Contains(got[0], "layer.x cannot be read") {
		t.Errorf("notes %q", got)
	}
}

// A standby is ready once it can answer: with whole snapshots, and with an answer of enabled(). A
// watch that fails is no reason to take the others out of service.
func TestAStandbyIsReadyOnceItCanAnswer(t *testing.T) {
	w := guarded(t)
	w.start()
	id := watchID("web/guard", "nodes", standbyNumbers+3) // after global and db
	w.unsynced[id] = true
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return builtins.Decision{}, errors.New("not now") }
	w.standBy()
	if ready, why := w.e.Ready(); !ready { // the module has failed, as it would where the Lease is
		t.Error("not ready: ", why)
	}
	w.enabled["web"] = func(map[string]any) (builtins.Decision, error) { return builtins.Decision{}, nil }
	w.standBy()
	if ready, why := w.e.Ready(); ready || !strings.Contains(why, "web/guard: its snapshots are not complete") {
		t.Errorf("ready is %t: %s", ready, why)
	}
	if got := w.lastReview(); !strings.Contains(got, "its snapshots are not complete") {
		t.Error(got)
	}
	w.in(WatchFailed{ID: id, Reason: "forbidden"})
	if ready, why := w.e.Ready(); !ready {
		t.Error("not ready: ", why)
	}
	w.in(WatchFailed{ID: id})
	w.in(WatchSynced{ID: id, Served: true})
	if got := w.lastReview(); !strings.Contains(got, "s3cret") {
		t.Error(got)
	}
}

// No engine of a process gives its watches or actions a name or number that an earlier one has given: late news and answers
// are for nobody.
func TestNoNumberComesTwiceInAProcess(t *testing.T) {
	w := guarded(t)
	named, most := map[string]int{}, uint64(0)
	for n := range 6 {
		e := New(w.opts)
		start := Start{Generation: w.gen, Installed: slices.Clone(w.installed), Standby: n%2 == 0, Numbers: most / 1000 * 1000}
		watches := 0
		for _, a := range append(e.Handle(w.now, start), e.Handle(w.now, Config{State: ConfigPresent})...) {
			name := ""
			switch a := a.(type) {
			case StartWatch:
				name = a.ID
				watches++
			case Evaluate:
				name = fmt.Sprint(a.Op)
			case RunHook:
				name = fmt.Sprint(a.Run)
			}
			if before, is := named[name]; is && name != "" {
				t.Errorf("engine %d names %s, as engine %d did", n, name, before)
			}
			named[name] = n
		}
		if watches == 0 {
			t.Errorf("engine %d starts no watch", n)
		}
		if n%2 == 1 { // both of a term begin at the same number
			most = (most/1000 + 1) * 1000
			if e.Numbers() > most {
				t.Errorf("engine %d is at %d", n, e.Numbers())
			}
		}
	}
}
