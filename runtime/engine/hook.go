package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/lookups"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/timers"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// hook is the state of one hook.
type hook struct {
	gen       *generation.Hook
	before    []*hook // that had this id: runs of theirs are still under way
	module    *module
	lane      *lane.Lane[builtins.Event]
	subjects  *subjects.Set
	watches   watches.Set
	schedules timers.Set

	echoes  causes.Echoes // of its subjects
	lookups *lookups.Set  // of its parents
	// repairs are how often children of its parents were put right, by the key of the parent.
	repairs map[string]repairs.Rounds[reconcile.ID]

	review *Review      // how it answers reviews, as the driver knows it
	basis  layers.Basis // the values that the review rests on

	barred string // why it must not run, or ""
	// limits are by what they limit: runs of the hook, and changes of a value of the user's config, by its path.
	limits map[string]*rate.Limiter

	ran status.Hook // LastRun, Duration, Runs and Failures of it, see hookStatus
}

// ofRuns is the key of the limit of runs.
const ofRuns = ""

// newHook makes a hook that begins once runs of those have ended that had its id.
func newHook(m *module, g *generation.Hook) *hook {
	h := &hook{gen: g, module: m, lane: m.queue(g.Queue), echoes: causes.Echoes{}, lookups: lookups.New(), repairs: map[string]repairs.Rounds[reconcile.ID]{}, limits: map[string]*rate.Limiter{}}
	h.subjects = subjects.New(g.ID, h.forEach())
	h.limit()
	h.bind(g.Bindings, nil, nil)
	for r := range m.runs() {
		if r.hook.gen.ID == g.ID && !slices.Contains(h.before, r.hook) {
			h.before = append(h.before, r.hook)
		}
	}
	return h
}

// limit bounds how often the hook runs, as it has declared that.
func (h *hook) limit() {
	delete(h.limits, ofRuns)
	if h.gen.MinInterval > 0 {
		h.limits[ofRuns] = rate.NewLimiter(rate.Every(h.gen.MinInterval), h.gen.Burst)
	}
}

// bind gives the hook the timers and watches of bindings: those there were that are the same, or new ones.
func (h *hook) bind(bindings []builtins.Binding, ticks timers.Set, seen watches.Set) {
	for i := range bindings {
		switch b := &bindings[i]; {
		case b.Schedule != nil:
			t := ticks.Of(b.Name)
			if before := t; t == nil || !t.Is(b.Schedule) {
				t = timers.New(h.gen.ID, b.Name, b.Schedule)
				t.Follow(before)
			}
			h.schedules = append(h.schedules, t)
		case b.Watch != nil:
			w := seen.Of(b.Name)
			if w == nil || !sees(w.Decl, b.Watch) {
				w = watches.New(b.Name, b.Watch)
			}
			w.Decl = b.Watch
			h.watches = append(h.watches, w)
		}
	}
}

// startup is the hook's binding to the start of its module, or nil.
func (h *hook) startup() *builtins.StartupBinding {
	for i := range h.gen.Bindings {
		if b := &h.gen.Bindings[i]; b.Startup != nil {
			return b.Startup
		}
	}
	return nil
}

// stage is the hook's binding to a stage, or nil.
func (h *hook) stage(stage builtins.Stage) *builtins.StageBinding {
	for i := range h.gen.Bindings {
		if b := &h.gen.Bindings[i]; b.Stage != nil && b.Stage.Stage == stage {
			return b.Stage
		}
	}
	return nil
}

// gates says whether the module's first render waits for the hook, or, of a global hook, the first start of modules.
func (h *hook) gates() bool {
	for _, w := range h.watches {
		if !w.Decl.Quiet && !w.Decl.NoGate {
			return true
		}
	}
	return h.startup() != nil || h.stage(builtins.StageBeforeAll) != nil
}

// holds says that the hook has not done yet what the first render waits for.
func (h *hook) holds() bool {
	if h.gates() && h.subjects.First() != subjects.HasSucceeded {
		return true
	}
	for _, w := range h.watches {
		if w.Decl.Require && !w.Seen() {
			return true
		}
	}
	return false
}

// reset forgets what belongs to one life of the module; statistics stay.
func (h *hook) reset() {
	h.subjects.Reset()
	clear(h.echoes)
	h.lookups = lookups.New()
	clear(h.repairs)
	for _, w := range h.watches {
		w.Reset()
	}
	for _, s := range h.schedules {
		s.Stop()
	}
}

