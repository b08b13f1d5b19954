package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/watches"
)

// watchID names the watch of one binding of a hook: "web/hooks/a.star:f#nodes", with a number
// behind from the second incarnation on: news of an earlier watch must not pass for those of
// this one.
func watchID(hook, binding string, incarnation uint64) string {
	id := hook + "#" + binding
	if incarnation > 0 {
		id += fmt.Sprintf("#%d", incarnation)
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
func (v *View) Watches(module, hook string) map[string]string {
	m := v.module(module)
	if m == nil || m.life == down || m.byKey[hook] == nil {
		return nil
	}
	return m.byKey[hook].watchIDs()
}

// watchSynced queues the sync events that are due.
func (t *turn) watchSynced(in WatchSynced) {
	h := t.watches[in.ID]
	w := h.watches.At(in.ID)
	back := w.Missing() && in.Served
	due := h.watches.Sync(w, in.Served)
	if h.isEach(w) {
		t.syncObjects(h, in, back)
	}
	if !h.watches.Synced() {
		return
	}
	for _, binding := range due {
		t.queue(h, builtins.Event{Type: "sync", Binding: binding})
	}
	t.begin(h)
}

func (t *turn) watchChanged(in WatchChanged) {
	h := t.watches[in.ID]
	w := h.watches.At(in.ID)
	switch {
	case h.isEach(w):
		t.eachChanged(h, w, in.Events)
	case w.Decl.Read != "":
		t.rowsMoved(h, w, in.Events)
	default:
		events := in.Events
		if w.Decl.Events != nil {
			events = slices.DeleteFunc(slices.Clone(events), func(ev builtins.Event) bool { return !w.Decl.Triggers(ev.Type) })
		}
		if len(events) > 0 {
			t.queue(h, t.wrote.Caused(w.Decl.APIVersion, w.Decl.Kind, events)...)
		}
	}
}

func (t *turn) watchFailed(in WatchFailed) {
	h := t.watches[in.ID]
	w := h.watches.At(in.ID)
	unsure := w.Unsure()
	changed, news := w.Fail(t.now, watches.Trouble{Reason: in.Reason, Lacks: in.Lacks, Refused: in.Refused})
	if !changed {
		return
	}
	if news {
		level := builtins.LevelWarn
		if t.alsoFails(in) { // one line for one cause, however many watches it meets
			level = builtins.LevelDebug
		}
		t.note(level, h.module, h.gen.ID, "watch "+w.Binding+": "+in.Reason)
	}
	if unsure && !w.Unsure() && h.watches.Synced() {
		t.queue(h, builtins.Event{Type: "sync", Binding: w.Binding}) // nobody waits for it any more
	}
}

// alsoFails says whether another watch has failed for the same reason, and does so still.
func (t *turn) alsoFails(in WatchFailed) bool {
	for id, h := range t.watches {
		if w := h.watches.At(id); id != in.ID && w.Reason() == in.Reason {
			return true
		}
	}
	return false
}
