package sim

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/status"
)

// Decided is what controllers have done about the children of each parent since the world began, in order,
// and what is still not done, with the reasons; parents about which nothing was to be done are left out.
// It is sorted by controllers and keys.
func (w *World) Decided() []status.Parent {
	if w.engine == nil {
		return nil
	}
	type parent struct{ controller, key string }
	done, seen := map[parent][]status.Action{}, map[parent]map[status.Action]bool{}
	for i := range w.Runs {
		r := &w.Runs[i]
		of := parent{r.Hook, r.Key}
		for _, a := range r.Actions {
			one := status.Action{Op: string(a.Op), Child: a.ID.String(), Part: a.Part, Why: a.Why}
			if !a.Op.Acts() || seen[of][one] {
				continue
			}
			if seen[of] == nil {
				seen[of] = map[status.Action]bool{}
			}
			seen[of][one] = true
			done[of] = append(done[of], one)
		}
	}
	var out []status.Parent
	for _, id := range slices.Sorted(maps.Keys(w.families)) {
		run := w.families[id]
		p := status.Parent{Controller: run.Hook.ID, Key: run.Key, Actions: done[parent{run.Hook.ID, run.Key}]}
		last, _ := w.engine.Actions(run.Hook.ID, run.Key)
		for _, a := range last {
			if !a.Op.Acts() {
				p.Actions = append(p.Actions, status.Action{Op: string(a.Op), Child: a.ID.String(), Part: a.Part, Why: a.Why})
			}
		}
		now, _ := w.engine.Parents(run.Hook.Module, run.Key) // none: it has gone with its children
		for i := range now {
			if now[i].Controller == run.Hook.ID && len(now[i].Actions) == 0 {
				p.Failure, p.Waits = now[i].Failure, now[i].Waits
			}
		}
		if len(p.Actions) > 0 || p.Waits != "" {
			out = append(out, p)
		}
	}
	return out
}
