package engine

import (
	"cmp"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/lane"
)

// Load is what the metrics show of the engine: cheap enough to be taken every second.
type Load struct {
	Modules []ModuleLoad
	Lanes   []LaneLoad
	// Refused is how many parts of the user's config are not in force, because they are not right, by module; "global"
	// too. ConfigHeld says that what it has said last stays in force, for it is gone or cannot be read.
	Refused    map[string]int
	ConfigHeld bool
	// Echoing are the hooks that wake themselves, maybe by way of others, and are slowed down.
	Echoing []HookLoad
}

// HookLoad names a hook.
type HookLoad struct{ Module, Hook string }

// ModuleLoad is the state of one module.
type ModuleLoad struct {
	Name  string
	State status.ModuleState
	// Drifted is how many objects of its release are not as Starling has left them. Contested are those, and children of
	// its controllers, that somebody changes again and again, by the manager that writes them, "" where it is not known.
	Drifted   int
	Contested map[string]int
}

// LaneLoad is what waits in one lane.
type LaneLoad struct {
	// Module is "global" for global hooks; Queue is "" for the lane that every module has, else queue= of its hooks.
	Module, Queue string
	Waiting       []lane.Queued
}

// AtRest says that no module has anything to do: each one is released, off, or waits for something
// outside. Before [Start] none has, and none of a standby.
func (v *View) AtRest() bool { return !v.leads() || v.standings.AtRest() }

// Load returns the state of all modules and what waits in their lanes; nothing
// before [Start].
func (v *View) Load() Load {
	if v.gen == nil {
		return Load{}
	}
	out := Load{ConfigHeld: v.configStatus().State == status.ConfigHeld, Refused: map[string]int{}}
	for name, problems := range v.config.Problems() {
		for _, p := range problems {
			if p.Outcome != values.Unused {
				out.Refused[cmp.Or(name, globalName)]++
			}
		}
	}
	lanes := func(m *module) {
		for name, l := range m.queues {
			waiting := l.Queue()
			for i, w := range waiting {
				h := m.byKey[w.ID.Group]
				waiting[i].Held = h != nil && w.ID.Ask == 0 && h.allowedAt(v.now).After(v.now)
			}
			out.Lanes = append(out.Lanes, LaneLoad{Module: m.name, Queue: name, Waiting: waiting})
		}
		for _, h := range m.hooks {
			if h.echoes.Trouble() != "" {
				out.Echoing = append(out.Echoing, HookLoad{m.name, h.gen.ID})
			}
		}
	}
	lanes(v.global)
	for _, m := range v.known() {
		if lanes(m); v.visible(m) {
			state, _ := v.moduleState(m)
			out.Modules = append(out.Modules, ModuleLoad{Name: m.name, State: state, Drifted: len(m.repairs.Objects()), Contested: m.contests(v.now)})
		}
	}
	return out
}
