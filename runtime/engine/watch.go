package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// watch is one k8s.watch of one hook.
type watch struct {
	id      string
	hook    *hook
	binding string
	decl    *builtins.WatchBinding
	synced  bool // its snapshot is complete; never of a kind that is required and not served
	served  bool
	looked  bool // it has been told whether the kind is served
	seen    bool // was served before, in this life of the module
	told    bool // a complete snapshot was taken note of
	err     string
	noted   time.Time // when the log was told of an error last
	lacks   bool      // objects that are there are not in its snapshot: the filter fails on them
}

// watchNotes is the least time between two lines of the log about one watch. Its error names
// one object and says how many there are, which may change with each event; the status has
// it as it is.
const watchNotes = time.Minute

// waits says which required kind is not served, or "".
func (w *watch) waits() string {
	if !w.decl.Require || w.served || !w.looked {
		return ""
	}
	return w.kind()
}

func (w *watch) kind() string { return w.decl.APIVersion + "/" + w.decl.Kind }

// watchID names the watch of one binding of a hook in one life of its module:
// "web/hooks/a.star:f#nodes", from the second life on with its number behind; one that
// a reload has brought has the number of the reload, too.
func watchID(hook, binding string, life, turn int) string {
	id := hook + "#" + binding
	switch {
	case turn > 0:
		id += fmt.Sprintf("#%d.%d", life, turn)
	case life > 0:
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
	m := e.module(module)
	if m == nil || !m.started || m.byKey[hook] == nil {
		return nil
	}
	return m.byKey[hook].watchIDs()
}

// watchSynced queues one sync event a watch once every watch of the hook is complete.
// Later ones, for a kind that comes or goes, or a watch that is complete again, are changes:
// what came with that has no event.
func (e *Engine) watchSynced(in WatchSynced) {
	w := e.watches[in.ID]
	if w == nil {
		return
	}
	before, again := w.seen, w.synced && w.served && in.Served
	w.looked, w.served, w.seen = true, in.Served, w.seen || in.Served
	w.synced = in.Served || !w.decl.Require
	h := w.hook
	e.touch(h.module)
	if w.isEach() {
		e.syncObjects(h, in.Objects)
	}
	if !h.synced() {
		return
	}
	for _, other := range h.watches {
		var wanted bool
		switch {
		case !other.told:
			wanted = !other.decl.Quiet
		case other != w:
		case again: // nobody has told what happened while the watch was not complete
			wanted = other.decl.Triggers("added") || other.decl.Triggers("modified") || other.decl.Triggers("deleted")
		case in.Served:
			wanted = other.decl.Triggers("added") || !before && !other.decl.Quiet
		default:
			wanted = other.decl.Triggers("deleted")
		}
		other.told = true
		if wanted {
			e.queue(h, builtins.Event{Type: "sync", Binding: other.binding})
		}
	}
	e.begin(h)
}

func (e *Engine) watchChanged(in WatchChanged) {
	w := e.watches[in.ID]
	if w == nil {
		return
	}
	if w.isEach() {
		e.eachChanged(w, in.Events)
		return
	}
	events := in.Events
	if w.decl.Events != nil {
		events = slices.DeleteFunc(slices.Clone(events), func(ev builtins.Event) bool { return !w.decl.Triggers(ev.Type) })
	}
	if len(events) == 0 {
		return
	}
	e.queue(w.hook, e.caused(w, events)...)
	e.touch(w.hook.module)
}

func (e *Engine) watchFailed(in WatchFailed) {
	w := e.watches[in.ID]
	if w == nil || w.err == in.Reason && w.lacks == in.Lacks {
		return
	}
	news := w.err != in.Reason && (w.noted.IsZero() || e.now.Sub(w.noted) >= watchNotes)
	w.err, w.lacks = in.Reason, in.Lacks
	if news && in.Reason != "" {
		w.noted = e.now
		e.note(builtins.LevelWarn, w.hook.module, w.hook.gen.ID, "watch "+w.binding+": "+in.Reason)
	}
	e.touch(w.hook.module)
	if w.hook.module == e.global {
		e.touchAll()
	}
}
