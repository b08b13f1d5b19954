package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// world carries out the engine's actions at once, in memory.
type world struct {
	t      *testing.T
	e      *Engine
	opts   Options
	now    time.Time
	gen    *generation.Generation
	queue  []Action
	wakeAt time.Time

	kept      map[string]map[string][]byte
	installed []ReleaseRef
	released  []string // "web#1 {values}"
	gone      []string
	runs      []string // "web/a startup,sync"
	writes    int
	cause     *effect.Cause     // of the last commit
	early     func()            // is called before the answer to a commit
	told      func(Action)      // is called with each action
	stop      func(Action) bool // says which actions stay under way; nil: none do
	revision  map[string]int
	last      map[string]string
	metrics   map[string]float64
	said      []string // messages and answers, in order
	away      bool     // nobody takes messages
	notes     []string // for the log

	// hooks stand in for the Starlark functions, by id.
	hooks     map[string]func(RunHook) (effect.Effects, error)
	waits     string                     // what each run says that it waits for
	actions   []reconcile.Action         // and what it has decided
	childless bool                       // and that its parent has no children
	about     []reconcile.Write          // the children that each run writes
	fates     []effect.Fate              // what becomes of them when a commit fails
	looks     map[string][]effect.Lookup // where the runs about an object look, by key
	due       map[string]time.Time       // and for which time they ask
	seen      func(RunHook)              // is told of each run; nil: nobody is
	enabled   map[string]func(values map[string]any) (builtins.Decision, error)
	// settings is asked about sections of modules with def settings_check(); holdSettings has it stay without
	// an answer.
	settings     func(CheckSettings) SettingsChecked
	holdSettings bool
	// served is false for watches of kinds that are not served.
	unsynced  map[string]bool // ids of watches that stay incomplete
	commitErr error
	saveErr   error
	// uninstallErr is that of every uninstall.
	uninstallErr error
	// sets are the field managers of hooks that have applied sets; setsErr is why they
	// cannot be removed.
	sets    []string
	setsErr error
	// saveKeeps has a save that fails keep its data all the same.
	saveKeeps bool
	helmErr   map[string]error
	repaired  []string // "web: Deployment shop/web", "web: all"
	// repair says what becomes of a repair; nil: what was asked for is put right.
	repair func(Repair) Repaired
	// edits are the fields that each repair has put right of its objects.
	edits []owned.Edit
	// holdRepair has repairs stay under way, the last one as heldRepair.
	holdRepair bool
	heldRepair Repair
	held       map[string][]Action // actions not carried out yet, by kind
	hold       string
	// objects are those of watches with Each, by key; Held is whether they have the
	// finalizer.
	objects  map[string]Object
	unserved bool     // the kinds of all watches are not
	unheld   []string // finalizers that were to go
	swept    []string // API versions of the objects that they were to go from, whichever are watched
	saves    int
	// holdHelm names a module whose release stays under way, as heldHelm.
	holdHelm string
	heldHelm Release
	// holdEvaluate has enabled() stay without an answer.
	holdEvaluate bool
	// holdUninstall has uninstalls stay under way, the last one as heldUninstall.
	holdUninstall bool
	heldUninstall Uninstall

	// Results of reloads.
	watched []string // "+id" started, "-id" stopped
	refused string
	next    *generation.Generation // of the last reload
	served  []string               // "web: ids"
	reviews []Review
	left    []string // modules and hooks that are gone
	crds    []string // modules whose CRDs were applied
	hollow  []string
	values  map[string]any // of the next tree; nil: as before
	stays   string         // what the next start says of it
	lists   bool           // whether the next tree mentions global.enabledModules
}

