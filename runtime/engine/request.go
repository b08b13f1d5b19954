package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

// Request runs: somebody waits for the answer, so they run at once, beside the lanes.
// They may write, so those of one hook go one at a time: the next one sees what the last
// one has kept. Reviews, which change nothing, are in review.go.

// maxWaitingRequests bounds how many requests wait for one hook.
const maxWaitingRequests = 100

// requested starts the run that answers a request, or says why there is none.
func (e *Engine) requested(in Requested) {
	if in.Request == nil {
		e.called(in)
		return
	}
	h, err := e.answers(in.Hook)
	if err != nil {
		e.do(Respond{ID: in.ID, Err: err})
		return
	}
	b := h.gen.Binding(in.Request.Binding)
	if b == nil || b.Receive == nil {
		e.do(Respond{ID: in.ID, Err: fmt.Errorf("hook %s takes no requests at %q", h.gen.ID, in.Request.Binding)})
		return
	}
	if h.receiving {
		if len(h.received) >= maxWaitingRequests {
			e.do(Respond{ID: in.ID, Err: fmt.Errorf("%d requests wait for hook %s already: %w", len(h.received), h.gen.ID, ErrBusy)})
			return
		}
		h.received = append(h.received, in)
		return
	}
	h.receiving = true
	work := lane.Work[builtins.Event]{Events: []builtins.Event{{Type: "request", Binding: b.Name}}, Attempt: 1}
	e.startRun(h, &run{hook: h, subject: h.subjects.At(""), epoch: h.module.epoch, work: work, request: &in})
}

// ErrBusy and ErrNotReady say why a request has no answer: too many wait, or the hook
// cannot run yet.
var (
	ErrBusy     = errors.New("try again later")
	ErrNotReady = errors.New("it does not answer now")
)

// answers returns the hook if it can answer requests now.
func (e *Engine) answers(id string) (*hook, error) {
	if e.gen == nil {
		return nil, fmt.Errorf("hook %s: this starling does not hold the lease: %w", id, ErrNotReady)
	}
	name, _, _ := strings.Cut(id, "/")
	m := e.module(name)
	if m == nil || m.byKey[id] == nil {
		return nil, fmt.Errorf("there is no hook %s: %w", id, ErrNotReady)
	}
	h := m.byKey[id]
	if h.gen.Session {
		return h, nil
	}
	if why := h.refusesRequests(); why != "" {
		return nil, fmt.Errorf("hook %s: %s: %w", id, why, ErrNotReady)
	}
	return h, nil
}

// refusesRequests says why the hook cannot answer requests now, or "".
func (h *hook) refusesRequests() string {
	switch m := h.module; {
	case !m.started || m.leaving:
		return "module " + m.name + " is not running"
	case h.barred != "":
		return h.barred
	case !h.watches.Complete():
		return "its snapshots are not complete"
	}
	return ""
}

// responded ends a request run. Nobody tries it again but whoever asked.
func (e *Engine) responded(r *run, err error) {
	h, s := r.hook, r.subject
	e.do(Respond{ID: r.request.ID, Response: r.response, Err: err})
	switch {
	case err != nil:
		h.failures++
		if text := err.Error(); h.subjects.Answer(s, text) {
			e.do(Note{Level: builtins.LevelError, Module: h.module.name, Hook: h.gen.ID, Err: err, Message: s.Said(text) + " (the request failed)"})
		}
	case h.subjects.Answer(s, ""):
		e.note(builtins.LevelInfo, h.module, h.gen.ID, s.Said("runs again"))
	}
	e.receiveNext(h)
	e.touch(h.module)
}

// receiveNext starts the request that waits longest.
func (e *Engine) receiveNext(h *hook) {
	h.receiving = false
	waiting := h.received
	h.received = nil
	for i, in := range waiting {
		if h.receiving {
			h.received = append(h.received, waiting[i:]...)
			return
		}
		e.requested(in)
	}
}

// serve tells the driver which hooks of a module answer requests, when that changed.
// A module whose fate is not known yet keeps the webhooks that it has.
func (e *Engine) serve(m *module) {
	if !slices.ContainsFunc(m.hooks, (*hook).answersRequests) && len(m.serves) == 0 {
		return
	}
	var hooks []*generation.Hook
	known := m.started || m.verdict.State == status.ModuleOff || m.verdict.Do == verdicts.Uninstall
	if m.started && !m.leaving {
		for _, h := range m.hooks {
			if !h.answersRequests() {
				continue
			}
			if !h.watches.Complete() || h.barred != "" {
				known = known && h.barred != ""
				continue
			}
			hooks = append(hooks, h.gen)
		}
	}
	if !known || m.served && slices.Equal(hooks, m.serves) {
		return
	}
	m.serves, m.served = hooks, true
	e.do(Serve{Module: m.gen, Hooks: hooks})
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
