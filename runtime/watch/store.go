package watch

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// listed is one object of a list after the filters: what is left of it.
type listed struct {
	objectKey
	version  string
	outcomes []outcome // of the views that the list is for
}

// cover begins a list: it is filtered for the views that there are now. Those that
// come later list for themselves.
func (s *stream) cover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.covered = s.covered[:0:0]
	for _, v := range s.views {
		switch {
		case !v.listing:
			s.covered = append(s.covered, s.begin(v))
		case !v.apart: // else it lists by itself
			s.covered = append(s.covered, covered{view: v})
		}
	}
}

// begin begins a list for a view.
func (s *stream) begin(v *view) covered {
	_ = s.recount(v)
	if !v.apart {
		return covered{view: v}
	}
	v.queue.giveUp(v.queue.list)
	v.queue.list = &listing{left: patienceInAll, room: make(chan struct{}, 1), filled: make(chan struct{})}
	return covered{v, v.queue.list}
}

// covered is a view of a list, with what waits there for a filter that is called apart.
type covered struct {
	view *view
	list *listing
}

// filtered runs the filters of the views of a list on one object.
func (s *stream) filtered(obj map[string]any, views []covered) *listed {
	key, version, _ := identity(obj)
	out := &listed{objectKey: key, version: version, outcomes: make([]outcome, len(views))}
	for i, c := range views {
		if c.list != nil {
			s.hand(c.view, c.list, obj, out, i)
		} else {
			out.outcomes[i] = c.view.run(obj)
			s.listedOne(c.view, key, &out.outcomes[i])
		}
	}
	return out
}

// replace takes in a whole list, which was asked for after a renewal.
func (s *stream) replace(all []*listed, resourceVersion string, renewal uint64) {
	s.report(nil)
	version := Version(resourceVersion)
	s.mu.Lock()
	force := version < s.position // restored from a backup: versions mean nothing now
	s.position, s.listed, s.dead = version, true, nil
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
			l.completed(all, i, version, renewal)
			s.wake(v)
			continue
		}
		v.renewal = max(v.renewal, renewal)
		tell = s.fill(v, entriesOf(all, i), version, force, tell)
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
}

// entriesOf are the objects of a list with what the filter of one of its views has made of them.
func entriesOf(items []*listed, at int) []entry {
	entries := make([]entry, 0, len(items))
	for _, item := range items {
		if out := item.outcomes[at]; !out.missing {
			entries = append(entries, entry{item.objectKey, max(out.version, Version(item.version)), out})
		}
	}
	return entries
}

// bookmark notes how far the stream has come.
func (s *stream) bookmark(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = max(s.position, Version(resourceVersion))
	for _, v := range s.views {
		if !v.behind() {
			v.forgetGone(s.position)
		}
	}
}

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
