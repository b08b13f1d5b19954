package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

// A module that is not in the tree any more leaves as one that is switched off does: by its verdict, with the hooks
// that its last generation had. After a restart nobody has them. Then what was kept for it goes, too.

// goneHint is said where such a hook fails: nobody can mend it where it was.
const goneHint = "; its folder is gone: bring it back to mend the hook, or restart starling to uninstall without it"

// errGone stands in for the files of a module that an earlier process has left: what was
// kept for its hooks is not nobody's, for it may come back.
var errGone = errors.New(verdicts.GoneReason)

// findRemoved notes what earlier processes have left of modules that are not in the tree.
func (e *Engine) findRemoved(in Start) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(in.Kept)), maps.Keys(in.Sets))
	for _, ref := range in.Installed {
		names = append(names, ref.Module)
	}
	order := verdicts.ReadPlaces(in.Kept[globalName][orderKey])
	for _, name := range slices.Sorted(slices.Values(names)) {
		if e.any(name) != nil {
			continue
		}
		g := &generation.Module{Name: name, Key: name, Err: errGone}
		order[name].Put(&g.Decl)
		m := e.newModule(name, g, in)
		e.modules[name] = m
		m.absent(e.now, e.opts.Grace)
	}
	e.arrange()
	e.lookAtFolders(nil)
}

// remove ends a module that is not in the tree any more.
func (t *turn) remove(m *module) {
	if m.life != down {
		t.takeDown(m)
	}
	m.incarnation = t.op() // runs of a session count for nothing, too
	if m.serves.any() {
		m.serves = &Serve{Module: m.gen}
		t.do(*m.serves)
	}
	t.do(Gone{Module: m.name})
	m.absent(t.now, t.opts.Grace)
	if t.elsewhere(m) {
		m.values.Withhold()
	}
	for _, id := range m.store.Take() {
		t.drop(t.run(id)) // else it would stay occupied until the write under way has ended
	}
}

// absent notes that a module is not in the tree. It goes in a while: people may replace its folder slowly.
func (m *module) absent(now time.Time, grace time.Duration) {
	m.removed, m.stays = true, now.Add(grace)
}

// hollow says that the folder of a module is there, and holds nothing of it: it may be one that is being written.
func (g *ground) hollow(m *module) bool { return slices.Contains(g.gen.Tree.Hollow, m.name) }

// lookAtFolders looks at the folders of modules that are not in the tree; before names the ones that were hollow.
func (e *Engine) lookAtFolders(before []string) {
	for _, m := range e.gone() {
		switch {
		case e.elsewhere(m): // nothing of it is taken away then, and its hooks of before_delete do not run here any more
			m.store.Put(upKey, nil)
		case m.verdict.Do == verdicts.GiveBack:
			m.stays = e.now.Add(e.opts.Grace)
		}
		switch was := slices.Contains(before, m.name); {
		case e.hollow(m) && !was && m.there():
			e.note(builtins.LevelWarn, m, "", verdicts.HollowReason+"; remove the folder to uninstall it")
		case !e.hollow(m) && was:
			m.stays = e.now.Add(e.opts.Grace)
		}
	}
}

// Stays says whether the tree takes nothing away for now.
func (v *View) Stays() bool { return v.globals.Stays != "" }

// stay notes until when the tree takes nothing away. Then modules that it lacks go as if they had left it now, and so
// do children of kinds that it lacks.
func (e *Engine) stay(until string) {
	if until == e.globals.Stays {
		return
	}
	if e.globals.Stays = until; until == "" {
		for _, m := range e.gone() {
			m.absent(e.now, e.opts.Grace)
		}
		for _, m := range e.all() {
			if m.life == up {
				e.startRest(m, e.op())
			}
		}
		e.retryFailedSoon() // of releases that a newer tree has made
	}
}

// elsewhere says whether another instance may have the module: it is in the tree, and the selector of this
// instance leaves it out.
func (g *ground) elsewhere(m *module) bool { return m.removed && g.gen.Elsewhere[m.name] }