func newWorld(t *testing.T, mods ...*generation.Module) *world {
	w := &world{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		opts: Options{Namespace: "ops", Name: "starling", Jitter: func() float64 { return 0 }},
		kept: map[string]map[string][]byte{}, revision: map[string]int{}, last: map[string]string{}, metrics: map[string]float64{},
		hooks: map[string]func(RunHook) (effect.Effects, error){}, enabled: map[string]func(map[string]any) (builtins.Decision, error){},
		unsynced: map[string]bool{}, helmErr: map[string]error{}, objects: map[string]Object{},
	}
	w.gen = &generation.Generation{Number: 1, Tree: &tree.Tree{ValuesFile: "values.yaml"}, Modules: map[string]*generation.Module{}}
	for _, m := range mods {
		if m.Global {
			w.gen.Global = m
			continue
		}
		w.gen.Modules[m.Name] = m
		w.gen.Names = append(w.gen.Names, m.Name)
	}
	slices.Sort(w.gen.Names)
	return w
}

// mod is a module with a chart; hooks follow.
func mod(name string, decl builtins.ModuleDecl, hooks ...*generation.Hook) *generation.Module {
	decl.Release = name
	m := &generation.Module{Name: name, Key: name, Decl: decl, Hooks: hooks,
		Tree: &tree.Module{Name: name, Key: name, Values: map[string]any{"replicas": int64(1)}, Chart: &tree.Chart{Name: name}}}
	if name == globalName {
		m.Global, m.Tree = true, &tree.Module{Name: name, Key: name}
	}
	for _, h := range hooks {
		h.Module, h.ID = name, name+"/"+h.HookDecl.ID
	}
	return m
}

func hk(id string, bindings ...builtins.Binding) *generation.Hook {
	return &generation.Hook{HookDecl: &builtins.HookDecl{ID: id, Bindings: bindings, Timeout: time.Second, Retry: builtins.DefaultRetry}}
}

func onStartup(order int) builtins.Binding {
	return builtins.Binding{Name: "startup", Startup: &builtins.StartupBinding{Order: order}}
}

func onWatch(name string) builtins.Binding {
	return builtins.Binding{Name: name, Watch: &builtins.WatchBinding{APIVersion: "v1", Kind: "Node"}}
}

func onBefore() builtins.Binding {
	return onStage(builtins.StageBeforeHelm)
}

func onAfter() builtins.Binding {
	return onStage(builtins.StageAfterHelm)
}

func onStage(s builtins.Stage) builtins.Binding {
	return builtins.Binding{Name: string(s), Stage: &builtins.StageBinding{Stage: s}}
}

func onReceive(path string) builtins.Binding {
	return builtins.Binding{Name: "receive", Receive: &builtins.ReceiveBinding{Path: path}}
}

func set(path string, v any) effect.Effects {
	return effect.Effects{Values: []effect.ValueOp{{Op: effect.OpSet, Path: strings.Split(path, "."), Value: v}}}
}

// start begins a process: a new engine on what the cluster holds.
func (w *world) start() {
	w.t.Helper()
	w.e = New(w.opts)
	w.queue, w.wakeAt = nil, time.Time{}
	w.in(Config{State: ConfigPresent})
	in := Start{Generation: w.gen, Kept: w.kept, Installed: slices.Clone(w.installed), Sets: map[string][]string{}, Stays: w.stays}
	for _, manager := range w.sets {
		module := effect.ManagerModule(manager)
		in.Sets[module] = append(in.Sets[module], manager)
	}
	w.in(in)
}

// in hands an input over and carries out all that follows.
func (w *world) in(in Input) {
	w.t.Helper()
	w.queue = append(w.queue, w.e.Handle(w.now, in)...)
	for n := 0; len(w.queue) > 0; n++ {
		if n > 10_000 {
			w.t.Fatalf("the engine does not settle; runs %v", w.runs[len(w.runs)-20:])
		}
		a := w.queue[0]
		w.queue = w.queue[1:]
		if in := w.carryOut(a); in != nil {
			w.queue = append(w.queue, w.e.Handle(w.now, in)...)
		}
	}
	wantInStep(w.t, w.e)
}

// advance moves the clock, tick by tick.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for n := 0; !w.wakeAt.IsZero() && !w.wakeAt.After(end); n++ {
		if n > 1000 {
			w.t.Fatal("ticks without end")
		}
		w.now = w.wakeAt
		w.wakeAt = time.Time{}
		w.in(Tick{})
	}
	w.now = end
}

