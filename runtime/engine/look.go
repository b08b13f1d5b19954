package engine

import (
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/lane"
)

// Parents of a controller look again when something moves where they have looked.

// minLook is the least time from the end of a run to a time that it has asked for.
const minLook = 100 * time.Millisecond

// rowsMoved has those look again that have looked at rows which have changed.
func (t *turn) rowsMoved(h *hook, w *watches.Watch, events []builtins.Event) {
	events = t.wrote.Caused(w.Decl.APIVersion, w.Decl.Kind, events)
	if len(events) <= maxEachEvents {
		for _, ev := range events {
			places := placesOf(ev)
			ev.Wakes, ev.Result, ev.Object, ev.Old = nil, nil, nil, nil
			t.moved(h, w.Binding, places, ev)
		}
		return
	}
	var places []string
	for _, ev := range events {
		places = append(places, placesOf(ev)...)
	}
	t.moved(h, w.Binding, places, overflow(events)...)
}

// placesOf are the places of a row, those of before among them.
func placesOf(ev builtins.Event) []string {
	places := []string{effect.AtObject(effect.Key(ev.Namespace, ev.Name))}
	if ev.Wakes != nil {
		places = append(places, ev.Wakes.Keys...)
	}
	return places
}

// moved queues events for those that have looked at places.
func (t *turn) moved(h *hook, watch string, places []string, events ...builtins.Event) {
	for _, key := range h.lookups.Move(watch, places, t.ops, h.running()) {
		if s := h.subjects.At(key); s != nil {
			t.add(h, s, lane.Unordered, events...)
			s.Outcome().RetrySoon(h.gen.Retry.Min, "", "")
		}
	}
}

func valuesEvent(cause *effect.Cause) builtins.Event {
	return builtins.Event{Type: "values", Binding: "values", Cause: cause}
}

// observer is the hook that observes the parents of a controller; the controller itself, where there is none.
func (h *hook) observer() *hook {
	if o := h.module.byKey[h.gen.ID+builtins.ObserveSuffix]; o != nil && h.gen.Controller.Observed {
		return o
	}
	return h
}

// looked takes in where a run about a parent has looked, for which time it has asked, and what it has observed.
func (t *turn) looked(r *asked, in *RunDone) {
	h, s := r.hook, r.subject
	for _, l := range h.lookups.Ran(s.Key, in.Run, in.Lookups) {
		ev := builtins.Event{Type: "modified", Binding: l.Watch}
		if l.Watch == "" {
			ev = valuesEvent(nil)
		}
		t.add(h, s, lane.Unordered, ev)
	}
	if soonest := t.now.Add(minLook); !in.Due.IsZero() && in.Due.Before(soonest) {
		in.Due = soonest
	}
	t.requeueAt(s, in.Due)
	before, of := s.Outcome().Observed, h.module.byKey[h.gen.Controls()]
	if in.Observed == nil || of == nil {
		return
	}
	s.Outcome().Observed = in.Observed
	if s := of.subjects.At(s.Key); s != nil && !before.Same(in.Observed) {
		t.add(of, s, lane.Unordered, builtins.Event{Type: "observed", Binding: "observed", Cause: r.cause})
		s.Outcome().RetrySoon(of.gen.Retry.Min, "", "")
	}
}
