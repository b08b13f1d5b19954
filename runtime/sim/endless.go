package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/engine"
)

const (
	// maxRuns bounds how often one hook, or one key of its for_each, runs at one time,
	// maxReleases how often a release is looked at then: those who set each other to work
	// without end are told of before people lose patience.
	maxRuns     = 2000
	maxReleases = 200
)

// count notes what keeps the world busy.
func (w *World) count(a engine.Action) {
	name, limit := "", maxRuns
	switch a := a.(type) {
	case engine.RunHook:
		if name = "hook " + a.Hook.ID; a.Key != "" {
			name += " for " + a.Key
		}
	case engine.Release:
		name, limit = "release "+a.Ref.Name, maxReleases
	default:
		return
	}
	if w.busy == nil {
		w.busy = map[string]int{}
	}
	w.busy[name]++
	w.endless = w.endless || w.busy[name] > limit
}

// busiest names those that have most to do, hooks first.
func (w *World) busiest() string {
	if len(w.busy) == 0 {
		return "no hook ran"
	}
	names := slices.SortedFunc(maps.Keys(w.busy), func(a, b string) int { return cmp.Or(cmp.Compare(w.busy[b], w.busy[a]), cmp.Compare(a, b)) })
	text := ""
	for i, name := range names[:min(3, len(names))] {
		if i > 0 {
			text += ", "
		}
		verb := "ran"
		if strings.HasPrefix(name, "release ") {
			verb = "was rendered"
		}
		text += fmt.Sprintf("%s %s %d times", name, verb, w.busy[name])
	}
	return text
}