func (w *world) carryOut(a Action) Input {
	if w.told != nil {
		w.told(a)
	}
	if w.stop != nil && w.stop(a) {
		return nil
	}
	switch a := a.(type) {
	case Adopted:
		w.gen, w.refused = a.Generation, ""
	case Refused:
		w.refused = a.Reason
	case Gone:
		w.left = append(w.left, strings.TrimSuffix(a.Module+" "+a.Hook, " "))
	case Serve:
		text := a.Module.Name + ":"
		for _, h := range a.Hooks {
			text += " " + h.ID
		}
		for _, h := range a.Waits {
			text += " (" + h.ID + ")"
		}
		w.served = append(w.served, text)
	case Review:
		w.reviews = append(w.reviews, a)
	case StopWatch:
		w.watched = append(w.watched, "-"+a.ID)
	case StartWatch:
		w.watched = append(w.watched, "+"+a.ID)
		if !w.unsynced[a.ID] {
			return w.synced(a)
		}
	case Unhold:
		return w.unhold(a)
	case RunHook:
		var types []string
		for _, ev := range a.Events {
			types = append(types, ev.Type)
		}
		if w.seen != nil {
			w.seen(a)
		}
		id := a.Hook.ID
		if a.Key != "" {
			id += "[" + a.Key + "]"
		}
		if a.Cleanup {
			types = []string{"cleanup"}
		}
		w.runs = append(w.runs, id+" "+strings.Join(types, ","))
		if _, there := w.objects[a.Key]; a.Key != "" && (!there || w.unserved) && a.Object == nil {
			return RunDone{Run: a.Run, Gone: true}
		}
		if w.hold == a.Hook.ID {
			w.held = map[string][]Action{w.hold: {a}}
			return nil
		}
		f := w.hooks[a.Hook.ID]
		if f == nil {
			return RunDone{Run: a.Run, Waits: w.waits, Children: !w.childless, Actions: w.actions, Lookups: w.looks[a.Key], Due: w.due[a.Key]}
		}
		effects, err := f(a)
		return RunDone{Run: a.Run, Effects: effects, Waits: w.waits, Children: !w.childless, Actions: w.actions, Lookups: w.looks[a.Key], Due: w.due[a.Key], Writes: w.about, Err: err}
	case Commit:
		if w.commitErr != nil {
			return Committed{Run: a.Run, Err: w.commitErr, Children: w.fates}
		}
		w.writes += len(a.Writes)
		w.cause = a.Cause
		if w.early != nil {
			w.early()
		}
		for _, wr := range a.Writes {
			if manager := effect.Manager(a.Hook.ID); wr.Kind == effect.WriteSet && !wr.Set.Keep && !slices.Contains(w.sets, manager) {
				w.sets = append(w.sets, manager)
			}
		}
		w.write(a.Writes)
		return Committed{Run: a.Run, Children: slices.Repeat([]effect.Fate{{Written: true}}, len(w.about))}
	case Save:
		if w.saveErr != nil {
			if w.saveKeeps {
				w.kept[a.Module] = a.Data
			}
			return Saved{Op: a.Op, Err: w.saveErr}
		}
		w.saves++
		w.kept[a.Module] = a.Data
		return Saved{Op: a.Op}
	case Evaluate:
		if w.holdEvaluate {
			return nil
		}
		d, err := w.enabled[a.Module.Name](a.Values)
		return Evaluated{Op: a.Op, Decision: d, Err: err}
	case CheckSettings:
		if w.holdSettings {
			return nil
		}
		in := w.settings(a)
		in.Op = a.Op
		return in
	case Release:
		if w.holdHelm == a.Ref.Module {
			w.heldHelm = a
			return nil
		}
		if err := w.helmErr[a.Ref.Module]; err != nil {
			return Released{Op: a.Op, Err: err}
		}
		if !slices.Contains(w.installed, a.Ref) {
			w.installed = append(w.installed, a.Ref)
		}
		text := fmt.Sprint(a.Values)
		changed := w.last[a.Ref.Module] != text
		if changed {
			w.last[a.Ref.Module] = text
			w.revision[a.Ref.Module]++
			w.released = append(w.released, fmt.Sprintf("%s#%d %v", a.Ref.Module, w.revision[a.Ref.Module], a.Values))
		}
		return Released{Op: a.Op, Changed: changed, Revision: w.revision[a.Ref.Module]}
	case Repair:
		return w.repairs(a)
	case Uninstall:
		if w.holdUninstall {
			w.heldUninstall = a
			return nil
		}
		if w.uninstallErr != nil {
			return Uninstalled{Op: a.Op, Err: w.uninstallErr}
		}
		w.gone = append(w.gone, a.Ref.Module)
		w.installed = slices.DeleteFunc(w.installed, func(r ReleaseRef) bool { return r == a.Ref })
		return Uninstalled{Op: a.Op}
	case RemoveSets:
		if w.setsErr != nil {
			return SetsRemoved{Op: a.Op, Err: w.setsErr}
		}
		w.gone = append(w.gone, a.Managers...)
		w.sets = slices.DeleteFunc(w.sets, func(manager string) bool { return slices.Contains(a.Managers, manager) })
		return SetsRemoved{Op: a.Op}
	case ApplyCRDs:
		w.crds = append(w.crds, a.Module.Name)
		return CRDsApplied{Op: a.Op}
	case Publish:
		for _, m := range a.Metrics {
			w.metrics[m.Name] = m.Value
		}
	case Send:
		for _, m := range a.Messages {
			w.said = append(w.said, a.Hook+" sends "+m.URL)
		}
		if !w.away {
			return Sent{Module: a.Module, Sums: a.Kept()}
		}
	case Respond:
		w.said = append(w.said, fmt.Sprintf("request %d: %v", a.ID, a.Err))
	case Wake:
		w.wakeAt = a.At
	case Note:
		w.notes = append(w.notes, a.Module+": "+a.Message)
	}
	return nil
}

