package builtins

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// hook(for_each=): one run an object.

const (
	defaultParallel = 4
	maxParallel     = 100
)

// forEach reads for_each=, parallel= and cleanup= into a hook whose bindings are
// known.
func (c *call) forEach(h *HookDecl) (err error) {
	if c.Arg("for_each") == nil {
		for _, name := range []string{"parallel", "cleanup"} {
			if c.Arg(name) != nil {
				return fmt.Errorf("%s: means nothing without for_each", name)
			}
		}
		if b := waking(h.Bindings); b != nil {
			return fmt.Errorf("wakes: of watch %q: means nothing without for_each", b.Name)
		}
		return nil
	}
	h.ForEach = c.Str("for_each")
	if err := checkEach(h); err != nil {
		return fmt.Errorf("for_each: %w", err)
	}
	h.Parallel = c.IntOr("parallel", defaultParallel)
	if h.Parallel < 1 || h.Parallel > maxParallel {
		return fmt.Errorf("parallel: got %d, want 1 to %d", h.Parallel, maxParallel)
	}
	h.Cleanup, err = c.function("cleanup", takesCtx)
	return err
}

// waking returns the first binding with wakes=, or nil.
func waking(bindings []Binding) *Binding {
	for i := range bindings {
		if w := bindings[i].Watch; w != nil && (w.Wakes != nil || w.WakesAll) {
			return &bindings[i]
		}
	}
	return nil
}

func checkEach(h *HookDecl) error {
	var watches []string
	for _, b := range h.Bindings {
		switch {
		case b.Watch != nil:
			watches = append(watches, b.Name)
		case b.Schedule != nil && b.Schedule.CatchUp:
			return errors.New("missed = \"once\" is for hooks without it: each object has a first run after a start anyway")
		case b.Schedule == nil:
			return fmt.Errorf("%s is for hooks without it; beside watches there may be schedule(…)", b.Name)
		}
	}
	if i := slices.IndexFunc(h.Bindings, func(b Binding) bool { return b.Watch != nil && b.Name == h.ForEach }); i >= 0 {
		if waking(h.Bindings[i:i+1]) != nil {
			return fmt.Errorf("the watch %q has wakes=: an event of an object of for_each is for that object; wakes= is for the other watches", h.ForEach)
		}
		return nil
	}
	hint := message.DidYouMean(h.ForEach, watches, "its watches are "+strings.Join(watches, ", "))
	if len(watches) == 0 {
		hint = "it has none"
	}
	return fmt.Errorf("the hook has no watch %q (%s)", spec.Clip(h.ForEach), hint)
}
