package engine

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

// change is what the next generation changes in the hooks of one module.
type change struct {
	module *module
	fresh  []*hook // that were not there
	edited []*hook // whose code is another one
	stop   []*watches.Watch
}

// renew has a module go on as the next generation has it. A change means that there is
// something to begin with it.
func (t *turn) renew(m *module, d draft) *change {
	if m.barred() { // it stays as it is
		return nil
	}
	m.own, m.broken = d.own, t.whyBroken(m.name, d.own)
	if d.same {
		if d.values != nil {
			m.renewValues(d.values)
		}
		return nil
	}
	old := m.gen
	if m.life == leaving { // it begins anew with the hooks that there are then
		t.takeDown(m)
	}
	m.gen = d.gen
	c := t.renewHooks(m, old)
	if old.Err != nil || t.globals.Stays != "" {
		// The kept state of hooks in files that did not load, or that are in this tree now.
		if err := t.readKept(m); err != nil {
			t.note(builtins.LevelWarn, m, "", err.Error())
		}
	}
	m.renewValues(d.values)
	if old.Tree == nil || d.gen.Tree == nil || !reflect.DeepEqual(old.Tree.CRDs, d.gen.Tree.CRDs) {
		t.renewCRDs(m)
	}
	t.renewPass(m, old)
	return c
}

// renewPass has the module's release looked at: what is in force of it, and what
// enabled() and readiness() said, rests on files that are not the same any more.
func (t *turn) renewPass(m *module, old *generation.Module) {
	m.values.Outdate() // whoever is asked, or under way, does not answer for what is now
	switch {
	case !m.asks():
		m.eval = evaluation{}
	case old.Enabled == nil && old.Readiness == nil && m.life != down:
		// It goes on until the first answer, without a release if enabled() gives that.
		m.eval = evaluation{Task: lane.Task{Done: true}, version: m.values.Version() - 1}
	default:
		m.eval.At = time.Time{}
	}
	m.pass.Renew()
	for _, id := range m.pass.Waiting() {
		if h := m.byKey[id]; h == nil || h.stage(m.pass.Stage()) == nil {
			m.pass.Drop(id)
		}
	}
	t.retrySoon(m)
}

// renewHooks puts the hooks of the next generation into the place of those before.
func (t *turn) renewHooks(m *module, old *generation.Module) *change {
	c := &change{module: m}
	before := m.byKey
	m.hooks, m.byKey = nil, map[string]*hook{}
	// Their defaults are part of what hooks do.
	all := old.Decl.Namespace != m.gen.Decl.Namespace || old.Decl.Release != m.gen.Decl.Release
	for _, g := range m.gen.Hooks {
		h := before[g.ID]
		switch {
		case h == nil:
			h = newHook(m, g)
			c.fresh = append(c.fresh, h)
		case h.gen.Queue != g.Queue, h.forEach() != (g.ForEach != ""), // another lane, or other objects: it is another hook
			h.forEach() && !sameKind(h.eachWatch().Decl, g.Binding(g.ForEach).Watch):
			next := newHook(m, g)
			t.inherit(next, h)
			c.stop = append(c.stop, h.watches...)
			h = next
			c.fresh = append(c.fresh, h)
		default:
			edited := all || h.gen != g && (g.Digest == "" || h.gen.Digest != g.Digest)
			c.stop = append(c.stop, h.take(g, t.globals.Stays != "")...)
			if edited {
				c.edited = append(c.edited, h)
			}
		}
		delete(before, g.ID)
		m.hooks = append(m.hooks, h)
		m.byKey[g.ID] = h
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		h := before[id]
		c.stop = append(c.stop, h.watches...)
		switch {
		case m.gen.Err != nil: // it may be in a file that does not load for now
			t.endHook(h)
		default:
			sets := func(s *subjects.Subject) bool { return len(m.layer(s)) > 0 }
			// Modules may be on by it alone, and it may come back in a moment.
			if m.isGlobal() && slices.ContainsFunc(h.subjects.All(), sets) {
				m.stays = t.now.Add(t.opts.Grace)
			}
			t.dropHook(h)
		}
		t.do(Gone{Module: m.name, Hook: id})
	}
	maps.DeleteFunc(m.queues, func(name string, _ *lane.Lane[builtins.Event]) bool { // no hook waits in it any more
		return name != "" && !slices.ContainsFunc(m.hooks, func(h *hook) bool { return h.gen.Queue == name })
	})
	return c
}

func sameKind(a, b *builtins.WatchBinding) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind
}

// inherit has a hook go on with what the one before it remembers, if it is about the
// same. Runs of that one are still to end.
func (t *turn) inherit(h, old *hook) {
	if h.forEach() != old.forEach() || h.forEach() && !sameKind(h.eachWatch().Decl, old.eachWatch().Decl) {
		t.dropHook(old)
		return
	}
	t.endHook(old)
	h.subjects.Inherit(old.subjects)
	h.ran = old.ran
	for _, timer := range h.schedules {
		timer.Follow(old.schedules.Of(timer.Binding))
	}
	h.module.keepTicks(old.schedules, h.schedules)
}

