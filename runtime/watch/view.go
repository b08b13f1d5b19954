package watch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/sets"
)

// outcome is what a filter made of one object.
type outcome struct {
	value  starlark.Value
	object starlark.Value
	keep   bool
	err    error
	wakes  *effect.Wakes
	marks  Marks
	size   int64 // of value, object and wakes, in memory
	// Of a filter that is called apart: the version of the object, when it was read
	// again, or that it was not there any more.
	version uint64
	missing bool
}

// view is the result of one filter on one stream, for all subscriptions that have
// this filter. Its stream's mutex guards it.
type view struct {
	Spec
	began   time.Time
	exclude sets.Set[string] // namespaces whose objects are left out
	only    sets.Set[string] // the names of the others, when they are selected here
	subs    map[*subscription]*part
	synced  bool
	listing bool   // a goroutine lists for this view alone
	again   bool   // that list is outdated already: once more
	stale   bool   // that list is older than what the stream has brought: forget it
	renewal uint64 // the last renewal of the stream that a list of this view has followed

	apart bool          // the filter is called by its own goroutine
	turn  chan struct{} // of its module, for that
	queue queue

	full error // why a list that is under way is not kept
	over error // why the view was stopped for what it holds, or nil

	later bool // it is listed again after a while: something had no room

	rows   []*row           // sorted
	values []starlark.Value // those of rows; nil: not put together since they changed
	index  index
	failed failures
	// gone holds objects that are known to be deleted or left out at a version
	// newer than what may still arrive.
	gone map[objectKey]uint64
}

// newView makes the view of what a subscription wants kept.
func newView(spec Spec) *view {
	v := &view{
		Spec: spec, began: time.Now(), exclude: sets.New(spec.ExcludeNamespaces...), subs: map[*subscription]*part{},
		apart: spec.Apart && (spec.Filter != nil || spec.Wakes != nil),
	}
	if names := sets.New(spec.Names...); len(names) > MaxNames {
		v.only = names
	}
	return v
}

// trouble is the error of the filter, and whether objects lack, see [Sink].
func (v *view) trouble() (err error, lacks bool) {
	if v.over != nil {
		return v.over, true
	}
	return v.failed.err(v.Kind, v.Each), v.failed.lacks > 0 && !v.Each
}

// behind says that a list is under way, which may bring what is older than what is known.
func (v *view) behind() bool { return !v.synced || v.listing || v.queue.list != nil }

// anew prepares for a list of a history of the server that begins anew: versions of before
// mean nothing.
func (v *view) anew() {
	for i, r := range v.rows {
		next := *r
		next.version = 0
		v.rows[i] = &next
	}
	v.index = nil
	for key, f := range v.failed.byKey {
		f.version = 0
		v.failed.byKey[key] = f
	}
	v.gone = nil
}

// leavesOut says whether an object is none of the view's by its name.
func (v *view) leavesOut(key objectKey) bool {
	return v.exclude.Has(key.namespace) || v.only != nil && !v.only.Has(key.name)
}

// run applies the filter. A panic in it is an error of this object.
func (v *view) run(obj map[string]any) (out outcome) {
	if len(v.exclude)+len(v.only) > 0 {
		if key, _, _ := identity(obj); v.leavesOut(key) {
			return outcome{}
		}
	}
	if v.Omit != nil && v.Omit(obj) {
		return outcome{}
	}
	if v.Finalizer != "" {
		marks := marksOf(obj, v.Finalizer)
		defer func() { out.marks = marks }()
	}
	defer func() { out.weigh(v.Both) }()
	what := "the filter"
	defer func() {
		if r := recover(); r != nil {
			out = outcome{err: fmt.Errorf("%s crashed: %v", what, r)}
		}
	}()
	out = v.keep(obj)
	if v.Wakes == nil || out.err != nil || !out.keep {
		return out
	}
	what = "wakes"
	if out.wakes, out.err = v.Wakes(obj); out.err != nil {
		return outcome{err: out.err}
	}
	out.share()
	return out
}

// share has whom the object concerns said in texts that the result holds.
func (o *outcome) share() {
	texts, is := o.value.(Sharing)
	if !is || o.wakes == nil {
		return
	}
	keys := make([]string, len(o.wakes.Keys))
	for i, key := range o.wakes.Keys {
		keys[i] = texts.Text(key)
	}
	o.wakes = &effect.Wakes{Keys: keys}
}

