package engine

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/lane"
)

// called starts a run that somebody asks for: one of the hook as it is, with all that
// triggers it as its events, or of what a session's hook was given. The caller hears
// of a failure, and nobody tries it again.
func (e *Engine) called(in Requested) {
	h, err := e.callable(in)
	if err != nil {
		e.do(Respond{ID: in.ID, Err: err})
		return
	}
	if h.receiving {
		h.received = append(h.received, in)
		return
	}
	h.receiving = true
	work := lane.Work[builtins.Event]{Events: h.causes(in.Key), Attempt: 1}
	e.startRun(h, &run{hook: h, subject: h.subjects.At(in.Key), epoch: h.module.epoch, work: work, request: &in})
}

// callable returns the hook if it can run now, about that key.
func (e *Engine) callable(in Requested) (*hook, error) {
	h, err := e.answers(in.Hook)
	if err != nil {
		return nil, err
	}
	switch {
	case len(h.received) >= maxWaitingRequests:
		return nil, fmt.Errorf("%d requests wait for hook %s already: %w", len(h.received), h.gen.ID, ErrBusy)
	case h.gen.Fn == nil:
		return nil, fmt.Errorf("hook %s only converts objects", h.gen.ID)
	case !h.forEach() && in.Key != "":
		return nil, fmt.Errorf("hook %s has no for_each, so there is no run of it for %s", h.gen.ID, in.Key)
	case h.subjects.At(in.Key) == nil:
		var keys []string
		for _, s := range h.subjects.All() {
			keys = append(keys, s.Key)
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("hook %s runs for each object of %s, and there is none", h.gen.ID, h.gen.ForEach)
		}
		const shown = 10
		if more := len(keys) - shown; more > 0 {
			keys = append(keys[:shown], fmt.Sprintf("%d more", more))
		}
		return nil, fmt.Errorf("hook %s runs for each object of %s: say for which; there are %s", h.gen.ID, h.gen.ForEach, strings.Join(keys, ", "))
	}
	return h, nil
}

// causes are the events of a run that no event has caused: what the hook would see had
// everything that triggers it come at once.
func (h *hook) causes(key string) []builtins.Event {
	var out []builtins.Event
	for i := range h.gen.Bindings {
		switch b := &h.gen.Bindings[i]; {
		case b.Startup != nil:
			out = append(out, builtins.Event{Type: "startup", Binding: b.Name})
		case b.Schedule != nil:
			out = append(out, builtins.Event{Type: "schedule", Binding: b.Name})
		case b.Watch != nil && key != "" && b.Name == h.gen.ForEach:
			namespace, name := h.subjects.At(key).Name()
			out = append(out, builtins.Event{Type: "modified", Binding: b.Name, Namespace: namespace, Name: name})
		case b.Watch != nil:
			out = append(out, builtins.Event{Type: "sync", Binding: b.Name})
		}
	}
	return out
}
