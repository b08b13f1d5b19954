package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/object"
	"go.starlark.net/starlark"
)

// objectKey names an object within one kind.
type objectKey struct{ namespace, name string }

func (k objectKey) String() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

// row is one object as a view keeps it. It is never changed after it was made.
type row struct {
	objectKey
	version uint64 // resourceVersion; 0 when it is no number
	value   starlark.Value
	object  starlark.Value // what value was made of, when the view keeps that
	marks   Marks
}

func (r *row) entry() Entry {
	return Entry{Namespace: r.namespace, Name: r.name, Result: r.value, Object: r.object, Marks: r.marks}
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func compareRows(a, b *row) int { return compareKeys(a.objectKey, b.objectKey) }

// outcome is what a filter made of one object.
type outcome struct {
	value  starlark.Value
	object starlark.Value
	keep   bool
	err    error
	marks  Marks
}

// failure is a filter's error on one object.
type failure struct {
	version uint64
	msg     string
}

// view is the result of one filter on one stream, for all subscriptions that have
// this filter. Its stream's mutex guards it.
type view struct {
	filter  Filter
	holder  string          // the finalizer of marks, or ""
	exclude map[string]bool // namespaces whose objects are left out
	objects bool            // the objects are kept, too
	subs    map[*subscription]bool
	synced  bool
	listing bool // a goroutine lists for this view alone
	again   bool // that list is outdated already: once more
	moot    bool // that list is older than what the stream has brought: forget it

	rows   []*row           // sorted
	values []starlark.Value // those of rows; nil: not put together since they changed
	failed map[objectKey]failure
	// gone holds objects that are known to be deleted or left out at a version
	// newer than what may still arrive.
	gone map[objectKey]uint64
}

// newView makes the view of what a subscription wants kept.
func newView(spec Spec) *view {
	v := &view{filter: spec.Filter, holder: spec.Finalizer, objects: spec.KeepObject, subs: map[*subscription]bool{}}
	for _, namespace := range spec.ExcludeNamespaces {
		if v.exclude == nil {
			v.exclude = map[string]bool{}
		}
		v.exclude[namespace] = true
	}
	return v
}

// run applies the filter. A panic in it is an error of this object.
func (v *view) run(obj map[string]any) (out outcome) {
	if len(v.exclude) > 0 {
		if key, _, _ := identity(obj); v.exclude[key.namespace] {
			return outcome{}
		}
	}
	if v.holder != "" {
		marks := marksOf(obj, v.holder)
		defer func() { out.marks = marks }()
	}
	var whole starlark.Value
	if v.filter == nil || v.objects {
		whole = object.New(obj)
	}
	if v.filter == nil {
		out = outcome{value: whole, keep: true}
		if v.objects {
			out.object = whole
		}
		return out
	}
	defer func() {
		if r := recover(); r != nil {
			out = outcome{err: fmt.Errorf("the filter crashed: %v", r)}
		}
	}()
	value, keep, err := v.filter(obj)
	if err == nil && keep && value == nil {
		value = starlark.None
	}
	if value != nil {
		value.Freeze()
	}
	return outcome{value: value, object: whole, keep: keep, err: err}
}

// row is what is kept of an object at a version.
func (o outcome) row(key objectKey, version uint64) *row {
	return &row{objectKey: key, version: version, value: o.value, object: o.object, marks: o.marks}
}

func (r *row) event(typ EventType, seen time.Time) Event {
	return Event{Type: typ, Namespace: r.namespace, Name: r.name, Result: r.value, Object: r.object, Marks: r.marks, Seen: seen}
}

func (r *row) with(marks Marks) *row {
	next := *r
	next.marks = marks
	return &next
}

// marked tells of a change of the marks alone.
func (r *row) marked(seen time.Time) Event {
	ev := r.event(Modified, seen)
	ev.Same = true
	return ev
}

// marksOf reads the marks out of an object.
func marksOf(obj map[string]any, finalizer string) Marks {
	meta, _ := obj["metadata"].(map[string]any)
	deleted, _ := meta["deletionTimestamp"].(string)
	finalizers, _ := meta["finalizers"].([]any)
	return Marks{Deleting: deleted != "", Held: slices.Contains(finalizers, any(finalizer))}
}

func (v *view) find(key objectKey) (int, *row) {
	i, ok := slices.BinarySearchFunc(v.rows, key, func(r *row, key objectKey) int { return compareKeys(r.objectKey, key) })
	if !ok {
		return i, nil
	}
	return i, v.rows[i]
}

// known says whether the view already reflects the object at this version or a
// newer one.
func (v *view) known(key objectKey, current *row, version uint64) bool {
	if version == 0 {
		return false
	}
	return current != nil && current.version >= version ||
		v.gone[key] >= version || v.failed[key].version >= version
}

// snapshot returns the values of all rows. They are put together when they have changed:
// with for_each there are as many runs as objects.
func (v *view) snapshot() []starlark.Value {
	if v.values == nil {
		v.values = make([]starlark.Value, len(v.rows))
		for i, r := range v.rows {
			v.values[i] = r.value
		}
	}
	return v.values
}

// put takes in one object at one version and returns the event it makes. ahead
// says that the stream has yet to reach this version.
func (v *view) put(key objectKey, version uint64, out outcome, seen time.Time, ahead bool) (Event, bool) {
	i, current := v.find(key)
	if v.known(key, current, version) {
		return Event{}, false
	}
	if out.err != nil {
		// The last good result stays.
		v.fail(key, version, out.err)
		if current == nil || current.marks == out.marks {
			return Event{}, false
		}
		// What holds an object is none of the filter's business.
		v.rows[i] = current.with(out.marks)
		return v.rows[i].marked(seen), true
	}
	delete(v.failed, key)
	delete(v.gone, key)
	if !out.keep {
		if ahead {
			v.bury(key, version)
		}
		return v.drop(i, current, seen)
	}
	next := out.row(key, version)
	if current == nil {
		v.rows, v.values = slices.Insert(v.rows, i, next), nil
		return next.event(Added, seen), true
	}
	if v.same(current.value, out.value) {
		// Keep the old value: what is equal shares its memory with what
		// snapshots hold.
		next.value = current.value
		v.rows[i] = next
		if current.marks == next.marks {
			return Event{}, false
		}
		return next.marked(seen), true
	}
	v.rows[i], v.values = next, nil
	return next.event(Modified, seen), true
}

// same says whether two results are equal; what cannot be compared is not. Whole
// objects differ whenever their version does.
func (v *view) same(a, b starlark.Value) bool {
	if v.filter == nil {
		return false
	}
	equal, err := object.Equal(a, b)
	return err == nil && equal
}

// remove takes out an object that was deleted at this version.
func (v *view) remove(key objectKey, version uint64, seen time.Time, ahead bool) (Event, bool) {
	i, current := v.find(key)
	if version != 0 && current != nil && current.version > version {
		return Event{}, false // made again since, and we know of it
	}
	delete(v.failed, key)
	if version == 0 && current != nil {
		version = current.version // what is not newer than this is the deleted one
	}
	if ahead {
		v.bury(key, version)
	}
	return v.drop(i, current, seen)
}

func (v *view) drop(i int, current *row, seen time.Time) (Event, bool) {
	if current == nil {
		return Event{}, false
	}
	v.rows, v.values = slices.Delete(v.rows, i, i+1), nil
	return current.event(Deleted, seen), true
}

func (v *view) bury(key objectKey, version uint64) {
	if version == 0 {
		return
	}
	if v.gone == nil {
		v.gone = map[objectKey]uint64{}
	}
	v.gone[key] = version
}

// forgetGone drops what the stream has passed.
func (v *view) forgetGone(position uint64) {
	for key, version := range v.gone {
		if version <= position {
			delete(v.gone, key)
		}
	}
}

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
	old := v.rows
	rows := make([]*row, 0, len(entries))
	failed := map[objectKey]failure{}
	var events []Event
	newer := func(r *row) bool { return !force && r.version > version }
	leave := func(r *row) {
		if newer(r) {
			rows = append(rows, r)
		} else {
			events = append(events, r.event(Deleted, seen))
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
		switch {
		case !force && current != nil && e.version != 0 && current.version > e.version:
			rows = append(rows, current)
		case !force && e.version != 0 && v.gone[e.objectKey] >= e.version:
			// Deleted or left out since.
		case e.outcome.err != nil:
			failed[e.objectKey] = newFailure(e.version, e.outcome.err)
			if current == nil {
				continue
			}
			if current.marks != e.outcome.marks {
				current = current.with(e.outcome.marks)
				events = append(events, current.marked(seen))
			}
			rows = append(rows, current)
		case !e.outcome.keep:
			if current != nil {
				events = append(events, current.event(Deleted, seen))
			}
		default:
			next := e.outcome.row(e.objectKey, e.version)
			typ := Added
			if current != nil {
				typ = Modified
			}
			if current != nil && (current.version == e.version && e.version != 0 || v.same(current.value, next.value)) {
				next.value = current.value
				if current.marks != next.marks {
					events = append(events, next.marked(seen))
				}
			} else {
				events = append(events, next.event(typ, seen))
			}
			rows = append(rows, next)
		}
	}
	for _, r := range old {
		leave(r)
	}
	for key, f := range v.failed { // of what is newer than the list
		if !force && f.version > version {
			failed[key] = f
		}
	}
	v.rows, v.values, v.failed = slices.Clip(rows), nil, failed
	if force {
		v.gone = nil
	}
	return events
}

func newFailure(version uint64, err error) failure {
	const most = 1024
	msg := strings.Join(strings.Fields(err.Error()), " ")
	if len(msg) > most {
		msg = strings.ToValidUTF8(msg[:most], "") + "…"
	}
	return failure{version, msg}
}

func (v *view) fail(key objectKey, version uint64, err error) {
	if v.failed == nil {
		v.failed = map[objectKey]failure{}
	}
	v.failed[key] = newFailure(version, err)
}

// failure returns one error for all objects that the filter fails on.
func (v *view) failure(kind string) error {
	if len(v.failed) == 0 {
		return nil
	}
	var first objectKey
	found := false
	for key := range v.failed {
		if !found || compareKeys(key, first) < 0 {
			first, found = key, true
		}
	}
	more := ""
	if n := len(v.failed) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more objects)", n)
	}
	return fmt.Errorf("the filter fails on %s %s: %s%s", kind, first, v.failed[first].msg, more)
}

// versionNumber reads a resourceVersion. They are numbers that grow, for all
// objects of a resource; 0 stands for one that is not.
func versionNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
