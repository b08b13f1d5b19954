package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// leaves says whether the hook runs as the module's release is uninstalled.
func (h *hook) leaves() bool {
	return h.stage(builtins.StageBeforeDelete) != nil || h.stage(builtins.StageAfterDelete) != nil
}

// leaves says whether the module must run, or go on running, its before_delete and
// after_delete hooks. A removal that has begun with the uninstall is brought to its end.
func (m *module) leaves() bool {
	switch {
	case m.life == leaving && m.pass.MustLeave():
		return true
	case m.verdict.Do != verdicts.Uninstall || m.broken != "" || !m.there():
		return false
	}
	return slices.ContainsFunc(m.hooks, (*hook).leaves)
}

// beginLeaving starts what before_delete and after_delete hooks need: their watches,
// and nothing else of the module.
func (t *turn) beginLeaving(m *module) {
	if m.life != down {
		t.takeDown(m)
	}
	m.life = leaving
	for _, h := range m.hooks {
		if h.leaves() {
			t.startWatches(h, m.incarnation)
		}
	}
}

// upKey says among what is kept for a module that its hooks have run, and those of
// before_delete and after_delete are to hear of its end.
const upKey = "up"

// noteUp notes that the module's hooks are about to run. No run begins before that is
// kept: another process has to know, too.
func (*turn) noteUp(m *module) {
	if m.life != up {
		return
	}
	var up []byte
	if slices.ContainsFunc(m.hooks, (*hook).leaves) {
		up = []byte("true")
	}
	m.store.Put(upKey, up)
}

// leavingReason says what the uninstall waits for, or "".
func (m *module) leavingReason() string {
	for _, id := range m.pass.Waiting() {
		h := m.byKey[id]
		if why := h.trouble(); why != "" {
			return fmt.Sprintf("%s hook %s: %s", m.pass.Stage(), strings.TrimPrefix(id, m.name+"/"), why)
		}
	}
	return ""
}

// beginAll queues the before_all hooks, once the other global hooks were tried.
func (e *Engine) beginAll(m *module) {
	if e.standings.Begun() || m.life == down {
		return
	}
	for _, h := range m.hooks {
		if h.stage(builtins.StageBeforeAll) == nil && h.gates() && !h.subjects.First().Passed() && h.trouble() == "" {
			return
		}
	}
	e.standings.Begin()
	e.queueStage(m, builtins.StageBeforeAll, false)
}

// endsAll says that after_all hooks work, or modules that they may have set to work. Timers and watches that tell of
// something meanwhile end no row of such rounds: it would never end beside one that comes each second.
func (v *View) endsAll() bool {
	return v.gen != nil && (!v.standings.AtRest() || slices.ContainsFunc(v.global.hooks, func(h *hook) bool {
		return h.stage(builtins.StageAfterAll) != nil && (h.running() || h.lane.Waits(h.gen.ID))
	}))
}

// endAll queues the after_all hooks when all modules have come to rest. It says
// whether there is more to look at.
func (e *Engine) endAll() bool {
	if e.standsBy() || !slices.ContainsFunc(e.global.hooks, func(h *hook) bool { return h.stage(builtins.StageAfterAll) != nil }) {
		return false
	}
	switch round := e.standings.Rest(); {
	case round == 0, round > releases.MaxRounds+1:
		return false
	case round == releases.MaxRounds+1:
		e.note(builtins.LevelWarn, e.global, "", fmt.Sprintf(
			"after_all hooks have set modules to work %d times in a row; they run again after the next change from outside", releases.MaxRounds))
		return false
	}
	if len(e.queueStage(e.global, builtins.StageAfterAll, false)) == 0 {
		return false
	}
	e.touch(e.global)
	return true
}