// wakeHook keeps the finalizer of a hook, starts its timers and queues its startup event, once its watches have begun.
func (t *turn) wakeHook(h *hook) {
	t.willHold(h)
	for _, s := range h.schedules {
		t.startTimer(h, s)
	}
	t.queueStartup(h)
}

func (t *turn) queueStartup(h *hook) {
	if b := h.startup(); b != nil {
		t.add(h, h.subjects.At(""), b.Order, builtins.Event{Type: "startup", Binding: "startup"})
	}
}

func (t *turn) startWatches(h *hook, incarnation uint64) {
	for _, w := range h.watches {
		t.startWatch(h, w, incarnation)
	}
}

// startRest starts the watches of a module that is up which have not begun: new ones, and those of kinds that the tree
// has lacked.
func (t *turn) startRest(m *module, incarnation uint64) {
	for _, h := range m.hooks {
		for _, w := range h.watches {
			if w.ID == "" {
				t.startWatch(h, w, incarnation)
			}
		}
	}
}

// startWatch starts a watch. Of kinds that the tree lacks for now none begins: runs do not know then which children
// there are, and delete none.
func (t *turn) startWatch(h *hook, w *watches.Watch, incarnation uint64) {
	if w.Decl.Former && t.globals.Stays != "" {
		w.ID = ""
		return
	}
	w.ID = watchID(h.gen.ID, w.Binding, incarnation)
	t.watches[w.ID] = h
	a := StartWatch{ID: w.ID, Hook: h.gen, Watch: w.Decl}
	if a.Each = h.isEach(w); a.Each {
		a.Finalizer = t.finalizerOf(h).Name
	}
	t.do(a)
}

// ready says whether a hook may run now. No run sees a snapshot that is not
// complete: an empty one would look like a cluster in which all is gone.
func (m *module) ready(id lane.ID, now time.Time) bool {
	h, asked := m.byKey[id.Group], id.Ask != 0
	if h == nil || len(h.before) > 0 {
		return false
	}
	if asked && h.gen.Session {
		return true
	}
	if !h.awake() || h.barred != "" || !h.watches.Complete() || !m.remembersFinalizer(h) || m.store.Has(upKey) && !m.store.Stands(upKey) {
		return false
	}
	if asked { // else it was refused
		return true
	}
	if !h.allowedAt(now).IsZero() {
		return false
	}
	if m.life == leaving {
		return h.leaves()
	}
	own := h.startup()
	if own == nil || h.subjects.First().Tried() {
		return true
	}
	for _, other := range m.hooks {
		if b := other.startup(); b != nil && b.Order < own.Order && other.awake() && !other.subjects.First().Tried() && other.trouble() == "" {
			return false
		}
	}
	return true
}

// allowedAt returns when min_interval= lets the hook run; zero means now.
func (h *hook) allowedAt(now time.Time) time.Time {
	if h.limits[ofRuns] == nil {
		return time.Time{}
	}
	missing := 1 - h.limits[ofRuns].TokensAt(now)
	if missing <= 1e-9 {
		return time.Time{}
	}
	return now.Add(max(time.Duration(missing*float64(h.gen.MinInterval)), time.Millisecond))
}

// trouble says why the hook has not succeeded, or "" while nothing is wrong.
func (h *hook) trouble() string {
	return cmp.Or(h.barred, h.watches.Trouble(), h.watches.Waits(), h.subjects.Failure())
}

// watchIDs are the ids of the hook's watches by binding.
func (h *hook) watchIDs() map[string]string {
	out := map[string]string{}
	for _, w := range h.watches {
		out[w.Binding] = w.ID
	}
	return out
}

// dispatch starts the next hook runs of each of the module's lines.
func (t *turn) dispatch(m *module) {
	ready := func(id lane.ID) bool { return m.ready(id, t.now) }
	for _, h := range m.hooks {
		h.echoes.Rest(t.now)
		t.refuseAsks(h, h.refusesRequests())
	}
	for _, l := range m.lanes() {
		for {
			work, ok := l.Next(t.now, ready)
			if !ok {
				break
			}
			h := m.byKey[work.ID.Group]
			if work.ID.Ask != 0 {
				if err := h.takes(work.ID.Key, work.Events); err != nil { // no longer
					l.Done(work)
					t.do(Respond{ID: work.ID.Ask, Err: err})
					continue
				}
			} else if h.limits[ofRuns] != nil {
				h.limits[ofRuns].AllowN(t.now, 1)
			}
			t.startRun(h, work)
		}
	}
}

