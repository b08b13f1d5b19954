package engine

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	"github.com/starling-operator/starling/runtime/engine/sets"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/message"
)

// globalName stands for the global hooks wherever modules go by name.
const globalName = "global"

// module is the state of one module, or of the global hooks.
type module struct {
	name   string
	gen    *generation.Module
	from   *generation.Generation // the last one that it was in
	own    string                 // why it cannot be used, others aside
	broken string                 // why it cannot be used
	hooks  []*hook
	byKey  map[string]*hook
	// queues are the module's line of work and those that hooks asked for with
	// queue=, by name; the module's own is "".
	queues map[string]*lane.Lane[builtins.Event]
	// asked are its actions that wait for their answers, by number. The hook of a run among them may be gone, or another
	// one in its place.
	asked map[uint64]*asked

	values *layers.Module
	moves  []*effect.Cause // of changes of layers that the values do not show yet: those of one write are shown at once

	verdict verdicts.Verdict

	life    life
	sets    *sets.Sets
	removed bool      // it is not in the tree any more
	stays   time.Time // until then what is not in the tree may come back: the module; of global, hooks
	// incarnation is a number of an action: results of earlier ones count for nothing.
	incarnation uint64
	finalizers  *finalizers.Set
	serves      *Serve // which hooks answer requests, as the driver knows it; nil: it does not
	crds        lane.Task
	eval        evaluation
	pass        *releases.Pass
	repairs     *repairs.Repairs
	findings    [3][]string    // for people, of the objects of its release: untouched, unknown, and unseen
	store       *persist.Store // what is kept of it
}

// life says which hooks of a module run.
type life int

const (
	down    life = iota // none but those of startup(when_off=True)
	up                  // all but the next ones; on a standby, watches of them alone
	leaving             // those of before_delete and after_delete
)

// Findings of a module.
const (
	untouched = iota // objects that are going
	unknown          // fields that the API server has dropped
	unseen           // objects that are not watched
)

// adopt takes a generation over, with what earlier processes kept.
func (e *Engine) adopt(in Start) {
	gen := in.Generation
	for _, p := range e.gen.Unknown {
		e.do(Note{Level: builtins.LevelWarn, Module: p.Module, Message: p.String()})
	}
	e.global = e.newModule(globalName, gen.Global, in)
	for _, name := range gen.Names {
		e.modules[name] = e.newModule(name, gen.Modules[name], in)
	}
	e.arrange()
}

// newModule makes a module, with what earlier processes have left, as in says.
func (e *Engine) newModule(name string, g *generation.Module, in Start) *module {
	if g == nil {
		g = noGlobal
	}
	store := persist.New(in.Kept[name])
	if in.Standby {
		store = persist.Follow(in.Kept[name])
	}
	installed := slices.DeleteFunc(slices.Clone(in.Installed), func(ref ReleaseRef) bool { return ref.Module != name })
	m := &module{
		name: name, gen: g, from: e.gen.Of(name),
		byKey:      map[string]*hook{},
		queues:     map[string]*lane.Lane[builtins.Event]{},
		asked:      map[uint64]*asked{},
		sets:       sets.New(in.Sets[name]...),
		finalizers: finalizers.New(),
		pass:       releases.New(installed...),
		repairs:    repairs.New(),
		store:      store,
		values:     e.layers.Add(g),
	}
	if g.Err != nil {
		m.own = message.List(g.Err.Error())
	}
	for _, gh := range g.Hooks {
		h := newHook(m, gh)
		m.hooks = append(m.hooks, h)
		m.byKey[gh.ID] = h
	}
	if err := e.readKept(m); err != nil {
		e.note(builtins.LevelWarn, m, "", err.Error())
	}
	static, why := e.staticValues(g)
	m.renewValues(static)
	m.own = cmp.Or(m.own, why)
	m.broken = e.whyBroken(name, m.own)
	return m
}

// whyBroken says why a module cannot be used beside the others; own is why it cannot by itself, or "".
func (g *ground) whyBroken(name, own string) string {
	if err := g.gen.Graph.Problems[name]; err != nil && own == "" {
		return err.Error()
	}
	return own
}

// isGlobal says that it is that of the global hooks.
func (m *module) isGlobal() bool { return m.gen.Global }

func (m *module) queue(name string) *lane.Lane[builtins.Event] {
	l := m.queues[name]
	if l == nil {
		l = lane.New(lane.Options[builtins.Event]{Overflow: overflow, Fewer: newest, Parallel: m.parallel, Pause: m.pause})
		m.queues[name] = l
	}
	return l
}

// lanes are its lines of work, in the order of their names.
func (m *module) lanes() iter.Seq2[string, *lane.Lane[builtins.Event]] {
	return func(yield func(string, *lane.Lane[builtins.Event]) bool) {
		for _, name := range slices.Sorted(maps.Keys(m.queues)) {
			if !yield(name, m.queues[name]) {
				return
			}
		}
	}
}

// parallel says how many runs of a hook go side by side.
func (m *module) parallel(hook string) int {
	if h := m.byKey[hook]; h != nil {
		return h.gen.Parallel
	}
	return 1
}

