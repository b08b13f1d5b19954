package watch

import (
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// Local is a watch on objects that somebody hands over, all at once: it filters and
// compares as a [Manager] does, without a network, a goroutine or a clock. The
// selectors of its [Spec] are up to who calls. It is not safe for concurrent use.
type Local struct {
	view    *view
	written map[objectKey]written
}

// written is our own write that the next events may tell of.
type written struct {
	version uint64 // of the object since then; 0: it is gone
	cause   *effect.Cause
}

// NewLocal makes a watch that has no objects yet.
func NewLocal(spec Spec) *Local { return &Local{view: newView(spec)} }

// Replace takes in all objects that there are, decoded, and returns the events for what
// differs. An object whose resourceVersion is known is not filtered again.
func (l *Local) Replace(objects []map[string]any, now time.Time) []Event {
	entries := make([]entry, 0, len(objects))
	for _, obj := range objects {
		key, text, _ := identity(obj)
		e := entry{objectKey: key, version: Version(text)}
		if _, r := l.view.find(key); r != nil && r.version == e.version && e.version != 0 && !r.lacks {
			e.outcome = r.outcome()
		} else {
			e.outcome = l.view.run(obj)
		}
		entries = append(entries, e)
	}
	events := l.view.replace(entries, 0, now, true)
	for i := range events {
		ev := &events[i]
		key := objectKey{ev.Namespace, ev.Name}
		w, own := l.written[key]
		switch _, r := l.view.find(key); {
		case own && r == nil && ev.Type == Deleted, own && r != nil && r.version == w.version:
			ev.Cause = w.cause
		}
	}
	l.written = nil
	return events
}

// Observe is [Manager.Observe]; the events come with the next [Local.Replace].
func (l *Local) Observe(ref effect.Ref, obj map[string]any, cause *effect.Cause) {
	if ref.APIVersion != l.view.APIVersion || ref.Kind != l.view.Kind {
		return
	}
	key, w := objectKey{ref.Namespace, ref.Name}, written{cause: cause}
	if obj != nil {
		var version string
		key, version, _ = identity(obj)
		w.version = Version(version)
	}
	if l.written == nil {
		l.written = map[objectKey]written{}
	}
	l.written[key] = w
}

// Failure is the error of the filter, for people; nil when it takes all objects. Lacks says
// that there are some that it has not taken once: see [Sink].
func (l *Local) Failure() (err error, lacks bool) { return l.view.trouble() }

// Snapshot is [Manager.Snapshot].
func (l *Local) Snapshot() []starlark.Value { return results(l.view.rows) }

// About is [Manager.About].
func (l *Local) About(key string) []starlark.Value { return results(l.view.about(key)) }

// Lacking is [Manager.Lacking].
func (l *Local) Lacking() string { return l.view.lacking() }

// Entries is [Manager.Entries].
func (l *Local) Entries() []Entry {
	out := make([]Entry, len(l.view.rows))
	for i, r := range l.view.rows {
		out[i] = r.entry()
	}
	return out
}

// Find is [Manager.Find].
func (l *Local) Find(namespace, name string) (Entry, bool) {
	if _, r := l.view.find(objectKey{namespace, name}); r != nil {
		return r.entry(), true
	}
	return Entry{}, false
}