// dropHook ends the life of a hook, and what it has set and remembers goes.
func (t *turn) dropHook(h *hook) {
	t.endHook(h)
	for _, s := range h.subjects.All() {
		h.module.dropKept(s)
	}
	h.module.keepTicks(h.schedules, nil)
}

// endHook ends the life of a hook, and what waits for it goes. Its watches are ended later.
func (t *turn) endHook(h *hook) {
	for _, s := range h.subjects.All() {
		t.requeueAt(s, time.Time{})
	}
	h.lane.Drop(h.gen.ID)
	t.refuseAsks(h, "it is another one now, or gone")
}

// take has a hook go on with its declaration in the next generation, and returns the watches that end with the one
// before. While the tree takes nothing away, those of children of former kinds begin anew.
func (h *hook) take(g *generation.Hook, stays bool) (stop []*watches.Watch) {
	old, before, ticks := h.gen, h.watches, h.schedules
	h.gen, h.watches, h.schedules = g, nil, nil
	if old.MinInterval != g.MinInterval || old.Burst != g.Burst {
		h.limit()
	}
	former := h.module.former(g)
	goOn := slices.DeleteFunc(slices.Clone(before), func(w *watches.Watch) bool {
		each := w.Binding == g.ForEach
		again := stays && slices.ContainsFunc(former, func(b builtins.Binding) bool { return b.Name == w.Binding })
		return w.ID == "" || again || each != (w.Binding == old.ForEach) || each && old.Cleans() != g.Cleans()
	})
	h.bind(g.Bindings, ticks, goOn)
	h.bind(former, nil, goOn)
	for _, w := range before {
		if !slices.Contains(h.watches, w) {
			stop = append(stop, w)
		}
	}
	h.module.keepTicks(ticks, h.schedules)
	return stop
}

// sees says whether two watches keep the same of the same objects, and wake the same by it.
func sees(a, b *builtins.WatchBinding) bool {
	return sameKind(a, b) && a.Labels == b.Labels && a.NamespaceLabels == b.NamespaceLabels && a.Fields == b.Fields &&
		slices.Equal(a.Names, b.Names) && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.ExcludeNamespaces, b.ExcludeNamespaces) &&
		a.FilterID == b.FilterID && (a.Filter == nil) == (b.Filter == nil) && a.KeepObject == b.KeepObject && a.KeepBoth == b.KeepBoth && a.Old == b.Old &&
		slices.EqualFunc(a.Index, b.Index, func(x, y builtins.Index) bool { return x.Name == y.Name && x.ID == y.ID }) && a.Read == b.Read &&
		a.WakesID == b.WakesID && a.WakesAll == b.WakesAll && (a.Wakes == nil) == (b.Wakes == nil)
}

// begun starts what a change brings, then ends what it takes: watches that both have in
// common go on without being listed again. On a standby nothing but watches begins and ends.
func (e *Engine) begun(c *change) {
	m := c.module
	if m.life != down {
		incarnation := e.op() // of watches: an earlier one may have had the same hook and binding
		for _, h := range c.fresh {
			h.watchFormer()
			e.startWatches(h, incarnation)
		}
		e.startRest(m, incarnation)
	}
	if m.life != down && e.leads() {
		for _, h := range c.fresh {
			e.wakeHook(h)
			e.missedAll(h)
		}
		for _, h := range c.edited {
			e.again(h)
		}
		for _, h := range m.hooks {
			for _, t := range h.schedules {
				if t.Next().IsZero() {
					e.startTimer(h, t)
				}
			}
		}
	}
	for _, w := range c.stop {
		if h := e.watches[w.ID]; h != nil && (h.watches.At(w.ID) == w || h.watches.At(w.ID) == nil) { // else another one has its id
			delete(e.watches, w.ID)
			e.do(StopWatch{ID: w.ID})
		}
	}
}

// again has a hook run with its new code as it would at a start, while what it has set
// and remembers stays.
func (e *Engine) again(h *hook) {
	e.willHold(h)
	h.echoes.Forget()
	h.subjects.Renew()
	e.queueStartup(h)
	e.missedAll(h)
	for _, binding := range h.watches.Again() {
		e.queue(h, builtins.Event{Type: "sync", Binding: binding})
	}
	if h.watches.Synced() {
		e.begin(h)
	}
	// Failed runs failed with other code.
	e.retryAll(h, 0)
}

// missedAll queues what global hooks get once in the life of a process, or when all
// modules have come to rest.
func (e *Engine) missedAll(h *hook) {
	if b := h.stage(builtins.StageBeforeAll); b != nil && e.standings.Begun() {
		e.add(h, h.subjects.At(""), b.Order, builtins.Event{Type: releases.EventType(builtins.StageBeforeAll), Binding: string(builtins.StageBeforeAll)})
	}
	if h.stage(builtins.StageAfterAll) != nil {
		e.standings.Stir()
	}
}

// bar keeps hooks from running that have taken processes with them.
func (t *turn) bar(hooks []*hook, why map[string]string) {
	for _, h := range hooks {
		if h.barred = why[h.gen.ID]; h.barred != "" {
			t.note(builtins.LevelError, h.module, h.gen.ID, h.barred)
		}
	}
}