// runs is how many runs of hooks are under way.
func runs(e *Engine) (n int) {
	for op := range e.askedBy {
		if e.run(op) != nil {
			n++
		}
	}
	return n
}

func (w *world) module(name string) status.Module {
	w.t.Helper()
	for _, m := range w.e.Status().Modules {
		if m.Name == name {
			return m
		}
	}
	w.t.Fatalf("no module %s in the status", name)
	return status.Module{}
}

func (w *world) state(name string, state status.ModuleState, reason string) {
	w.t.Helper()
	m := w.module(name)
	if m.State != state || !strings.Contains(m.Reason, reason) {
		w.t.Errorf("module %s is %q (%s), want %q (%s)", name, m.State, m.Reason, state, reason)
	}
}

func (w *world) wantReleased(want ...string) {
	w.t.Helper()
	var got []string
	for _, r := range w.released {
		name, _, _ := strings.Cut(r, " ")
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("released %v, want %v", got, want)
	}
}

func (w *world) wantRuns(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.runs, want) {
		w.t.Errorf("runs\n %s\nwant\n %s", strings.Join(w.runs, "\n "), strings.Join(want, "\n "))
	}
	w.runs = nil
}

// changed tells of a change of an object.
func (w *world) changed(id string) {
	w.t.Helper()
	w.in(WatchChanged{ID: id, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
}

// heard tells of a change of an object that the last commit has made.
func (w *world) heard(id, name string) {
	w.t.Helper()
	w.in(WatchChanged{ID: id, Events: []builtins.Event{{Type: "modified", Binding: WatchBinding(id), Name: name, Cause: w.cause}}})
}

var errBoom = errors.New("web/hooks/a.star:3:5: boom")

func isOn() builtins.ModuleDecl { return builtins.ModuleDecl{Enabled: true} }

func copyKept(in map[string]map[string][]byte) map[string]string {
	out := map[string]string{}
	for module, data := range in {
		for key, v := range data {
			out[module+" "+key] = string(v)
		}
	}
	return out
}

// noFunction stands in for def enabled(), which the world answers itself.
type noFunction struct{ starlark.Callable }
