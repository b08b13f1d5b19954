// Package watch follows objects of the cluster and keeps, for each watch of a
// hook, what the hook's filter makes of them, and never the objects themselves.
//
// Watches on the same resource, namespace and selector share one stream. A stream
// lists and watches in one goroutine and has its own store; a [Filter] sees each object
// once, as it is decoded. Watches that start while a stream's first list has not
// been answered share that list. One that joins later, with a filter that the
// stream does not know yet, lists once for itself and takes its changes from the
// stream from the first moment on: what is newer by resourceVersion wins. With a
// filter that is known (the same FilterID) it shares those results and lists
// nothing.
//
// A watch on the namespaces of some labels has one stream a namespace: they are
// opened and closed as namespaces begin and stop to match, which one stream on all
// namespaces tells. The role needs no more than to read namespaces, and these
// objects where they are watched.
//
// A kind that is not served counts as synced and empty; it is looked for until it
// appears, and when it goes away its objects are reported as deleted.
package watch

import (
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// Spec is one watch.
type Spec struct {
	// ID names the watch towards the sink. Unique in a manager.
	ID string
	// APIVersion and Kind say what is watched: "apps/v1", "Deployment".
	APIVersion, Kind string
	// Namespaces to watch; empty, or "*" among them, means all. Ignored for
	// cluster-scoped kinds.
	Namespaces []string
	// ExcludeNamespaces takes these away from the others. Ignored for
	// cluster-scoped kinds.
	ExcludeNamespaces []string
	// NamespaceLabels is a label selector: only objects in namespaces that match
	// it, of those that Namespaces and ExcludeNamespaces leave. The objects of a
	// namespace that begins to match are Added, those of one that stops are
	// Deleted. "" means all. Ignored for cluster-scoped kinds.
	NamespaceLabels string
	// Names of the objects to watch; empty means all.
	Names []string
	// Labels is a label selector as kubectl takes it; "" means all.
	Labels string
	// Fields is a field selector as kubectl takes it, for the API server; ""
	// means all.
	Fields string
	// Omit says which objects are left out before the filter sees them; nil means none.
	// A watch with it shares its results with those that have it, too: it says the
	// same for all of them.
	Omit func(obj map[string]any) bool
	// Filter turns an object into what is kept. Nil keeps the whole object.
	Filter Filter
	// FilterID identifies what the filter does (its code with its loads): two
	// filters with the same ID share their results. "" shares with no other.
	// It is ignored when Filter is nil.
	FilterID string
	// Wakes says which objects of the caller an event is for; nil: all. Of an object that moves from
	// some to others, the event is for both, and such a move alone is a Modified event.
	Wakes Wakes
	// WakesID is for Wakes what FilterID is for Filter.
	WakesID string
	// Asked says of which keys [Manager.About] may be asked; nil: of all. It goes with Wakes: the same
	// WakesID has the same one.
	Asked func(key string) bool
	// Apart has the filter and Wakes called by their own goroutine, so that nobody else waits
	// for them. Module is who waits: one module has few such calls at a time.
	Apart  bool
	Module string
	// Each has an object that the filter fails on, and that has no result yet, kept as one
	// without a result: its entry and its events say so, and the watch goes on. A caller that
	// needs the whole snapshot asks [Manager.Lacking]. When the kind is not served any more, no event says
	// that its objects are deleted.
	Each bool
	// Metadata has the filter see the metadata of objects alone: the API server sends no more.
	Metadata bool
	// Lists has [Sink].Synced called after each list, even when nothing differs: somebody may wait
	// for objects that the snapshot has not shown, and that may have gone while nobody watched.
	Lists bool
	// KeepObject keeps the object beside what the filter makes of it, for the
	// events.
	KeepObject bool
	// Both has the result of the filter hold the object, too: {"object": …, "result": …}. When only the
	// object changes, the snapshot shows it, and there is no event.
	Both bool
	// Old has events of changes tell the result of before.
	Old bool
	// Finalizer, when set, has events tell whether objects are being deleted and
	// have it: see [Marks].
	Finalizer string
}

// Marks are what a watch with a [Spec].Finalizer notices beside what its filter keeps.
// A change of marks alone is a Modified event with Same.
type Marks struct {
	// Deleting: the object is being deleted. Held: it has the finalizer.
	Deleting, Held bool
}

// Filter turns a decoded object into what is kept of it: plain Starlark data.
// keep false leaves the object out. It is called from several goroutines at once
// and must not keep or change obj.
type Filter func(obj map[string]any) (kept starlark.Value, keep bool, err error)

// Wakes says whom an event of a decoded object is for. It is called for objects that the filter
// keeps, as the filter is, and its error counts as one of the filter.
type Wakes func(obj map[string]any) (*effect.Wakes, error)

// Sized is a result that knows how many bytes of memory are kept of one object, elsewhere too.
type Sized interface{ Size() int64 }

// Sharing is a result that holds texts of its object. Names and keys that are kept beside it are kept there
// where it can be.
type Sharing interface {
	// Text returns a text that is equal to s.
	Text(s string) string
}

// EventType says what happened to an object, as seen through the filter: one that
// the filter begins to keep is Added, one that it no longer keeps is Deleted.
type EventType string

const (
	Added    EventType = "added"
	Modified EventType = "modified"
	Deleted  EventType = "deleted"
)

// Event is one change of a watch's objects.
type Event struct {
	Type            EventType
	Namespace, Name string
	// Result is what the filter made of the object, frozen; for Deleted, of its
	// last state.
	Result starlark.Value
	// Object is the object that Result was made of, with [Spec].KeepObject; else
	// nil. When only the object changes, there is no event.
	Object starlark.Value
	// Old is what Result was before, of Modified with [Spec].Old; else nil.
	Old starlark.Value
	// Marks are those of the object, with [Spec].Finalizer.
	Marks Marks
	// Same says that nothing but the marks has changed.
	Same bool
	// Lacks says that the object has no result yet, see [Spec].Each.
	Lacks bool
	// Wakes is whom it is for, with [Spec].Wakes; nil: for all.
	Wakes *effect.Wakes
	// Cause is that of the own write behind the event, see
	// [Manager.Observe]; else nil.
	Cause *effect.Cause
	// Version is, of Deleted alone, the resourceVersion at which the object was not there, or not
	// kept, any more; 0 when that is not known.
	Version uint64
}

// Entry is one object of a watch.
type Entry struct {
	Namespace, Name string
	Result          starlark.Value
	// Object is what Result was made of, with [Spec].KeepObject; else nil.
	Object starlark.Value
	Marks  Marks
	// Lacks is that of [Event].
	Lacks bool
}

// Positions are the resourceVersions up to which a watch has come, by namespace, "" for all
// namespaces: what was written until then, its snapshot shows.
type Positions map[string]uint64

// In is the one that counts for objects of a namespace; 0 when it is not known.
func (p Positions) In(namespace string) uint64 {
	if at, known := p[namespace]; known {
		return at
	}
	return p[""]
}

// Sink learns what happens to watches. Its methods are called from the goroutines
// of the manager, for one watch never two at once and always in order. They must
// not block; they may call the manager. A call that is under way while Stop is
// called may end after it.
type Sink interface {
	// Synced says that all objects that exist are in the snapshot. served is
	// false for a kind that is not served (any more): synced and empty. It is
	// called again at each change between the two, and with [Spec].Lists after each list.
	Synced(id string, served bool)
	// Changed delivers the changes since, in order for each object, none of
	// them before the first Synced. An object whose filter result stays the same
	// gives no event.
	Changed(id string, events []Event)
	// Failed says that the watch does not work as it should: it cannot list or
	// watch, or its filter fails on an object. It keeps trying. Its snapshot
	// stays. nil says that all is well again. With lacks there are objects that
	// the snapshot does not show, because the filter has not taken them once:
	// nobody may conclude from it that they are not there. A watch that is not
	// synced yet does not sync before that is over.
	Failed(id string, err error, lacks bool)
}
