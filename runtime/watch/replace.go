package watch

import (
	"slices"
	"time"
)

// entry is one object of a list with what the view's filter made of it.
type entry struct {
	objectKey
	version uint64
	outcome outcome
}

// replace takes in a whole list at a version and returns the events for what
// really differs. Rows that are newer than the list stay, unless force says that
// the server's history begins anew.
func (v *view) replace(entries []entry, version uint64, seen time.Time, force bool) []Event {
	slices.SortFunc(entries, func(a, b entry) int { return compareKeys(a.objectKey, b.objectKey) })
	old, failed := v.rows, v.failed
	v.failed = failures{}
	rows := make([]*row, 0, len(entries))
	var events []Event
	leave := func(r *row) {
		if !force && r.version > version {
			rows = append(rows, r)
		} else {
			events = append(events, r.left(version))
		}
	}
	for i, e := range entries {
		if i > 0 && entries[i-1].objectKey == e.objectKey {
			continue
		}
		for len(old) > 0 && compareKeys(old[0].objectKey, e.objectKey) < 0 {
			leave(old[0])
			old = old[1:]
		}
		var current *row
		if len(old) > 0 && old[0].objectKey == e.objectKey {
			current, old = old[0], old[1:]
		}
		next, event, changed := current, Event{}, false
		switch {
		case !force && current != nil && e.version != 0 && current.version > e.version:
		case !force && e.version != 0 && v.gone[e.objectKey] >= e.version:
			next = nil // deleted or left out since
		default:
			next, event, changed = v.next(current, e.objectKey, e.version, e.outcome, seen)
		}
		if next != nil {
			rows = append(rows, next)
		}
		if changed {
			events = append(events, event)
		}
	}
	for _, r := range old {
		leave(r)
	}
	v.rows, v.values, v.index = slices.Clip(rows), nil, nil
	for key, f := range failed.byKey {
		if !force && f.version > version {
			_, current := v.find(key)
			f.lacks = current == nil || current.lacks
			v.failed.keep(key, f)
		}
	}
	if force {
		v.gone = nil
	}
	return events
}

// next is what is kept of an object from now on in the place of current, by what the filter has made of it; nil:
// nothing. Changed says that this makes an event.
func (v *view) next(current *row, key objectKey, version uint64, out outcome, at time.Time) (next *row, event Event, changed bool) {
	seen := at.Sub(v.began)
	switch {
	case out.err != nil: // the last good result stays
		v.failed.set(key, version, out.err, current == nil || current.lacks, seen)
		if current == nil && v.Each {
			next = lacking(key, version, out.marks, seen)
			return next, next.event(Added), true
		}
		if current == nil || current.marks == out.marks {
			return current, Event{}, false
		}
		next = current.with(out.marks) // filters do not see who holds an object
		return next, next.marked(), true
	case !out.keep && current == nil:
		return nil, Event{}, false
	case !out.keep:
		return nil, current.left(version), true
	}
	next = out.row(key, version, seen)
	switch {
	case current == nil, current.lacks:
		return next, next.event(Added), true
	case (version == 0 || current.version != version) && !v.same(current.value, next.value):
		return next, v.after(current, next), true
	}
	if v.keepSame(current, next); !current.wakes.Equal(next.wakes) {
		return next, v.after(current, next), true
	}
	return next, next.marked(), current.marks != next.marks
}
