package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Parents returns what the controllers of a module have decided about the parent of a key when they looked
// last. Errors: there is no such module, it has no controller, or none of them has such a parent.
func (e *Engine) Parents(module, key string) ([]status.Parent, error) {
	if e.gen == nil {
		return nil, errors.New("no controller works: it stands by, another process holds the lease")
	}
	m := e.module(module)
	if m == nil {
		return nil, e.noModule(module)
	}
	var out []status.Parent
	var controllers, keys []string
	for _, h := range m.hooks {
		if h.gen.Controller == nil {
			continue
		}
		controllers = append(controllers, h.gen.ID)
		s := h.subjects.At(key)
		if s == nil {
			for _, other := range h.subjects.All() {
				keys = append(keys, other.Key)
			}
			continue
		}
		p := status.Parent{Controller: h.gen.ID, Key: key, Failure: s.Why(), Waits: s.Waits(), Actions: []status.Action{}}
		for _, a := range s.Actions() {
			p.Actions = append(p.Actions, status.Action{Op: string(a.Op), Child: a.ID.String(), Part: a.Part, Why: a.Why})
		}
		out = append(out, p)
	}
	switch {
	case len(controllers) == 0:
		return nil, fmt.Errorf("module %s has no controller", module)
	case len(out) > 0:
		return out, nil
	case len(keys) == 0:
		return nil, fmt.Errorf("there is no parent %q: %s has none", key, strings.Join(controllers, ", "))
	}
	const shown = 10
	if more := len(keys) - shown; more > 0 {
		keys = append(keys[:shown], fmt.Sprintf("%d more", more))
	}
	return nil, fmt.Errorf("there is no parent %q; there are %s", key, strings.Join(keys, ", "))
}

// Actions returns what a controller has decided about a parent when it looked last; false: there is no such
// parent.
func (e *Engine) Actions(hook, key string) ([]reconcile.Action, bool) {
	for _, m := range e.everyone() {
		if h := m.byKey[hook]; h != nil {
			if s := h.subjects.At(key); s != nil {
				return s.Actions(), true
			}
		}
	}
	return nil, false
}
