package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/engine/releases"
)

// leads is the cause of what the run leads to. Only what comes by a watch can be made to wait:
// a release waits for the hooks of its stages.
func (r *run) leads() *effect.Cause {
	return r.cause.Then(r.subject.id(), slices.ContainsFunc(r.work.Events, causes.OfWatch), string(releases.StageOf(r.work.Events)))
}

// add queues events for the subject's next run. One without a result has its run when it gets
// one.
func (e *Engine) add(s *subject, order int, events ...builtins.Event) {
	l := s.hook.lane
	if s.lacks {
		return
	}
	l.Add(s.work(), order, events...)
	if !s.echo.Concerns(s.id(), events) {
		return
	}
	if ev, slowed := s.echo.Queue(s.id(), l.Pending(s.work()), e.now, e.opts.Jitter); slowed {
		e.slowed(s, ev)
	}
	l.Delay(s.work(), s.echo.Until())
}

// slowed says that a subject wakes itself.
func (e *Engine) slowed(s *subject, ev builtins.Event) {
	what := s.hook.writes(ev)
	why := fmt.Sprintf("wakes itself: it watches what it writes%s, and writes something else each time; it is slowed down. Have it write the same for the same snapshots", what)
	if by := ev.Cause.Run; by != s.id() {
		why = fmt.Sprintf("wakes itself by way of %s: it watches what that writes%s, and each writes something else each time; it is slowed down. Have each write the same for the same snapshots", by, what)
	}
	s.hook.echoing[s] = true
	if s.echo.Say(why) {
		e.do(Note{Level: builtins.LevelWarn, Module: s.hook.module.name, Hook: s.hook.gen.ID, Event: "HookWakesItself", Message: s.said(why)})
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

// rest has those forgotten that do not wake themselves any more.
func (h *hook) rest(now time.Time) {
	if len(h.echoing) == 0 { // next to always
		return
	}
	for s := range h.echoing {
		if s.gone || s.echo.Rest(now) {
			s.echo.Forget()
			delete(h.echoing, s)
		}
	}
}

// restsAt returns when it is time for that.
func (h *hook) restsAt() (at time.Time) {
	if len(h.echoing) == 0 {
		return at
	}
	for s := range h.echoing {
		if ends := s.echo.Ends(); !ends.IsZero() && (at.IsZero() || ends.Before(at)) {
			at = ends
		}
	}
	return at
}

// echoTrouble names the first subject of the hook that wakes itself, or "".
func (h *hook) echoTrouble() string {
	out := ""
	for s := range h.echoing {
		if text := s.said(s.echo.Why()); s.echo.Why() != "" && (out == "" || text < out) {
			out = text
		}
	}
	return out
}
