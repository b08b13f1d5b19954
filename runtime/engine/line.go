package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

// Line is one lane of a module, for people to look at: what is under way in it, and what waits.
type Line struct {
	// Module is "global" for global hooks; Queue is empty for the lane that every module has,
	// else queue= of its hooks.
	Module, Queue string
	Taken         []lane.ID
	// Waiting is in the order in which it is taken, as far as that is known.
	Waiting []Waiting
}

// Waiting is work that waits in a line.
type Waiting struct {
	lane.Waiting
	// Why says what it waits for, Next is when that ends where it is a time; zero: not known.
	Why  string
	Next time.Time
}

// Lines returns the lanes of all modules, sorted by module, global hooks first, and by name; nothing before [Start].
func (v *View) Lines() []Line {
	if v.gen == nil {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(v.known()), func(a, b *module) int { return cmp.Compare(a.name, b.name) })
	var out []Line
	for _, m := range append([]*module{v.global}, sorted...) {
		for name, l := range m.lanes() {
			line := Line{Module: m.name, Queue: name, Taken: l.Taken()}
			for _, w := range l.Line() {
				why, next := v.whyItWaits(m, w, line.Taken)
				line.Waiting = append(line.Waiting, Waiting{w, why, next})
			}
			out = append(out, line)
		}
	}
	return out
}

// whyItWaits says what work waits for, in the order of [module.ready].
func (g *ground) whyItWaits(m *module, w lane.Waiting, taken []lane.ID) (why string, next time.Time) {
	h := m.byKey[w.ID.Group]
	if h == nil {
		return "its hook is gone", time.Time{}
	}
	switch trouble := cmp.Or(h.barred, h.watches.Trouble()); {
	case len(h.before) > 0:
		return "a run of the hook as it was before the last change of the module tree has not ended", time.Time{}
	case m.life == down:
		return "the module runs no hooks now", time.Time{}
	case trouble != "":
		return trouble, time.Time{}
	case h.watches.Waits() != "":
		return "the hook " + h.watches.Waits(), time.Time{}
	case !h.watches.Complete():
		return "the first list of its watches is not complete", time.Time{}
	case w.NotBefore.After(g.now) && w.Failures > 0:
		return "it has failed, and is tried again", w.NotBefore
	case w.NotBefore.After(g.now):
		return "the hook wakes itself, and is slowed down", w.NotBefore
	case w.ID.Ask == 0 && h.allowedAt(g.now).After(g.now):
		return "min_interval= of the hook", h.allowedAt(g.now)
	case m.life == leaving && !h.leaves():
		return "the module goes", time.Time{}
	case len(taken) > 0:
		return "the run of " + strings.TrimPrefix(taken[0].Group, m.name+"/") + " has not ended", time.Time{}
	case !m.ready(w.ID, g.now):
		return "startup hooks with a lower order= go first, or what the module keeps is being written", time.Time{}
	}
	return "others go first", time.Time{}
}
