package engine

import (
	"cmp"
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
)

// add queues events for the subject's next run. One without a result has its run when it gets one.
func (t *turn) add(h *hook, s *subjects.Subject, order int, events ...builtins.Event) {
	if s.Lacks() || t.standsBy() {
		return
	}
	h.lane.Add(work(s), order, events...)
	echo := h.echoes.Of(s.ID())
	if !echo.Concerns(s.ID(), events) {
		return
	}
	if ev, slowed := echo.Queue(s.ID(), h.lane.Pending(work(s)), t.now, t.opts.Jitter); slowed {
		h.echoes[s.ID()] = echo
		t.slowed(h, s, ev)
	}
	h.lane.Delay(work(s), echo.Until())
}

// slowed says that a subject wakes itself, which line does it, and how that ends.
func (t *turn) slowed(h *hook, s *subjects.Subject, ev builtins.Event) {
	line, object, seen := "it", "", "it watches"
	if ev.Cause.Pos != "" {
		line = ev.Cause.Pos
	}
	if w := h.watches.Of(ev.Binding); w != nil {
		seen = fmt.Sprintf("the k8s.watch of %s sees", w.Decl.Pos)
		if ev.Name != "" {
			object = fmt.Sprintf("%s, which ", effect.Ref{Kind: w.Decl.Kind, Namespace: ev.Namespace, Name: ev.Name})
		}
	}
	object = cmp.Or(object, "what ")
	by, each := "", "it writes"
	if of := ev.Cause.Run; of != s.ID() {
		by, each = " by way of "+of, "each of the two writes"
	}
	why := fmt.Sprintf("wakes itself%s: %s writes %s%s, and %s something else each time, so it is slowed down; "+
		"write there only what follows from the snapshots, and only when it differs, or let the filter of that watch leave it out, or add events = [] to the watch, which then fills its snapshot and wakes nobody",
		by, line, object, seen, each)
	if why = s.Said(why); h.echoes.Of(s.ID()).Say(why) {
		t.do(Note{Level: builtins.LevelWarn, Module: h.module.name, Hook: h.gen.ID, Event: "HookWakesItself", Message: why})
	}
}
