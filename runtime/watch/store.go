package watch

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// A stream is the store of its reflector. TransformingStore makes the reflector
// run the filters also while it collects the initial events of a streamed list, so
// that full objects never pile up there.
var (
	_ cache.TransformingStore      = (*stream)(nil)
	_ cache.ReflectorBookmarkStore = (*stream)(nil)
)

// listed is one object of a list after the filters: what is left of it. To the
// reflector it is an object with a name and a version.
type listed struct {
	objectKey
	version  string
	outcomes []outcome // of the views that the list is for
}

// GetObjectMeta lets the reflector and its temporary store name the object.
func (l *listed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: l.namespace, Name: l.name, ResourceVersion: l.version}
}

// GetObjectKind implements runtime.Object.
func (l *listed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. A listed is never changed.
func (l *listed) DeepCopyObject() runtime.Object { return l }

// listedList is a whole list after the filters.
type listedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object. Nobody copies it.
func (l *listedList) DeepCopyObject() runtime.Object { return l }

// cover begins a list: it is filtered for the views that there are now. Those that
// come later list for themselves.
func (s *stream) cover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.covered = s.covered[:0:0]
	for _, v := range s.views {
		var l *listing
		if v.apart {
			if v.listing {
				continue // by itself
			}
			v.queue.giveUp(v.queue.list)
			l = newListing()
			v.queue.list = l
		}
		if !v.listing {
			_ = s.recount(v)
		}
		s.covered = append(s.covered, covered{v, l})
	}
}

// covered is a view of a list, with what waits there for a filter that is called apart.
type covered struct {
	view *view
	list *listing
}

// filtered runs the filters of the current list on one object. covered changes
// only between lists, and lists run one at a time, on the reflector's goroutines.
func (s *stream) filtered(obj map[string]any) *listed {
	key, version, _ := identity(obj)
	out := &listed{objectKey: key, version: version, outcomes: make([]outcome, len(s.covered))}
	for i, c := range s.covered {
		if c.list != nil {
			s.hand(c.view, c.list, obj, out, i)
		} else {
			out.outcomes[i] = c.view.run(obj)
			s.listedOne(c.view, key, &out.outcomes[i])
		}
	}
	return out
}

// Transformer implements [cache.TransformingStore].
func (s *stream) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		return s.filtered(u.Object), nil
	}
}

// Replace takes in a whole list.
func (s *stream) Replace(items []any, resourceVersion string) error {
	s.report(nil)
	version := versionNumber(resourceVersion)
	s.mu.Lock()
	force := version < s.position // restored from a backup: versions mean nothing now
	s.position, s.listed = version, true
	all := make([]*listed, 0, len(items))
	for _, item := range items {
		l, ok := item.(*listed)
		if !ok || len(l.outcomes) < len(s.covered) {
			s.mu.Unlock()
			return fmt.Errorf("an object of the list was not filtered")
		}
		all = append(all, l)
	}
	var tell []*subscription
	for i, c := range s.covered {
		v := c.view
		if l := c.list; l != nil {
			if v.queue.list != l {
				continue // nobody has it any more
			}
			if force { // what has kept its version may be another object
				v.anew()
				v.queue.restart()
				v.queue.giveUp(l)
				s.listFor(v)
				continue
			}
			l.complete, l.items, l.at, l.version = true, all, i, version
			s.wake(v)
			continue
		}
		entries := make([]entry, 0, len(all))
		for _, l := range all {
			if !l.outcomes[i].missing {
				entries = append(entries, entry{l.objectKey, versionNumber(l.version), l.outcomes[i]})
			}
		}
		tell = s.fill(v, entries, version, force, tell)
		if v.listing && v.over == nil {
			v.again, v.stale = false, true
		}
	}
	for _, v := range s.views {
		if !slices.ContainsFunc(s.covered, func(c covered) bool { return c.view == v }) {
			if force && v.apart {
				v.anew()
				v.queue.restart()
			}
			s.listFor(v)
		}
	}
	s.covered = nil
	s.mu.Unlock()
	flush(tell)
	return nil
}

// Add takes in an object that appeared.
func (s *stream) Add(obj any) error { return s.Update(obj) }

// Update takes in an object that changed.
func (s *stream) Update(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the watch brought something that is no object")
	}
	key, version, _ := identity(u.Object)
	s.change(key, versionNumber(version), u.Object, false, nil)
	return nil
}

// Delete takes out an object that was deleted.
func (s *stream) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the watch brought something that is no object")
	}
	key, version, _ := identity(u.Object)
	s.change(key, versionNumber(version), nil, false, nil)
	return nil
}

// Bookmark notes how far the stream has come.
func (s *stream) Bookmark(resourceVersion string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = max(s.position, versionNumber(resourceVersion))
	for _, v := range s.views {
		if !v.behind() {
			v.forgetGone(s.position)
		}
	}
	return nil
}

// Resync does nothing: there is nobody to tell again.
func (s *stream) Resync() error { return nil }

// identity reads what names an object, its version and its labels. A field that is not
// there, or of another type, stays empty.
func identity(obj map[string]any) (objectKey, string, labels.Set) {
	meta, _ := obj["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	version, _ := meta["resourceVersion"].(string)
	found, _ := meta["labels"].(map[string]any)
	set := make(labels.Set, len(found))
	for k, v := range found {
		set[k], _ = v.(string)
	}
	return objectKey{namespace, name}, version, set
}
