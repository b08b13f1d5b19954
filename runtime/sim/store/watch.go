package store

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchOptions are what a watch may say beside its selectors.
type WatchOptions struct {
	Selection
	// Version is where to go on; "" and "0" begin with all that is there.
	Version string
	// Initial asks for all that is there first and then for a bookmark that says
	// so (sendInitialEvents), whatever Version says.
	Initial bool
	// Notify, when set, is called after each change that may have brought events,
	// in the goroutine that made the change. It may call the store.
	Notify func()
}

// Event is one event of a watch.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type watch.EventType
	// Object is the object; a bookmark's holds a resourceVersion, an error's is a
	// Status. Do not change it.
	Object map[string]any
}

// Watcher follows a resource. Events are taken with [Watcher.Next]; nothing is lost
// while nobody takes them, unless the history gets too long.
type Watcher struct {
	store   *Store
	kind    *kind
	pick    func(obj map[string]any) (map[string]any, error)
	notify  func()
	initial []Event
	at      int64 // changes up to this one were looked at
	ended   bool
}

// Watch begins to follow what a target without a name and a selection describe. A
// version that is too old shows in the first event, as on a real server.
func (s *Store) Watch(t Target, o WatchOptions) (*Watcher, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "watch")
	if err != nil {
		return nil, err
	}
	match, err := k.matcher(t.Namespace, o.Selection)
	if err != nil {
		return nil, err
	}
	if err := s.loadList(k, t.Namespace, o.Selection); err != nil {
		return nil, err
	}
	pick := func(obj map[string]any) (map[string]any, error) { return s.pick(k, t.Namespace, match, obj) }
	w := &Watcher{store: s, kind: k, pick: pick, notify: o.Notify, at: s.version}
	version, err := parseVersion(cmp.Or(o.Version, "0"))
	if err != nil {
		return nil, err
	}
	if version == 0 || o.Initial {
		if version > s.version {
			return nil, tooLarge(version, s.version)
		}
		table := s.table(k.keptIn())
		for _, key := range table.keys {
			obj, err := pick(table.objects[key])
			if err != nil {
				return nil, err
			}
			if obj != nil {
				w.initial = append(w.initial, Event{watch.Added, obj})
			}
		}
		if o.Initial {
			mark := w.bookmark(s.version)
			metaOf(mark.Object)["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
			w.initial = append(w.initial, mark)
		}
	} else {
		w.at = version
	}
	s.watchers = append(s.watchers, w)
	return w, nil
}

// Next returns the next event; ok is false when there is none now. After an ERROR
// there are no more.
func (w *Watcher) Next() (e Event, ok bool) {
	s := w.store
	s.mu.Lock()
	defer s.unlock()
	if len(w.initial) > 0 {
		e, w.initial = w.initial[0], w.initial[1:]
		return e, true
	}
	if w.ended {
		return Event{}, false
	}
	if w.at < s.oldest {
		w.close()
		status := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.at, s.oldest)).Status()
		return Event{watch.Error, statusObject(status)}, true
	}
	first := sort.Search(len(s.history), func(i int) bool { return s.history[i].version > w.at })
	for _, c := range s.history[first:] {
		w.at = c.version
		if c.resource != w.kind.keptIn() {
			continue
		}
		after, err := w.pick(c.after)
		if err != nil { // the real server ends it without a word, and the next one finds what is wrong
			w.close()
			break
		}
		before, _ := w.pick(c.before) // what could not be converted was not shown either
		switch {
		case after != nil && before != nil:
			return Event{watch.Modified, after}, true
		case after != nil:
			return Event{watch.Added, after}, true
		case before != nil: // gone or left the selection: as it was, at the version of the change
			return Event{watch.Deleted, withMeta(before, "resourceVersion", strconv.FormatInt(c.version, 10))}, true
		}
	}
	return Event{}, false
}

// Bookmark returns an event that says how far the watch has come.
func (w *Watcher) Bookmark() Event {
	w.store.mu.Lock()
	defer w.store.unlock()
	return w.bookmark(w.at)
}

func (w *Watcher) bookmark(version int64) Event {
	return Event{watch.Bookmark, map[string]any{
		"apiVersion": w.kind.APIVersion(), "kind": w.kind.Kind.Kind,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(version, 10)},
	}}
}

// Served says whether the watch's kind is still served: the watches of a kind end
// with its CRD.
func (w *Watcher) Served() bool {
	w.store.mu.Lock()
	defer w.store.unlock()
	return !w.ended && w.store.kind(w.kind.GVR()) != nil
}

// Stop ends the watch.
func (w *Watcher) Stop() {
	w.store.mu.Lock()
	defer w.store.unlock()
	w.close()
}

func (w *Watcher) close() {
	w.ended = true
	w.store.watchers = slices.DeleteFunc(w.store.watchers, func(o *Watcher) bool { return o == w })
}

// notify has those told who follow, once the call that made a change is over.
func (s *Store) notify() {
	for _, w := range s.watchers {
		if w.notify != nil {
			s.wake = append(s.wake, w.notify)
		}
	}
}

// statusObject is a Status as an object.
func statusObject(status metav1.Status) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": status.Status,
		"message": status.Message, "reason": string(status.Reason), "code": int64(status.Code),
	}
}
