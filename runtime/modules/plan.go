package modules

import (
	"reflect"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// goneFor is how long a module must be gone from the tree before its object is deleted: a folder
// that is replaced file by file is gone for a moment.
const goneFor = 10 * time.Second

const (
	// movingFor is how long a state that is about to change may last before people are shown it.
	movingFor = time.Second
	// startFor is how long a start may take before statuses of the process before are looked at:
	// with many modules that takes time, which the modules need.
	startFor = 30 * time.Second
	// claimFor is how long an object that nobody has claimed is left to the instance that may
	// have a module of its name.
	claimFor = 2 * time.Second
)

// entry is what is remembered of one object.
type entry struct {
	status *Status // that was written last, or found at the start; nil: none is known
	wrote  string  // the text of it; empty: this process has not written it
	answer string  // the text of the API server's answer to that write
	moving time.Time
	gone   time.Time
	retry  lane.Retry // of writes that fail for this object
	// failing are the hooks that people have been told of; nil: those of whom the process before has told.
	failing Failing

	// rests says that the object was as it should be for these facts.
	rests  bool
	facts  Facts
	object Object
}

// step is what shall be done about one object. Several may be set; they are done in this order.
type step struct {
	module string
	create map[string]any // the spec of an object that is not there; nil without create
	isNew  bool
	patch  map[string]any // a merge patch of the metadata; nil: none
	// reconcile is what asks for another look at the module, which the patch takes off.
	reconcile string
	delete    *effect.Unchanged // the object, whose module is gone; nil: it stays
	status    *Status           // nil: it is as it should be
	uid       string            // of the object, for Events
	events    []effect.Event
	failing   Failing // the hooks that people know of then
}

func (s step) idle() bool { return !s.isNew && s.patch == nil && s.delete == nil && s.status == nil }

// world is what a round decides by.
type world struct {
	instance effect.Instance
	objects  map[string]Object
	facts    map[string]Facts
	names    []string // of the modules, sorted
	// elsewhere says whether another instance may have a module.
	elsewhere func(module string) bool
	stays     bool // objects of modules that the tree lacks stay as they are
	starting  bool // not all modules have been looked at once, and it is too soon to say so
	now       time.Time
}

// step decides about the object of this name. Soon says that it wants another look before
// anything else changes.
func (w *world) step(name string, e *entry) (s step, soon bool) {
	if _, is := w.facts[name]; is {
		return w.ofModule(name, e)
	}
	return w.ofNone(w.objects[name], e)
}

// ofModule decides about the object of a module.
func (w *world) ofModule(module string, e *entry) (s step, soon bool) {
	f, o := w.facts[module], w.objects[module]
	s.module, s.uid = module, o.UID
	e.gone = time.Time{}
	if e.rests && e.object == o && reflect.DeepEqual(e.facts, f) {
		return s, false
	}
	if w.starting && o.Status != "" {
		return s, true
	}
	e.rests, e.facts, e.object = false, f, o
	there := o.Name != ""
	owner, ours := o.Owner(w.instance)
	switch {
	case there && o.Deleting, there && !ours && owner != "":
		e.rests = true
		return s, false
	case !there:
		s.isNew, s.create = true, f.Spec
	case o.Label != w.instance.Label() || o.Reconcile != "":
		s.patch, s.reconcile = metadataPatch(w.instance, o), o.Reconcile
	}
	if there && !ours {
		return s, true // it is, once it has the label
	}
	before, shown := w.before(e, o), w.before(e, o)
	if !there {
		before = nil // the new one begins anew, as after a restart
	}
	generation := f.Module.Config.Generation
	if generation == 0 && !o.Says {
		generation = o.Generation // there was nothing to take in
	}
	s.status = statusOf(nameOf(w.instance), f, generation, before, w.now)
	s.events = eventsOf(shown, s.status)
	s.eventOfHooks(f.Hooks, e.failing, shown)
	return s, w.settle(e, &s, o)
}

// ofNone decides about an object whose name is that of no module.
func (w *world) ofNone(o Object, e *entry) (s step, soon bool) {
	s.module, s.uid = o.Name, o.UID
	owner, ours := o.Owner(w.instance)
	if o.Deleting || owner != "" && !ours {
		return s, false
	}
	if w.stays {
		e.gone = time.Time{}
		return s, false
	}
	if w.elsewhere(o.Name) {
		e.gone = time.Time{}
		if o.Label == w.instance.Label() && o.Instance == "" { // else the user has chosen the instance
			s.patch = map[string]any{"metadata": map[string]any{"labels": map[string]any{effect.InstanceLabel: nil}}}
		}
		return s, false
	}
	if e.gone.IsZero() {
		e.gone = w.now
	}
	since := w.now.Sub(e.gone)
	switch {
	case owner == "" && o.Status != "" && w.before(e, o) == nil:
		return s, false // another instance has said so
	case owner == "" && since < claimFor:
		return s, true
	case o.Label == w.instance.Label() && !o.Says:
		if since >= goneFor {
			s.delete = &effect.Unchanged{UID: o.UID, ResourceVersion: o.Version} // whose spec may say something since
			s.events = eventsOf(w.before(e, o), &Status{})
		}
		return s, since < goneFor
	}
	before := w.before(e, o)
	s.status = statusOfNone(nameOf(w.instance), o.Name, w.names, o.Generation, before, w.now)
	s.events = eventsOf(before, s.status)
	if o.Label == w.instance.Label() { // else its release was given back
		s.events = append(eventsOf(before, &Status{}), s.events...)
	}
	return s, w.settle(e, &s, o)
}

// before is the status that this instance has given an object; nil: none.
func (w *world) before(e *entry, o Object) *Status {
	if e.status != nil {
		return e.status
	}
	if is := decode(o.Status); is != nil && is.Instance == nameOf(w.instance) {
		return is
	}
	return nil
}

// settle drops the status from a step when it is as it should be, or is about to change anyway.
func (w *world) settle(e *entry, s *step, o Object) (soon bool) {
	_, want := s.status.encode()
	switch {
	case o.Status == want, e.wrote == want && e.answer == o.Status:
		e.status, e.moving, e.failing = s.status, time.Time{}, s.failing
	case !s.status.moving():
		e.moving = time.Time{}
		return false
	default:
		if e.moving.IsZero() {
			e.moving = w.now
		}
		if w.now.Sub(e.moving) >= movingFor {
			return false
		}
		soon = true
	}
	s.status, s.events = nil, nil
	e.rests = !soon && s.idle()
	return soon
}

// metadataPatch gives an object the label of the instance, and takes off what asks to reconcile.
func metadataPatch(instance effect.Instance, o Object) map[string]any {
	metadata := map[string]any{}
	if o.Label != instance.Label() {
		metadata["labels"] = map[string]any{effect.InstanceLabel: instance.Label()}
	}
	if o.Reconcile != "" {
		metadata["annotations"] = map[string]any{ReconcileAnnotation: nil}
	}
	return map[string]any{"metadata": metadata}
}
