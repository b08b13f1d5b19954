package engine

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// A call is a run of the hook as it is, with all that triggers it as its events, or of what a
// session's hook was given.

// callable says why a hook cannot run about a key.
func (h *hook) callable(key string) error {
	switch {
	case h.gen.Fn == nil:
		return fmt.Errorf("hook %s only converts objects", h.gen.ID)
	case !h.forEach() && key != "":
		return fmt.Errorf("hook %s has no for_each, so there is no run of it for %s", h.gen.ID, key)
	case h.subjects.At(key) == nil:
		var keys []string
		for _, s := range h.subjects.All() {
			keys = append(keys, s.Key)
		}
		if len(keys) == 0 {
			return fmt.Errorf("hook %s runs for each object of %s, and there is none", h.gen.ID, h.gen.ForEach)
		}
		return fmt.Errorf("hook %s runs for each object of %s: say for which; there are %s", h.gen.ID, h.gen.ForEach, some(keys))
	}
	return nil
}

// some are the first of many keys, for people.
func some(keys []string) string {
	const shown = 10
	if more := len(keys) - shown; more > 0 {
		keys = append(keys[:shown], fmt.Sprintf("%d more", more))
	}
	return strings.Join(keys, ", ")
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