// pause is the least time between tries of a hook that fails.
func (m *module) pause(hook string) time.Duration {
	if h := m.byKey[hook]; h != nil {
		return h.gen.Retry.Min
	}
	return 0
}

func (m *module) ref(operator string) ReleaseRef {
	return ReleaseRef{Module: m.name, Name: m.gen.Decl.Release, Namespace: m.namespace(operator)}
}

func (m *module) namespace(operator string) string {
	if m.gen.Decl.Namespace != "" {
		return m.gen.Decl.Namespace
	}
	return operator
}

func (m *module) hasChart() bool { return m.gen.Tree != nil && m.gen.Tree.Chart != nil }

// bringUp applies the module's CRDs, then starts its watches and startup hooks.
func (t *turn) bringUp(m *module) {
	if m.pass.Uninstalling() {
		return // its end is waited for
	}
	if m.wantsCRDs() {
		t.applyCRDs(m)
		return
	}
	t.endOff(m)
	m.life = up
	for _, h := range m.hooks {
		h.watchFormer()
		t.startWatches(h, m.incarnation)
		t.wakeHook(h)
	}
	m.pass.Begin()
}

// wantsCRDs says that CRDs are not applied as they are in the tree.
func (m *module) wantsCRDs() bool {
	return m.gen.Tree != nil && (len(m.gen.Tree.CRDs) > 0 || !m.crds.At.IsZero()) && !m.crds.Done
}

func (t *turn) applyCRDs(m *module) {
	if !m.crds.Due(t.now) {
		return
	}
	m.crds.Running = true
	t.ask(m, ApplyCRDs{Op: t.op(), Module: m.gen})
}

func (e *Engine) crdsApplied(m *module, a asked, in CRDsApplied) {
	m.crds.Ended(e.now, in.Err, e.opts.Jitter)
	if in.Err == nil {
		e.kindsCame()
	}
	if m.gen.Tree != a.action.(ApplyCRDs).Module.Tree { // others have come meanwhile
		e.renewCRDs(m)
	}
}

// renewCRDs has the definitions applied as they are in the tree now. When there are none any more others may have
// what the module had: that is due, too.
func (t *turn) renewCRDs(m *module) {
	if m.crds.Again(); m.gen.Tree != nil && len(m.gen.Tree.CRDs) == 0 {
		m.crds.Soon(t.now)
	}
}

// takeDown ends the module's watches and forgets what waits.
func (t *turn) takeDown(m *module) {
	m.life = down
	m.crds.Again() // one at a time: the last one counts
	m.incarnation = t.op()
	for _, l := range m.lanes() {
		l.Clear()
	}
	m.pass.Stop()
	for _, h := range m.hooks {
		t.refuseAsks(h, h.refusesRequests())
		for _, w := range h.watches {
			delete(t.watches, w.ID)
			t.do(StopWatch{ID: w.ID})
		}
		for _, s := range h.subjects.All() {
			t.requeueAt(s, time.Time{})
		}
		h.reset()
	}
	t.do(Unpublish{Module: m.name})
}

// show logs a change of a module's state, once.
func (e *Engine) show(m *module) {
	if !e.visible(m) {
		return
	}
	state, reason := e.moduleState(m)
	line := string(state)
	if reason != "" {
		line += ": " + reason
	}
	news, first := e.standings.Show(m.name, line, e.now)
	if !news {
		return
	}
	level := builtins.LevelInfo
	switch state {
	case status.ModuleBroken:
		level = builtins.LevelError
	case status.ModuleFailed:
		level = builtins.LevelError
		if m.pass.Failed().Err == "" && m.eval.Err == "" && m.crds.Err == "" {
			level = builtins.LevelDebug // the hook has said it already
		}
	case status.ModuleStarting, status.ModuleReleasing:
		level = builtins.LevelDebug
	case status.ModuleOff:
		if first {
			level = builtins.LevelDebug
		}
	}
	note := Note{Level: level, Module: m.name, Message: line}
	if state == status.ModuleBroken {
		note.Err = m.gen.Err
	}
	e.do(note)
}

// problems are what is wrong with the module beside its state.
func (g *ground) problems(m *module) []string {
	var out []string
	for _, p := range g.config.Problems()[m.name] {
		out = append(out, p.Text)
	}
	if why := g.gen.Held[m.name]; why != "" {
		out = append(out, "it stays as it was before the last change of the module tree: "+why)
	}
	if m.gen.Tree != nil && !m.removed && !m.hasChart() && m.pass.Installed() {
		ref := m.pass.Refs()[0]
		out = append(out, fmt.Sprintf("release %s/%s stays as it is: the module has no chart any more; switch it off once to uninstall it", ref.Namespace, ref.Name))
	}
	for _, h := range m.hooks {
		for _, why := range []string{h.watches.Trouble(), h.echoes.Trouble()} {
			if why != "" {
				out = append(out, strings.TrimPrefix(h.gen.ID, m.name+"/")+": "+why)
			}
		}
	}
	if why := m.sets.Trouble(); why != "" {
		out = append(out, why)
	}
	if why := m.repairs.Err(); why != "" {
		out = append(out, "repair: "+strings.ReplaceAll(why, "\n", "; "))
	}
	return slices.Concat(out, m.findings[unknown], m.findings[untouched], m.findings[unseen])
}