func (t *turn) startRun(h *hook, work lane.Work[builtins.Event]) {
	s, id := h.subjects.At(work.ID.Key), t.op()
	a := t.runOf(h, s)
	a.Run, a.Now, a.Events, a.Attempt = id, t.now, work.Events, work.Attempt
	if s.Key != "" {
		a.Key, a.Cleanup, a.Object = s.Key, s.Leaving(), s.Last()
		a.Each = h.gen.ForEach
		a.ObjectNamespace, a.ObjectName = s.Name()
	}
	if h.gen.Controller != nil {
		a.Failed, a.Past, a.Unsynced = s.Why(), h.past(s, t.now), h.unsynced(s)
		if of := h.observer().subjects.At(s.Key); of != nil {
			a.Observed = of.Outcome().Observed
		}
	}
	var cause *effect.Cause // nil: nothing that Starling has done has brought the run about
	if work.ID.Ask != 0 {
		a.Request = requestOf(work.Events)
	} else {
		ev, _ := causes.Of(work.Events)
		cause = ev.Cause
		h.echoes.Of(s.ID()).Begin(cause)
	}
	h.ran.LastRun = new(t.now)
	t.ask(h.module, a)
	r := h.module.asked[id]
	r.hook, r.subject, r.request = h, s, work.ID.Ask
	// Only what comes by a watch can be made to wait: a release waits for the hooks of its stages.
	r.cause = cause.Then(s.ID(), slices.ContainsFunc(work.Events, causes.OfWatch), string(releases.StageOf(work.Events)))
}

// runOf is a run about a subject, as far as that does not hang on what triggers it.
func (g *ground) runOf(h *hook, s *subjects.Subject) RunHook {
	m := h.module
	a := RunHook{
		Hook: h.gen, Module: m.gen, Generation: m.from, Namespace: m.namespace(g.opts.Namespace),
		Watches: h.watchIDs(), Synced: map[string]bool{},
		Values: m.values.For(s.ID(), h.keptOf(m.layer(s))), Config: g.userConfig(m), Secrets: m.values.Secrets(), Switches: g.gen.Switches,
	}
	a.Memory = s.Memory()
	for _, w := range h.watches {
		a.Synced[w.Binding] = w.Served()
		if w.Decl.Read != "" && w.Unsure() {
			a.Unserved = append(a.Unserved, w.Binding)
		}
	}
	return a
}

// overflow stands in for more events than are worth keeping: one sync event a
// watch, beside the events that tell of no object.
func overflow(events []builtins.Event) []builtins.Event {
	cause, _ := causes.Of(events)
	bindings := map[string]bool{}
	seen := map[string]bool{}
	var out []builtins.Event
	for _, ev := range events {
		if causes.OfWatch(ev) {
			bindings[ev.Binding] = true
		} else if key := ev.Type + " " + ev.Binding; !seen[key] {
			seen[key] = true
			out = append(out, ev)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		out = append(out, builtins.Event{Type: "sync", Binding: name, Cause: cause.Cause})
	}
	return out
}

// newest leaves of the events of one object the last of each type, as the driver's inbox does: each may hold a whole
// version of it, and a hook that fails keeps them until it succeeds.
func newest(events []builtins.Event) []builtins.Event {
	type key struct {
		typ, binding, namespace, name string
		asked                         bool
	}
	at, out := map[key]int{}, make([]builtins.Event, 0, len(events))
	for _, ev := range slices.Backward(events) {
		k := key{ev.Type, ev.Binding, ev.Namespace, ev.Name, ev.Asked}
		i, later := at[k]
		if !later || !causes.OfWatch(ev) {
			at[k] = len(out)
			out = append(out, ev)
			continue
		}
		if ev.Old != nil { // of all that has changed since
			out[i].Old = ev.Old
		}
		if ev.Cause.Compare(out[i].Cause) > 0 {
			out[i].Cause = ev.Cause
		}
	}
	slices.Reverse(out)
	return out
}
