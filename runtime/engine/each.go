package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
)

// maxEachEvents is how many events of another watch every object is told of, when they are for all; more are one sync.
const maxEachEvents = 10

// forEach says whether the runs of the hook are about objects.
func (h *hook) forEach() bool { return h.gen.ForEach != "" }

// eachWatch is the watch whose objects for_each names.
func (h *hook) eachWatch() *watches.Watch { return h.watches.Of(h.gen.ForEach) }

func (h *hook) isEach(w *watches.Watch) bool { return w.Binding == h.gen.ForEach }

// cleans says whether something has to be done before an object goes.
func (h *hook) cleans() bool { return h.gen.Cleans() }

// work names a subject in its lane.
func work(s *subjects.Subject) lane.ID { return lane.ID{Group: s.Hook, Key: s.Key} }

// queue has events wait for the hook: with for_each, for the objects that they are for.
func (t *turn) queue(h *hook, events ...builtins.Event) {
	if h.module.life == leaving {
		// Stages alone have it run. A failed run may succeed now.
		t.retryAll(h, h.gen.Retry.Min)
		return
	}
	if h.forEach() {
		events = fewer(events)
	}
	for len(events) > 0 {
		n := slices.IndexFunc(events, forSome)
		switch n {
		case -1:
			n = len(events)
		case 0:
			n = 1
		}
		t.wake(h, events[:n])
		events = events[n:]
	}
}

// forSome says that an event is not for all objects.
func forSome(ev builtins.Event) bool { return ev.Wakes != nil }

// fewer puts a sync into the place of events that are for all objects, when there are many.
func fewer(events []builtins.Event) []builtins.Event {
	var some, all []builtins.Event
	for _, ev := range events {
		if forSome(ev) {
			some = append(some, ev)
		} else {
			all = append(all, ev)
		}
	}
	if len(all) <= maxEachEvents {
		return events
	}
	return append(some, overflow(all)...)
}

// wake has events wait that are for all subjects, or one that is for some.
func (t *turn) wake(h *hook, events []builtins.Event) {
	wakes := events[0].Wakes
	if wakes == nil {
		for _, s := range h.subjects.All() {
			t.add(h, s, lane.Unordered, events...)
			s.Outcome().RetrySoon(h.gen.Retry.Min, "", "")
		}
		return
	}
	ev := events[0]
	ev.Wakes = nil
	for _, key := range wakes.Keys {
		if s := h.subjects.At(key); s != nil { // else nobody has this key
			t.add(h, s, lane.Unordered, ev)
			s.Outcome().RetrySoon(h.gen.Retry.Min, ev.Namespace, cmp.Or(ev.Name, "-")) // what failed about this object
		}
	}
}

// syncObjects takes in all objects that there are. While their kind is not served nobody knows them. With a cleanup
// they stay as they are, for an object with the finalizer does not go before its cleanup, and nothing waits for their
// runs; without one they count as gone. back says that the kind was not served until now.
func (t *turn) syncObjects(h *hook, in WatchSynced, back bool) {
	if !in.Served && h.cleans() {
		h.subjects.Unknown()
		return
	}
	var leaving []*subjects.Subject
	if back { // their runs have come to nothing meanwhile
		leaving = slices.DeleteFunc(h.subjects.All(), func(s *subjects.Subject) bool { return !s.Leaving() })
	}
	for _, o := range in.Objects {
		t.observeObject(h, o)
	}
	for _, s := range leaving {
		if !s.Leaving() {
			continue
		}
		ns, name := s.Name()
		t.add(h, s, lane.Unordered, builtins.Event{Type: "deleted", Binding: h.gen.ForEach, Namespace: ns, Name: name})
	}
	for _, s := range h.subjects.Missing(in.Objects) {
		t.dropObject(h, s)
		h.module.finalizers.Unswept(h.gen.ID) // it may be there, and not be selected any more
	}
}

// observeObject takes in one object as it is. It returns nil when nothing else that happens to it is for a run.
func (t *turn) observeObject(h *hook, o Object) *subjects.Subject {
	s, news := h.subjects.Observe(o, h.cleans())
	switch news {
	case subjects.Gone:
		if s != nil {
			t.dropObject(h, s)
		}
		return nil
	case subjects.Behind:
		return nil
	case subjects.Waits:
		h.lane.Forget(work(s))
		t.requeueAt(s, time.Time{})
		return nil
	case subjects.Leaves:
		t.add(h, s, lane.Unordered, builtins.Event{Type: "deleted", Binding: h.gen.ForEach, Namespace: o.Namespace, Name: o.Name})
	}
	return s
}

// eachChanged queues what has happened to the objects of a hook with for_each.
func (t *turn) eachChanged(h *hook, w *watches.Watch, events []builtins.Event) {
	for _, ev := range t.wrote.Caused(w.Decl.APIVersion, w.Decl.Kind, events) {
		if ev.Type == "deleted" {
			t.deleteObject(h, ev)
			continue
		}
		uid := cmp.Or(object.UID(ev.Object), object.UID(ev.Result))
		s := t.observeObject(h, Object{Namespace: ev.Namespace, Name: ev.Name, UID: uid, Deleting: ev.Deleting, Held: ev.Held, Lacks: ev.Lacks})
		if s == nil || ev.Same || s.Leaving() && !h.gen.AsksCleanup() || !w.Decl.Triggers(ev.Type) {
			continue
		}
		t.add(h, s, lane.Unordered, ev)
		if ev.Cause == nil { // else Starling has written its status
			s.Outcome().RetrySoon(h.gen.Retry.Min, "", "")
		}
	}
}

// deleteObject has an object cleaned up that is not there any more.
func (t *turn) deleteObject(h *hook, ev builtins.Event) {
	last := ev.Result
	if ev.Object != nil && !h.gen.Binding(h.gen.ForEach).Watch.KeepBoth {
		last = ev.Object
	}
	s, news := h.subjects.Delete(ev.Namespace, ev.Name, last, h.cleans() && !ev.Lacks)
	switch {
	case s == nil:
	case news == subjects.Gone:
		t.dropObject(h, s)
	default:
		t.add(h, s, lane.Unordered, ev)
	}
}

// dropObject drops all that belongs to an object.
func (t *turn) dropObject(h *hook, s *subjects.Subject) {
	h.subjects.Drop(s)
	h.lookups.Forget(s.Key)
	delete(h.repairs, s.Key)
	delete(h.echoes, s.ID())
	h.lane.Forget(work(s))
	t.requeueAt(s, time.Time{})
	t.clearSubject(h.module, s)
}

// clearSubject drops what a subject has set, measured and remembers.
func (t *turn) clearSubject(m *module, s *subjects.Subject) {
	left := s.Clear()
	if left&subjects.Metrics != 0 {
		t.do(Unpublish{Module: m.name, Hook: s.Hook, Key: s.Key})
	}
	if left&subjects.Sets != 0 {
		t.do(DropSets{Module: m.name, Hook: s.Hook, Key: s.Key})
	}
	t.forgetKept(m, s)
}

// begin notes which objects the first snapshot has: the hook was tried once they all were.
func (t *turn) begin(h *hook) {
	begins := h.subjects.Begin(func(s *subjects.Subject) bool {
		_, waits := h.lane.Waiting(work(s))
		return waits && h.eachWatch().Served()
	})
	if !begins || !h.eachWatch().Served() {
		return
	}
	keys := map[string]bool{}
	for _, s := range h.subjects.All() {
		keys[s.Key] = true
	}
	// Sets of objects that went while no process ran.
	t.do(DropSets{Module: h.module.name, Hook: h.gen.ID, Keys: keys})
}
