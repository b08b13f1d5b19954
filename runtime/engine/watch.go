package engine

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/lane"
)

// watch is one k8s.watch of one hook.
type watch struct {
	id      string
	hook    *hook
	binding string
	decl    *builtins.WatchBinding
	synced  bool
	served  bool
	err     string
}

// watchID names the watch of one binding of a hook in one life of its module:
// "web/hooks/a.star:f#nodes", from the second life on with its number behind.
func watchID(hook, binding string, life int) string {
	id := hook + "#" + binding
	if life > 0 {
		id += fmt.Sprintf("#%d", life)
	}
	return id
}

// WatchBinding returns the binding of a watch by its [watchID].
func WatchBinding(id string) string {
	_, rest, _ := strings.Cut(id, "#")
	binding, _, _ := strings.Cut(rest, "#")
	return binding
}

// WatchHook returns the hook of a watch by its [watchID].
func WatchHook(id string) string {
	hook, _, _ := strings.Cut(id, "#")
	return hook
}

// Watches returns the ids of a hook's watches by binding; none for a hook whose
// module does not run.
func (e *Engine) Watches(module, hook string) map[string]string {
	m := e.modules[module]
	if module == globalName {
		m = e.global
	}
	if m == nil || !m.started || m.byKey[hook] == nil {
		return nil
	}
	return m.byKey[hook].watchIDs()
}

// watchSynced queues one sync event once every watch of the hook is complete.
func (e *Engine) watchSynced(in WatchSynced) {
	w := e.watches[in.ID]
	if w == nil {
		return
	}
	again := w.synced
	w.synced, w.served = true, in.Served
	h := w.hook
	for _, other := range h.watches {
		if !other.synced {
			e.touch(h.module)
			return
		}
	}
	for _, other := range h.watches {
		if !again || other == w {
			h.lane.Add(h.gen.ID, lane.Unordered, builtins.Event{Type: "sync", Binding: other.binding})
		}
	}
	h.lane.Nudge(h.gen.ID, h.gen.Retry.Min)
	e.touch(h.module)
}

func (e *Engine) watchChanged(in WatchChanged) {
	w := e.watches[in.ID]
	if w == nil || len(in.Events) == 0 {
		return
	}
	m := w.hook.module
	w.hook.lane.Add(w.hook.gen.ID, lane.Unordered, in.Events...)
	w.hook.lane.Nudge(w.hook.gen.ID, w.hook.gen.Retry.Min)
	e.touch(m)
}

func (e *Engine) watchFailed(in WatchFailed) {
	w := e.watches[in.ID]
	if w == nil || w.err == in.Reason {
		return
	}
	w.err = in.Reason
	if in.Reason != "" {
		e.note(builtins.LevelWarn, w.hook.module, w.hook.gen.ID, "watch "+w.binding+": "+in.Reason)
	}
	e.touch(w.hook.module)
	if w.hook.module == e.global {
		e.touchAll()
	}
}
