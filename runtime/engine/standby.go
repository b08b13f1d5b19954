package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// A standby is an engine of a process that waits for the Lease. It takes in what the one that leads
// takes in: the tree, what is kept, what users ask for, watches. So it answers reviews as that one
// does. It withholds all else: no event is queued, no hook runs, nothing is written. It starts watches,
// asks enabled(), and says which hooks answer. A process that gets the Lease goes on with another
// engine, as after a restart: nothing of the standby can be wrong there.

// standbyNumbers is where the numbers of a standby's actions and watches begin: those of the engine
// that leads in the same process must be others.
const standbyNumbers = 1 << 62

// standsBy says that the engine is a standby: its numbers are those of one.
func (g *ground) standsBy() bool { return g.ops >= standbyNumbers }

// leads says that the engine works, and is no standby.
func (g *ground) leads() bool { return g.gen != nil && !g.standsBy() }

// Numbers is the highest number that the engine has given, as [Start] takes it.
func (v *View) Numbers() uint64 { return v.ops &^ standbyNumbers }

// number gives the watches of all modules names that no other engine of the process has.
func (e *Engine) number(in Start) {
	from := in.Numbers
	if in.Standby {
		from |= standbyNumbers
	}
	if from == 0 {
		return
	}
	e.ops = from
	for _, m := range e.all() {
		m.incarnation = e.op()
	}
}

// standby takes in what a standby goes by. Changes that watches see have runs alone, so they are left out, and the one
// that leads says which objects are gone.
func (e *Engine) standby(m *module, in Input) {
	switch in := in.(type) {
	case WatchChanged:
	case WatchSynced:
		h := e.watches[in.ID]
		h.watches.Sync(h.watches.At(in.ID), in.Served)
	case Kept:
		e.followKept(m, in)
	default:
		e.route(m, in)
	}
}

// standingBy is what people are shown of a module on a standby: how far it has come the one that leads knows.
func standingBy(v verdicts.Verdict) (status.ModuleState, string) {
	if v.Do.Runs() {
		return status.ModuleWaiting, "this starling stands by; the one that holds the lease works"
	}
	return v.State, v.Reason
}

// follow starts the watches of a module that runs where the Lease is, and ends those of one that does not. CRDs have
// come from there.
func (t *turn) follow(m *module) {
	switch runs := m.verdict.Do.Runs(); {
	case runs && m.life == down:
		m.life = up
		for _, h := range m.hooks {
			t.startWatches(h, m.incarnation)
		}
	case !runs && m.life != down:
		t.takeDown(m)
	}
}

// Answers says whether reviews of all modules that run are answered by whole snapshots; if not, whose are not. A watch
// with trouble keeps its own hook from answering, and nobody else.
func (v *View) Answers() (bool, string) {
	switch {
	case v.gen == nil:
		return false, "does not hold the lease"
	case !v.config.Known():
		return false, "reading the configuration"
	}
	for _, name := range v.agenda.Tree() { // global is the first
		m := v.any(name)
		if m.verdict.State == status.ModuleStarting {
			return false, "module " + m.name + " is starting: " + m.verdict.Reason
		}
		if m.life == down {
			continue
		}
		for _, h := range m.hooks {
			if !h.watches.Complete() && h.trouble() == "" {
				return false, "hook " + h.gen.ID + ": its snapshots are not complete"
			}
		}
	}
	return true, ""
}

// followKept makes what the one that leads has kept for a module count here: layers and states.
func (t *turn) followKept(m *module, in Kept) {
	before := m.store.Data()
	note := func(key string, err error) {
		if err != nil {
			t.note(builtins.LevelWarn, m, "", fmt.Sprintf("what is kept as %s cannot be read: %v", key, err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if kind := keptKindOf(key); in.Data[key] == nil && kind.forget != nil {
			of, err := subjects.Decode[subjects.Of](before[key])
			if s := m.subject(of); s != nil {
				kind.forget(t, m, s)
			}
			note(key, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Data)) {
		if kind := keptKindOf(key); kind.follow != nil && !bytes.Equal(before[key], in.Data[key]) {
			_, err := kind.follow(t, m, in.Data[key])
			note(key, err)
		}
	}
	m.store = persist.Follow(in.Data)
}
