package engine

import (
	"fmt"
	"slices"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/engine/releases"
	"github.com/starling-operator/starling/runtime/engine/subjects"
)

// leads is the cause of what a run for these events leads to, which something has brought about.
// Only what comes by a watch can be made to wait: a release waits for the hooks of its stages.
func leads(cause *effect.Cause, s *subjects.Subject, events []builtins.Event) *effect.Cause {
	return cause.Then(s.ID(), slices.ContainsFunc(events, causes.OfWatch), string(releases.StageOf(events)))
}

// add queues events for the subject's next run. One without a result has its run when it gets
// one.
func (e *Engine) add(h *hook, s *subjects.Subject, order int, events ...builtins.Event) {
	if s.Lacks() || e.standsBy() {
		return
	}
	h.lane.Add(work(s), order, events...)
	echo := h.echoes.Of(s.ID())
	if !echo.Concerns(s.ID(), events) {
		return
	}
	if ev, slowed := echo.Queue(s.ID(), h.lane.Pending(work(s)), e.now, e.opts.Jitter); slowed {
		h.echoes[s.ID()] = echo
		e.slowed(h, s, ev)
	}
	h.lane.Delay(work(s), echo.Until())
}

// slowed says that a subject wakes itself.
func (e *Engine) slowed(h *hook, s *subjects.Subject, ev builtins.Event) {
	what := h.writes(ev)
	why := fmt.Sprintf("wakes itself: it watches what it writes%s, and writes something else each time; it is slowed down. Have it write the same for the same snapshots", what)
	if by := ev.Cause.Run; by != s.ID() {
		why = fmt.Sprintf("wakes itself by way of %s: it watches what that writes%s, and each writes something else each time; it is slowed down. Have each write the same for the same snapshots", by, what)
	}
	if why = s.Said(why); h.echoes.Of(s.ID()).Say(why) {
		e.do(Note{Level: builtins.LevelWarn, Module: h.module.name, Hook: h.gen.ID, Event: "HookWakesItself", Message: why})
	}
}

// writes names the object of an event of one of the hook's watches.
func (h *hook) writes(ev builtins.Event) string {
	w := h.watches.Of(ev.Binding)
	if w == nil || ev.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", effect.Ref{Kind: w.Decl.Kind, Namespace: ev.Namespace, Name: ev.Name})
}