// keep is what the view keeps of an object, without whom that concerns.
func (v *view) keep(obj map[string]any) (out outcome) {
	var whole starlark.Value
	if v.Filter == nil || v.KeepObject {
		whole = object.New(obj)
	}
	if v.Filter == nil {
		out = outcome{value: whole, keep: true}
		if v.KeepObject {
			out.object = whole
		}
		return out
	}
	value, keep, err := v.Filter(obj)
	if err == nil && keep && value == nil {
		value = starlark.None
	}
	if err == nil && keep && v.Both {
		plain, err := object.ToPlain(value)
		if err != nil {
			return outcome{err: err}
		}
		value = object.New(map[string]any{"object": obj, resultKey: plain})
	}
	if value != nil {
		value.Freeze()
	}
	return outcome{value: value, object: whole, keep: keep, err: err}
}

// resultKey is where a value of [Spec].Both has what the filter has made of its object.
const resultKey = "result"

// results are the values of rows that have one.
func results(rows []*row) []starlark.Value {
	out := make([]starlark.Value, 0, len(rows))
	for _, r := range rows {
		if !r.lacks {
			out = append(out, r.value)
		}
	}
	return out
}

// all are its rows, sorted.
func (v *view) all() []*row { return v.rows }

// lacking names an object without a result, "" when there is none.
func (v *view) lacking() string {
	if v.failed.lacks == 0 {
		return ""
	}
	return v.Kind + " " + v.failed.order[0].String()
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
		v.gone[key] >= version || v.failed.byKey[key].version >= version
}

// seenSince says whether a newer state of an object has come than that of a time.
func (v *view) seenSince(key objectKey, at time.Time) bool {
	_, r := v.find(key)
	f, failed := v.failed.byKey[key]
	since := at.Sub(v.began)
	return r != nil && r.seen > since || failed && f.seen > since || v.queue.seenSince(key, at)
}

// snapshot returns the values of all rows. They are put together when they have changed:
// with for_each there are as many runs as objects.
func (v *view) snapshot() []starlark.Value {
	if v.values == nil {
		v.values = results(v.rows)
	}
	return v.values
}

// put takes in one object at one version, from a stream, and returns the event it makes. ahead
// says that the stream has yet to reach this version.
func (v *view) put(key objectKey, version uint64, out outcome, seen time.Time, ahead bool) (Event, bool) {
	i, current := v.find(key)
	if v.known(key, current, version) {
		return Event{}, false
	}
	if out.err == nil {
		v.failed.drop(key)
		delete(v.gone, key)
	}
	next, event, changed := v.next(current, key, version, out, seen)
	switch {
	case next == nil && out.err == nil:
		if ahead {
			v.bury(key, version)
		}
		return v.drop(i, current, version)
	case next == current:
	case current == nil:
		v.insert(i, next)
	default:
		v.exchange(i, next)
	}
	if changed && !event.Same {
		v.values = nil
	}
	return event, changed
}

// keepSame keeps the old value: it is equal, and shares its memory with what snapshots hold. One
// that holds the object is another.
func (v *view) keepSame(current, next *row) {
	if v.Both {
		v.values = nil
	} else {
		next.keep(current)
	}
}

// same says whether two results are equal; what cannot be compared is not. Whole
// objects differ whenever their version does.
func (v *view) same(a, b starlark.Value) bool {
	if v.Filter == nil {
		return false
	}
	if v.Both {
		a, b = resultIn(a), resultIn(b)
	}
	equal, err := object.Equal(a, b)
	return err == nil && equal
}

func resultIn(both starlark.Value) starlark.Value {
	return object.FromPlain(both.(*object.Object).Map()[resultKey])
}

// remove takes out an object that was deleted at this version.
func (v *view) remove(key objectKey, version uint64, seen time.Time, ahead bool) (Event, bool) {
	i, current := v.find(key)
	if version != 0 && current != nil && current.version > version {
		return Event{}, false // made again since, and we know of it
	}
	v.failed.drop(key)
	at := version
	if version == 0 && current != nil {
		version = current.version // what is not newer than this is the deleted one
	}
	if ahead {
		v.bury(key, version)
	}
	return v.drop(i, current, at)
}

func (v *view) drop(i int, current *row, version uint64) (Event, bool) {
	if current == nil {
		return Event{}, false
	}
	v.index.drop(current)
	v.rows, v.values = slices.Delete(v.rows, i, i+1), nil
	return current.left(version), true
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
	maps.DeleteFunc(v.gone, func(_ objectKey, version uint64) bool { return version <= position })
}