// atRest says that all modules of the tree have settled, or names one that has not; one that waits for the end of a
// module that has left counts, too. A tree that cannot be read as a whole has none.
func (v *View) atRest(left *module) (rest bool, first string) {
	for _, name := range v.order() {
		if m := v.modules[name]; !m.settled() && !v.awaits(m, left, map[*module]bool{}) {
			return false, name
		}
	}
	return len(v.order()) > 0, ""
}

// heldBy says what a module that leaves waits for, where its verdict does not; "" for nothing.
func (v *View) heldBy(m *module) string {
	for _, id := range m.pass.Waiting() {
		return "; waits for its " + string(m.pass.Stage()) + " hook " + strings.TrimPrefix(id, m.name+"/")
	}
	if v.goneness(m) != verdicts.Busy {
		return ""
	}
	if _, name := v.atRest(m); name != "" {
		state, _ := v.moduleState(v.modules[name])
		return "; waits for module " + name + ", which is " + string(state)
	}
	if i := slices.IndexFunc(m.hooks, (*hook).running); i >= 0 { // the same one at each look
		return "; waits for a run of its hook " + strings.TrimPrefix(m.hooks[i].gen.ID, m.name+"/")
	}
	if m.finalizers.Sweeping() {
		return "; waits until the finalizers of its hooks are off"
	}
	return ""
}

// awaits says whether a module waits, itself or by way of others, until another one has gone. Seen are those on the way.
func (v *View) awaits(m, end *module, seen map[*module]bool) bool {
	if m == end || m == nil || seen[m] || m.verdict.State != status.ModuleBlocked && m.verdict.Do != verdicts.Wait {
		return m == end
	}
	seen[m] = true
	names := []string{m.verdict.For}
	if m.verdict.For == "" {
		names = strings.Split(v.before(m).Module, "|")
	}
	return slices.ContainsFunc(names, func(name string) bool { return v.awaits(v.modules[name], end, seen) })
}

// brokenNew names a module of the tree that is broken, of which nothing is or was there, and that may
// be another name of one that has left; "" without any. For one that has left before this process
// began, nil where it has left nothing that the engine knows, nobody knows which modules are new.
func (v *View) brokenNew(left *module) string {
	for _, name := range v.order() {
		isNew := left == nil || left.gen.Err == errGone || v.gen.Unfit[name] != ""
		if m := v.modules[name]; isNew && m.broken != "" && !m.there() && len(m.store.Data()) == 0 {
			return name
		}
	}
	return ""
}

// MayBeRenamed says whether a module that is not in the tree may be one that is broken, under another name: what it has
// registered stays then, as its release does.
func (v *View) MayBeRenamed(name string) bool {
	return v.gen == nil || !v.gen.Elsewhere[name] && v.brokenNew(v.modules[name]) != ""
}

// occupied says that something of a module that was removed is still under way.
func (m *module) occupied() bool {
	if m.pass.Working() || m.repairs.Running() || m.store.Writing() || m.crds.Running || m.sets.Removing() {
		return true
	}
	return m.finalizers.Sweeping() || m.atWork()
}

// forgetGone takes away what was kept for a module that is gone, as the last of all. The look
// after that is written forgets the module.
func (e *Engine) forgetGone(m *module) {
	if !m.removed || m.verdict.Do != verdicts.Forget || !m.finalizers.Empty() || m.occupied() {
		return
	}
	if m.store.Clear(); !m.store.Clean() {
		return
	}
	delete(e.modules, m.name)
	e.layers.Drop(m.values)
	e.valuesMoved(nil, e.layers.Unexport(m.name), nil)
	e.arrange()
	if e.config.Drop(m.name) {
		e.keepConfig()
	}
	e.noteOrder()
	e.do(Gone{Module: m.name}) // its last runs may have left something in the metrics
}

// retryFailedSoon has releases tried again that have failed: they may have waited for objects of one that is gone.
func (e *Engine) retryFailedSoon() {
	for _, m := range e.modules {
		if m.pass.Failed().Err != "" {
			e.retrySoon(m)
		}
	}
}

// kindsCame has releases tried again that have waited for a kind: a module that nothing orders before them may have
// brought it.
func (e *Engine) kindsCame() {
	for _, m := range e.modules {
		if m.pass.Failed().Awaits == lane.AwaitsKind {
			m.pass.RetrySoon(e.now)
			e.touch(m)
		}
	}
}
