package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Parents returns what the controllers of a module have decided about the parent of a key when they looked
// last. Errors: there is no such module, it has no controller, or none of them has such a parent.
func (v *View) Parents(module, key string) ([]status.Parent, error) {
	if !v.leads() {
		return nil, errors.New("no controller works: it stands by, another process holds the lease")
	}
	m := v.module(module)
	if m == nil {
		return nil, v.noModule(module)
	}
	var out []status.Parent
	var controllers, keys []string
	for _, h := range m.hooks {
		if !h.gen.Decides() {
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
		p := status.Parent{Controller: h.gen.ID, Key: key, Failure: s.Why(), Waits: s.Outcome().Waits, Actions: []status.Action{}}
		p.Looked = h.lookedAt(key)
		if of := h.observer().subjects.At(key); of != nil {
			p.Failure, p.Waits = cmp.Or(p.Failure, of.Why()), cmp.Or(p.Waits, of.Outcome().Waits)
			if o := of.Outcome().Observed; o != nil {
				p.Observed, p.ObservedAt = o.Value, &o.At
			}
		}
		if at := v.agenda.At(work(s)); !at.IsZero() {
			p.Next = &at
		}
		for _, a := range s.Outcome().Actions {
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
	return nil, fmt.Errorf("there is no parent %q; there are %s", key, some(keys))
}

// lookedAt says where the last look at a parent has looked. A value of an index may come out of a Secret, or out
// of the values, if these were looked at.
func (h *hook) lookedAt(key string) (out []string) {
	lookups := h.lookups.Of(key)
	hide := slices.ContainsFunc(lookups, func(l effect.Lookup) bool { return l.Watch == "" }) ||
		slices.ContainsFunc(h.gen.Bindings, func(b builtins.Binding) bool {
			return b.Watch != nil && b.Watch.Kind == "Secret" && (b.Watch.Read != "" || b.Name == h.gen.ForEach)
		})
	for _, l := range lookups {
		out = append(out, builtins.LookupText(l, hide))
	}
	return out
}

// Actions returns what a controller has decided about a parent when it looked last; false: there is no such
// parent.
func (v *View) Actions(hook, key string) ([]reconcile.Action, bool) {
	if m := v.moduleOf(hook); m != nil && m.byKey[hook] != nil {
		if s := m.byKey[hook].subjects.At(key); s != nil {
			return s.Outcome().Actions, true
		}
	}
	return nil, false
}
