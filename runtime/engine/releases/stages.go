package releases

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/builtins"
)

// stages are those whose hooks a phase waits for.
var stages = map[phase]builtins.Stage{
	beforeHelm: builtins.StageBeforeHelm, afterHelm: builtins.StageAfterHelm,
	beforeDelete: builtins.StageBeforeDelete, afterDelete: builtins.StageAfterDelete,
}

// Wait has the pass wait for hooks of a stage, none if there are none.
func (p *Pass) Wait(stage builtins.Stage, hooks map[string]bool) {
	p.waiting = hooks
	switch stage {
	case builtins.StageBeforeHelm:
		p.phase, p.wanted = beforeHelm, false
	case builtins.StageAfterHelm:
		if p.phase = afterHelm; len(hooks) == 0 { // they will run once there are some
			p.phase = idle
		}
	case builtins.StageBeforeDelete:
		p.phase = beforeDelete
	case builtins.StageAfterDelete:
		p.phase = afterDelete
	}
}

// Stage is that whose hooks the pass waits for, or "".
func (p *Pass) Stage() builtins.Stage { return stages[p.phase] }

// Waiting are the hooks that the pass waits for, sorted.
func (p *Pass) Waiting() []string { return slices.Sorted(maps.Keys(p.waiting)) }

// WaitsFor says whether the pass waits for a hook.
func (p *Pass) WaitsFor(hook string) bool { return p.waiting[hook] }

// Drop has the pass wait for a hook no more.
func (p *Pass) Drop(hook string) { delete(p.waiting, hook) }

// Ran takes in the end of a run. It must have succeeded; after Helm it is enough that it was
// tried: its own retries go on.
func (p *Pass) Ran(hook string, events []builtins.Event, succeeded bool) {
	stage := p.Stage()
	its := func(ev builtins.Event) bool { return isOf(&ev, stage) }
	if stage != "" && slices.ContainsFunc(events, its) && (succeeded || stage == builtins.StageAfterHelm) {
		p.Drop(hook)
	}
}

// StageOf is the stage of a release that a run for these events is part of, or "". One that other
// events have led to as well is no work of after_helm alone.
func StageOf(events []builtins.Event) builtins.Stage {
	after := len(events) > 0
	for i := range events {
		if isOf(&events[i], builtins.StageBeforeHelm) {
			return builtins.StageBeforeHelm
		}
		after = after && isOf(&events[i], builtins.StageAfterHelm)
	}
	if after {
		return builtins.StageAfterHelm
	}
	return ""
}

func isOf(ev *builtins.Event, stage builtins.Stage) bool {
	return ev.Type == EventType(stage) && ev.Binding == string(stage)
}

// EventType is the type of the events of a stage.
func EventType(stage builtins.Stage) string {
	switch stage {
	case builtins.StageBeforeHelm, builtins.StageAfterHelm:
		return "helm"
	case builtins.StageBeforeDelete, builtins.StageAfterDelete:
		return "delete"
	}
	return "all"
}
