package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/lane"
)

// maxEachEvents is how many events of another watch every object is told of; more are
// one sync.
const maxEachEvents = 10

// forEach says whether the runs of the hook are about objects.
func (h *hook) forEach() bool { return h.gen.ForEach != "" }

// failure names the first subject whose run failed, and how many there are; or "".
func (h *hook) failure() string {
	if len(h.failing) == 0 {
		return ""
	}
	text := h.failing[0].said(h.failing[0].lastError)
	switch n := len(h.failing) - 1; n {
	case 0:
	case 1:
		text += " (and 1 other object fails)"
	default:
		text += fmt.Sprintf(" (and %d other objects fail)", n)
	}
	return text
}

// eachWatch is the watch whose objects for_each names.
func (h *hook) eachWatch() *watches.Watch { return h.watches.Of(h.gen.ForEach) }

func (h *hook) isEach(w *watches.Watch) bool { return w.Binding == h.gen.ForEach }

// about returns the subject of a piece of work.
func (h *hook) about(key string) *subject {
	if key == "" {
		return h.subject
	}
	return h.objects.at(key)
}

// subjects are all that runs of the hook may be about, by key: what is the same goes the
// same way each time.
func (h *hook) subjects(yield func(*subject) bool) {
	for _, s := range slices.Clone(h.objects) {
		if !yield(s) {
			return
		}
	}
}

// object returns the subject of an object, a new one if need be.
func (h *hook) object(namespace, name string) *subject {
	key := objectKey(namespace, name)
	s := h.objects.at(key)
	if s == nil {
		s = &subject{hook: h, key: key, namespace: namespace, name: name}
		h.objects.put(s)
	}
	return s
}

func objectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// splitKey is the reverse of objectKey.
func splitKey(key string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		return namespace, name
	}
	return "", key
}

// queue has events wait for the hook: with for_each, for each of its objects.
func (e *Engine) queue(h *hook, events ...builtins.Event) {
	if h.module.leaving {
		// Stages alone have it run. A failed run may succeed now.
		h.lane.RetryAllSoon(h.gen.ID, h.gen.Retry.Min)
		return
	}
	if h.forEach() && len(events) > maxEachEvents {
		events = overflow(events)
	}
	for _, s := range h.objects {
		e.add(s, lane.Unordered, events...)
	}
	h.lane.RetryAllSoon(h.gen.ID, h.gen.Retry.Min)
}

// syncObjects takes in all objects that there are.
func (e *Engine) syncObjects(h *hook, objects []Object) {
	there := make(map[string]bool, len(objects))
	for _, o := range objects {
		there[objectKey(o.Namespace, o.Name)] = true
		e.observeObject(h, o)
	}
	for _, s := range slices.Clone(h.objects) {
		if !there[s.key] && !s.leaving {
			e.dropObject(s)
		}
	}
}

// observeObject takes in one object as it is. It returns nil when no run may be about it:
// it is being deleted, and nothing of ours holds it.
func (e *Engine) observeObject(h *hook, o Object) *subject {
	if h.gen.Cleanup != nil && o.Deleting && !o.Held {
		if s := h.objects.at(objectKey(o.Namespace, o.Name)); s != nil {
			e.dropObject(s)
		}
		return nil
	}
	s := h.object(o.Namespace, o.Name)
	was := s.leaving && !s.lacks
	s.held, s.leaving, s.lacks, s.last = o.Held, h.gen.Cleanup != nil && o.Deleting, o.Lacks, nil
	if s.lacks { // it keeps what it has, and waits
		h.lane.Forget(s.work())
		e.requeueAt(s, time.Time{})
		e.wasTried(s)
		return s
	}
	if s.leaving && !was {
		e.add(s, lane.Unordered, builtins.Event{Type: "deleted", Binding: h.gen.ForEach, Namespace: o.Namespace, Name: o.Name})
	}
	return s
}

// eachChanged queues what has happened to the objects of a hook with for_each.
func (e *Engine) eachChanged(h *hook, w *watches.Watch, events []builtins.Event) {
	for _, ev := range e.wrote.Caused(w.Decl.APIVersion, w.Decl.Kind, events) {
		if ev.Type == "deleted" {
			e.deleteObject(h, ev)
			continue
		}
		s := e.observeObject(h, Object{Namespace: ev.Namespace, Name: ev.Name, Deleting: ev.Deleting, Held: ev.Held, Lacks: ev.Lacks})
		if s == nil || s.lacks || ev.Same || s.leaving || !w.Decl.Triggers(ev.Type) {
			continue
		}
		e.add(s, lane.Unordered, ev)
		h.lane.RetrySoon(s.work(), h.gen.Retry.Min)
	}
	e.touch(h.module)
}

// deleteObject has an object cleaned up that is not there any more: somebody has taken the
// finalizer off by hand, or the watch does not select the object any more.
func (e *Engine) deleteObject(h *hook, ev builtins.Event) {
	s := h.objects.at(objectKey(ev.Namespace, ev.Name))
	switch {
	case s == nil:
	case h.gen.Cleanup == nil || !s.held && !s.mayHold || ev.Lacks: // without a result there is nothing to clean up by
		e.dropObject(s)
	default:
		s.leaving, s.last = true, ev.Result
		if ev.Object != nil {
			s.last = ev.Object
		}
		e.add(s, lane.Unordered, ev)
		h.lane.RetrySoon(s.work(), h.gen.Retry.Min)
	}
}

// dropObject drops all that belongs to an object.
func (e *Engine) dropObject(s *subject) {
	h := s.hook
	s.gone = true
	h.objects.drop(s.key)
	h.failing.drop(s.key)
	h.lane.Forget(s.work())
	e.requeueAt(s, time.Time{})
	e.clearSubject(s)
	e.wasTried(s)
	e.touch(h.module)
}

// clearSubject drops what a subject has set, measured and remembers.
func (e *Engine) clearSubject(s *subject) {
	m := s.hook.module
	if s.measured {
		e.do(Unpublish{Module: m.name, Hook: s.hook.gen.ID, Key: s.key})
	}
	if s.sets {
		e.do(DropSets{Module: m.name, Hook: s.hook.gen.ID, Key: s.key})
	}
	s.measured, s.sets = false, false
	s.state, s.stateSecrets = nil, nil
	s.dropKept()
	if len(s.layer()) > 0 {
		e.setLayer(s, nil, nil)
	}
}

// begin notes which objects the first snapshot has: the hook was tried once they all
// were.
func (e *Engine) begin(h *hook) {
	if !h.forEach() || h.untried != nil {
		return
	}
	h.untried = map[*subject]bool{}
	if h.eachWatch().Served() { // what went while no process ran
		keys := make(map[string]bool, len(h.objects))
		for _, s := range h.objects {
			keys[s.key] = true
		}
		e.do(DropSets{Module: h.module.name, Hook: h.gen.ID, Keys: keys})
	}
	for _, s := range h.objects {
		if _, waits := h.lane.Waiting(s.work()); waits && !s.first.tried() {
			h.untried[s] = true
		}
	}
	e.allTried(h)
}

// wasTried notes the first run of an object. One that fails does not hold up what waits
// for the hook: it is one of many.
func (e *Engine) wasTried(s *subject) {
	if h := s.hook; h.untried[s] {
		delete(h.untried, s)
		e.allTried(h)
	}
}

func (e *Engine) allTried(h *hook) {
	if len(h.untried) == 0 && h.first != hasSucceeded {
		h.first = hasSucceeded
		e.touch(h.module)
	}
}
