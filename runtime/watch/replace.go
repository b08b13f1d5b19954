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
		next, event, changed := v.take(current, e, seen, force)
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

// take says what becomes of one object of a list: the row that is kept of it, or nil, and
// the event that this makes, if it makes one.
func (v *view) take(current *row, e entry, seen time.Time, force bool) (next *row, event Event, changed bool) {
	switch {
	case !force && current != nil && e.version != 0 && current.version > e.version:
		return current, Event{}, false
	case !force && e.version != 0 && v.gone[e.objectKey] >= e.version:
		return nil, Event{}, false // deleted or left out since
	case e.outcome.err != nil:
		v.failed.set(e.objectKey, e.version, e.outcome.err, current == nil || current.lacks, seen.Sub(v.began))
		if current == nil && v.each {
			next = lacking(e.objectKey, e.version, e.outcome.marks, seen.Sub(v.began))
			return next, next.event(Added), true
		}
		if current == nil || current.marks == e.outcome.marks {
			return current, Event{}, false
		}
		next = current.with(e.outcome.marks)
		return next, next.marked(), true
	case !e.outcome.keep:
		if current == nil {
			return nil, Event{}, false
		}
		return nil, current.left(e.version), true
	}
	next = e.outcome.row(e.objectKey, e.version, seen.Sub(v.began))
	switch {
	case current == nil, current.lacks:
		return next, next.event(Added), true
	case (e.version == 0 || current.version != e.version) && !v.same(current.value, next.value):
		return next, v.after(current, next), true
	}
	if v.keepSame(current, next); !current.wakes.Equal(next.wakes) {
		return next, v.after(current, next), true
	}
	return next, next.marked(), current.marks != next.marks
}
