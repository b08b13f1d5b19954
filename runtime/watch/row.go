package watch

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// objectKey names an object within one kind.
type objectKey struct{ namespace, name string }

func (k objectKey) String() string { return effect.Key(k.namespace, k.name) }

// row is one object as a view keeps it. It is never changed after it was made.
type row struct {
	objectKey
	version uint64 // resourceVersion; 0 when it is no number
	value   starlark.Value
	object  starlark.Value // what value was made of, when the view keeps that
	wakes   *effect.Wakes
	seen    time.Duration // when it came, since the view began
	size    int32         // in memory; the most stands for more
	marks   Marks
	lacks   bool // the filter fails on it, and never gave a result: value is nil
}

func (r *row) entry() Entry {
	return Entry{Namespace: r.namespace, Name: r.name, Result: r.value, Object: r.object, Marks: r.marks, Lacks: r.lacks}
}

func (r *row) weight() int64 {
	if r == nil {
		return 0
	}
	return int64(r.size)
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func compareRows(a, b *row) int { return compareKeys(a.objectKey, b.objectKey) }

// row is what is kept of an object at a version.
func (o outcome) row(key objectKey, version uint64, seen time.Duration) *row {
	if texts, is := o.value.(Sharing); is {
		key = objectKey{texts.Text(key.namespace), texts.Text(key.name)}
	}
	size := int32(min(o.size, math.MaxInt32))
	return &row{objectKey: key, version: version, value: o.value, object: o.object, wakes: o.wakes, marks: o.marks, size: size, seen: seen}
}

// keep has the row of an object keep the result that the row before it has, for they are equal, and the texts
// that lie in its memory.
func (r *row) keep(before *row) {
	r.objectKey, r.value = before.objectKey, before.value
	if before.wakes.Equal(r.wakes) {
		r.wakes = before.wakes
	}
}

// outcome is what the filter has made of the object.
func (r *row) outcome() outcome {
	return outcome{value: r.value, object: r.object, keep: true, wakes: r.wakes, marks: r.marks, size: int64(r.size)}
}

func (r *row) event(typ EventType) Event {
	return Event{Type: typ, Namespace: r.namespace, Name: r.name, Result: r.value, Object: r.object, Wakes: r.wakes, Marks: r.marks, Lacks: r.lacks}
}

// after tells of a change: it is for those that the object has concerned before, too.
func (v *view) after(before, r *row) Event {
	ev := r.event(Modified)
	ev.Wakes = before.wakes.And(r.wakes)
	if v.Old {
		ev.Old = before.value
	}
	return ev
}

// left tells that the object was not there, or not kept, any more at a version.
func (r *row) left(version uint64) Event {
	ev := r.event(Deleted)
	ev.Version = version
	return ev
}

// lacking is the row of an object without a result.
func lacking(key objectKey, version uint64, marks Marks, seen time.Duration) *row {
	return &row{objectKey: key, version: version, marks: marks, lacks: true, seen: seen}
}

func (r *row) with(marks Marks) *row {
	next := *r
	next.marks = marks
	return &next
}

// marked tells of a change of the marks alone.
func (r *row) marked() Event {
	ev := r.event(Modified)
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

// Version reads a resourceVersion. They are numbers that grow, for all
// objects of a resource; 0 stands for one that is not.
func Version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
