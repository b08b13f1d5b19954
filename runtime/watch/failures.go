package watch

import (
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/message"
)

// failure is a filter's error on one object.
type failure struct {
	version uint64
	msg     string
	lacks   bool // no result of the object is kept
	seen    time.Duration
}

// failures are the objects that a filter fails on. They are kept in order, so that an event
// looks at none but its own object.
type failures struct {
	byKey map[objectKey]failure
	order []objectKey // those that lack first
	lacks int
}

func (f *failures) len() int { return len(f.byKey) }

// place finds a key among those that lack, or among the others.
func (f *failures) place(key objectKey, lacks bool) (int, bool) {
	from, part := 0, f.order[:f.lacks]
	if !lacks {
		from, part = f.lacks, f.order[f.lacks:]
	}
	i, there := slices.BinarySearchFunc(part, key, compareKeys)
	return from + i, there
}

func (f *failures) set(key objectKey, version uint64, err error, lacks bool, seen time.Duration) {
	f.keep(key, failure{version: version, msg: message.Cut(message.Line(err.Error()), 1024), lacks: lacks, seen: seen})
}

func (f *failures) keep(key objectKey, next failure) {
	if old, there := f.byKey[key]; there && old.lacks != next.lacks {
		f.drop(key)
	}
	if i, there := f.place(key, next.lacks); !there {
		f.order = slices.Insert(f.order, i, key)
		if next.lacks {
			f.lacks++
		}
	}
	if f.byKey == nil {
		f.byKey = map[objectKey]failure{}
	}
	f.byKey[key] = next
}

func (f *failures) drop(key objectKey) {
	old, there := f.byKey[key]
	if !there {
		return
	}
	delete(f.byKey, key)
	i, _ := f.place(key, old.lacks)
	f.order = slices.Delete(f.order, i, i+1)
	if old.lacks {
		f.lacks--
	}
}

// err is one error for all objects; nil when there are none.
func (f *failures) err(kind string, each bool) error {
	if len(f.order) == 0 {
		return nil
	}
	first, more, waits := f.order[0], "", ""
	if n := len(f.order) - 1; n > 0 {
		more = fmt.Sprintf(" (and on %d more)", n)
	}
	switch {
	case f.lacks > 0 && each:
		waits = ", and what has no result has no run before it has one"
	case f.lacks > 0:
		waits = ", and the hook does not run before that has a result or is gone"
	}
	return fmt.Errorf("the filter fails on %s %s%s%s: %s", kind, first, more, waits, f.byKey[first].msg)
}
