package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/lane"
)

// Runs that somebody asks for, and waits for the answer of: requests of http.receive, and calls.
// They are work of the hook's lane, and go first there. Reviews, which change nothing, are in
// review.go.

// maxWaitingRequests bounds how many requests wait for one hook.
const maxWaitingRequests = 100

// requested has a run wait in the lane of the hook, or says why there is none.
func (e *Engine) requested(in Requested) {
	h, err := e.answers(in.Hook)
	if err != nil {
		e.do(Respond{ID: in.ID, Err: err})
		return
	}
	var events []builtins.Event
	if in.Request != nil {
		events = append(events, builtins.Event{Type: "request", Binding: in.Request.Binding, Request: in.Request})
	}
	if err = h.takes(in.Key, events); err == nil && in.Request == nil {
		events = h.causes(in.Key) // its object is there
	}
	if n := h.lane.Asks(h.gen.ID); err == nil && n >= maxWaitingRequests {
		err = fmt.Errorf("%d requests wait for hook %s already: %w", n, h.gen.ID, ErrBusy)
	}
	if err != nil {
		e.do(Respond{ID: in.ID, Err: err})
		return
	}
	h.lane.Ask(lane.ID{Group: h.gen.ID, Key: in.Key, Ask: in.ID}, events...)
}

// takes says why no run of the hook answers such a request, or such a call.
func (h *hook) takes(key string, events []builtins.Event) error {
	in := requestOf(events)
	if in == nil {
		return h.callable(key)
	}
	if b := h.gen.Binding(in.Binding); b == nil || b.Receive == nil {
		return fmt.Errorf("hook %s takes no requests at %q", h.gen.ID, in.Binding)
	}
	return nil
}

// requestOf is what a run for these events answers; nil when that is no request.
func requestOf(events []builtins.Event) *builtins.Request {
	for _, ev := range events {
		if ev.Request != nil {
			return ev.Request
		}
	}
	return nil
}

// ErrBusy and ErrNotReady say why a request has no answer: too many wait, or the hook
// cannot run yet.
var (
	ErrBusy     = errors.New("try again later")
	ErrNotReady = errors.New("it does not answer now")
)

// answers returns the hook if it can answer requests now.
func (v *View) answers(id string) (*hook, error) {
	if !v.leads() {
		return nil, fmt.Errorf("hook %s: this starling does not hold the lease: %w", id, ErrNotReady)
	}
	name, _, _ := strings.Cut(id, "/")
	m := v.module(name)
	if m == nil || m.byKey[id] == nil {
		return nil, fmt.Errorf("there is no hook %s: %w", id, ErrNotReady)
	}
	h := m.byKey[id]
	if why := h.refusesRequests(); why != "" {
		return nil, fmt.Errorf("hook %s: %s: %w", id, why, ErrNotReady)
	}
	return h, nil
}

// refusesRequests says why the hook cannot answer requests now, or "".
func (h *hook) refusesRequests() string {
	switch m := h.module; {
	case h.gen.Session:
		return ""
	case m.life != up:
		return "module " + m.name + " is not running"
	case h.barred != "":
		return h.barred
	case !h.watches.Complete():
		return "its snapshots are not complete"
	}
	return ""
}

// refuseAsks answers all whose runs wait for a hook, when there is a reason why they do not run.
func (t *turn) refuseAsks(h *hook, why string) {
	if why == "" {
		return
	}
	for _, id := range h.lane.DropAsks(h.gen.ID) {
		t.do(Respond{ID: id, Err: fmt.Errorf("hook %s: %s: %w", h.gen.ID, why, ErrNotReady)})
	}
}

// responded answers whoever has asked for a run. Nobody tries it again but them.
func (t *turn) responded(r *asked, err error) {
	h, s := r.hook, r.subject
	t.do(Respond{ID: r.request, Response: r.done.Response, Err: err})
	switch {
	case err != nil:
		h.ran.Failures++
		if text := err.Error(); h.subjects.Answer(s, text) {
			t.do(Note{Level: builtins.LevelError, Module: h.module.name, Hook: h.gen.ID, Err: err, Message: s.Said(text) + " (the request failed)"})
		}
	case h.subjects.Answer(s, ""):
		t.note(builtins.LevelInfo, h.module, h.gen.ID, s.Said("runs again"))
	}
}

// serve tells the driver which hooks of a module answer requests, when that changed.
// A module whose fate is not known yet keeps the webhooks that it has, and so does one that stays though the tree
// switches it off.
func (t *turn) serve(m *module) {
	if !slices.ContainsFunc(m.hooks, (*hook).answersRequests) && !m.serves.any() {
		return
	}
	next := Serve{Module: m.gen}
	stays := t.globals.Stays != "" && m.verdict.Do == verdicts.Hold
	known := m.life != down || m.verdict.State == status.ModuleOff && !stays || m.verdict.Do == verdicts.Uninstall
	if m.life == up {
		for _, h := range m.hooks {
			switch {
			case !h.answersRequests():
			case h.barred != "", h.watches.Complete(): // for one that must not run its failure policy decides
				next.Hooks = append(next.Hooks, h.gen)
			default:
				next.Waits = append(next.Waits, h.gen)
			}
		}
	}
	if !known || m.serves.same(next) {
		return
	}
	m.serves = &next
	t.do(next)
}

// any says whether hooks answer, or may soon.
func (s *Serve) any() bool { return s != nil && len(s.Hooks)+len(s.Waits) > 0 }

// same says that there is no news. As long as all hooks wait, as at a start, nothing is known.
func (s *Serve) same(next Serve) bool {
	if s == nil {
		return len(next.Hooks) == 0 && len(next.Waits) > 0
	}
	return slices.Equal(s.Hooks, next.Hooks) && slices.Equal(s.Waits, next.Waits)
}

// answersRequests says whether a binding of the hook takes requests.
func (h *hook) answersRequests() bool {
	for i := range h.gen.Bindings {
		if h.gen.Bindings[i].Phase() != 0 {
			return true
		}
	}
	return false
}
