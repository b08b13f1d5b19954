package cluster

import (
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// statusStands says that a watch shows the object with the status that the write asks for.
func (w *Writer) statusStands(manager string, wr effect.Write) bool {
	if wr.Kind != effect.WriteStatus || !wr.Force || wr.Guard != nil || w.o.Known == nil {
		return false
	}
	live := w.o.Known(wr.Ref)
	if u := wr.Unchanged; u != nil && (u.ResourceVersion != "" && u.ResourceVersion != versionOf(live) || u.UID != "" && u.UID != uidOf(live)) {
		return false // it is told that it has changed
	}
	return live != nil && Same(wr.Object, live, manager, "status")
}

// StatusOf returns the fields of the status of live that manager has applied, and when they have changed
// last; zero: not known.
func StatusOf(live map[string]any, manager string) (fields map[string]any, at time.Time) {
	a := apply.FieldsOf(live, manager, "status")
	if a == nil {
		return nil, at
	}
	owned, _ := a.Set["f:status"].(map[string]any)
	status, _ := live["status"].(map[string]any)
	fields = map[string]any{}
	for name := range owned {
		if key, is := strings.CutPrefix(name, "f:"); is && status[key] != nil {
			fields[key] = status[key]
		}
	}
	at, _ = time.Parse(time.RFC3339, a.At)
	return fields, at
}
