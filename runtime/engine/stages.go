package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// stageEvents are the types of the events of stages.
var stageEvents = map[builtins.Stage]string{
	builtins.StageBeforeHelm: "helm", builtins.StageAfterHelm: "helm",
	builtins.StageBeforeDelete: "delete", builtins.StageAfterDelete: "delete",
	builtins.StageBeforeAll: "all", builtins.StageAfterAll: "all",
}

// stages are those whose hooks a phase waits for.
var stages = map[phase]builtins.Stage{
	beforeHelm: builtins.StageBeforeHelm, afterHelm: builtins.StageAfterHelm,
	beforeDelete: builtins.StageBeforeDelete, afterDelete: builtins.StageAfterDelete,
}

// leaves says whether the hook runs as the module's release is uninstalled.
func (h *hook) leaves() bool {
	return h.stages[builtins.StageBeforeDelete] != nil || h.stages[builtins.StageAfterDelete] != nil
}

// leaves says whether the module must run, or go on running, its before_delete and
// after_delete hooks. What has begun with the uninstall is brought to its end.
func (m *module) leaves() bool {
	switch {
	case m.leaving && (m.pass.phase == uninstalling || m.pass.phase == afterDelete):
		return true
	case !m.verdict.Uninstall || m.broken != "" || !m.there():
		return false
	}
	return slices.ContainsFunc(m.hooks, (*hook).leaves)
}

// beginLeaving starts what before_delete and after_delete hooks need: their watches,
// and nothing else of the module.
func (e *Engine) beginLeaving(m *module) {
	if m.started {
		e.takeDown(m)
	}
	m.started, m.leaving = true, true
	for _, h := range m.hooks {
		if h.leaves() {
			e.startWatches(m, h)
		}
	}
}

// beginDelete uninstalls a release of the module, after its before_delete hooks.
func (e *Engine) beginDelete(m *module) {
	p := &m.pass
	if m.leaving && !p.bidden {
		p.phase, p.waiting = beforeDelete, e.queueStage(m, builtins.StageBeforeDelete)
		if len(p.waiting) > 0 {
			return
		}
		p.bidden = true
	}
	e.uninstall(m, p.refs[0])
}

// leavingReason says what the uninstall waits for, or "".
func (m *module) leavingReason() string {
	for _, id := range slices.Sorted(maps.Keys(m.pass.waiting)) {
		h := m.byKey[id]
		if why := h.trouble(); why != "" {
			return fmt.Sprintf("%s hook %s: %s", stages[m.pass.phase], strings.TrimPrefix(id, m.name+"/"), why)
		}
	}
	return ""
}

// beginAll queues the before_all hooks, once the other global hooks were tried.
func (e *Engine) beginAll() {
	if e.allBegun || !e.global.started {
		return
	}
	for _, h := range e.global.hooks {
		if h.stages[builtins.StageBeforeAll] == nil && h.gates() && !h.succeeded && h.trouble() == "" {
			return
		}
	}
	e.allBegun = true
	e.queueStage(e.global, builtins.StageBeforeAll)
}

// endAll queues the after_all hooks when all modules have come to rest. It says
// whether there is more to look at.
func (e *Engine) endAll() bool {
	if !slices.ContainsFunc(e.global.hooks, func(h *hook) bool { return h.stages[builtins.StageAfterAll] != nil }) {
		return false
	}
	for _, m := range e.modules {
		if !m.settled() || m.pass.phase != idle {
			e.busy = true
			return false
		}
	}
	if !e.busy {
		return false
	}
	e.busy = false
	if e.allRounds++; e.allRounds > maxRounds {
		if e.allRounds == maxRounds+1 {
			e.note(builtins.LevelWarn, e.global, "", fmt.Sprintf(
				"after_all hooks have set modules to work %d times in a row; they run again after the next change from outside", maxRounds))
		}
		return false
	}
	if len(e.queueStage(e.global, builtins.StageAfterAll)) == 0 {
		return false
	}
	e.touch(e.global)
	return true
}
