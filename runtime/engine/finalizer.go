package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// finalizerOf is the finalizer of a hook's cleanup; the name is "" without one.
func (g *ground) finalizerOf(h *hook) finalizers.Finalizer {
	if !h.cleans() {
		return finalizers.Finalizer{}
	}
	w := h.eachWatch().Decl
	return finalizers.Finalizer{
		Hook: h.gen.ID, APIVersion: w.APIVersion, Kind: w.Kind,
		Name: finalizers.Name(g.opts.Namespace, g.opts.Name, h.module.name, h.gen.ID),
		Owns: finalizers.JoinKinds(h.gen.Owned()),
	}
}

// former are watches of children of kinds that a controller owned before: nobody wants them any more, and
// somebody has to delete them.
func (m *module) former(g *generation.Hook) (out []builtins.Binding) {
	f, there := m.finalizers.Of(g.ID)
	if g.Controller == nil || !there {
		return nil
	}
	var groups []string
	for i := range g.Bindings {
		groups = append(groups, g.Bindings[i].Name)
	}
	for _, text := range f.Kinds() {
		text, fields := strings.CutPrefix(text, builtins.FieldsBinding)
		at := strings.LastIndexByte(text, '/')
		kind := reconcile.Kind{APIVersion: text[:max(at, 0)], Kind: text[at+1:]}
		b := builtins.ChildrenOf(kind, g.Pos)
		if fields {
			b = builtins.FieldsOf(kind, g.Pos)
		}
		if !slices.Contains(groups, b.Name) { // in another version it is the same kind
			b.Watch.Former = true
			out = append(out, b)
			groups = append(groups, b.Name)
		}
	}
	return out
}

// readFinalizer takes over one that was kept.
func readFinalizer(_ *turn, m *module, data []byte) (known bool, err error) {
	f, err := finalizers.Decode(data)
	if err == nil {
		m.finalizers.Adopt(f)
	}
	return err == nil, err
}

// keepFinalizer keeps that of a hook, if there is one.
func (m *module) keepFinalizer(hook string) {
	var data []byte
	if f, there := m.finalizers.Of(hook); there {
		data = f.Encode()
	}
	m.store.Put(object.DataKey(finalizers.Key, hook), data)
}

// willHold has the finalizer of a hook kept before it is used.
func (t *turn) willHold(h *hook) {
	if want := t.finalizerOf(h); want.Name != "" && h.module.finalizers.Want(want) {
		h.module.keepFinalizer(h.gen.ID)
	}
}

// remembersFinalizer says whether a hook with a cleanup may run: its finalizer is kept.
func (m *module) remembersFinalizer(h *hook) bool {
	if !h.cleans() {
		return true
	}
	w := h.eachWatch().Decl
	return m.finalizers.Usable(finalizers.Finalizer{Hook: h.gen.ID, APIVersion: w.APIVersion, Kind: w.Kind}) &&
		m.store.Stands(object.DataKey(finalizers.Key, h.gen.ID))
}

// stepFinalizers takes finalizers off what nobody cleans up any more.
func (t *turn) stepFinalizers(m *module) {
	for _, sweep := range m.finalizers.Begin(t.now, func(f finalizers.Finalizer) finalizers.Reason { return t.unholds(m, f) }) {
		a := Unhold{Module: m.name, Hook: sweep.Hook, APIVersion: sweep.APIVersion, Kind: sweep.Kind, Finalizer: sweep.Name}
		if sweep.Reason == finalizers.Unwatched {
			h := m.byKey[sweep.Hook]
			a.Watch = h.eachWatch().ID
			a.Cleans = h.gen.Cleanup == nil // a controller does, by the object alone, whatever its row was
			for _, w := range h.watches {
				if a.Cleans && !h.isEach(w) && w.Decl.Read == "" {
					a.Children = append(a.Children, w.ID)
				}
			}
		}
		a.Op = t.op()
		t.ask(m, a)
	}
}

// watchFormer adds the watches of kinds that a controller owned before.
func (h *hook) watchFormer() {
	for _, b := range h.module.former(h.gen) {
		if h.watches.Of(b.Name) == nil {
			h.watches = append(h.watches, watches.New(b.Name, b.Watch))
		}
	}
}

// unholds says for what reason a finalizer may be taken off objects.
func (g *ground) unholds(m *module, f finalizers.Finalizer) finalizers.Reason {
	h, useless := m.byKey[f.Hook], m.broken == ""
	if h != nil {
		own := g.finalizerOf(h)
		own.Owns = f.Owns // whatever kinds the hook has owned
		useless = own != f
	}
	switch {
	case m.mayHold(f.Hook), g.globals.Stays != "" && (h == nil || !h.cleans()):
	case useless, m.verdict.Do == verdicts.Forget && m.life == down, m.verdict.Do == verdicts.GiveBack:
		return finalizers.Useless
	case h != nil && m.life != down && h.watches.Complete() && h.eachWatch().Served():
		return finalizers.Unwatched
	}
	return finalizers.None
}

func (t *turn) unheld(m *module, asked asked, in Unheld) {
	a := asked.action.(Unhold)
	failed, gone := m.finalizers.End(t.now, a.Hook, in.Err, t.opts.Jitter)
	if failed == 1 {
		why := fmt.Sprintf("finalizer %s of %s objects: %v; tried again", a.Finalizer, a.Kind, in.Err)
		t.note(builtins.LevelWarn, m, a.Hook, why)
	}
	h := m.byKey[a.Hook]
	works := h != nil && m.life != down
	if works {
		for _, o := range in.Unwatched { // the watch stopped to select it while nobody looked
			if s := h.subjects.Unwatched(o.Namespace, o.Name, o.Object); s != nil {
				t.add(h, s, lane.Unordered, builtins.Event{Type: "deleted", Binding: h.gen.ForEach, Namespace: o.Namespace, Name: o.Name})
			}
		}
	}
	if gone {
		m.keepFinalizer(a.Hook)
		if works {
			t.willHold(h)
		}
	}
}

// held adds to the writes of a run what has to be done about the finalizer: before the
// first write for an object that has none, after the last one of a cleanup. A parent gets it before its first
// child, unless there is a function that cleans up.
func (t *turn) held(r *asked) []effect.Write {
	writes := r.done.Effects.Writes
	f := t.finalizerOf(r.hook)
	if f.Name == "" {
		return writes
	}
	write := effect.Write{Kind: effect.WriteAddFinalizer, Ref: effect.Ref{APIVersion: f.APIVersion, Kind: f.Kind}, Finalizer: f.Name, Pos: r.hook.gen.Pos}
	write.Ref.Namespace, write.Ref.Name = r.subject.Name()
	switch {
	case r.call().Cleanup && (r.done.Waits != "" || r.done.Err != nil):
	case r.call().Cleanup:
		write.Kind = effect.WriteRemoveFinalizer
		return append(slices.Clip(writes), write)
	case r.hook.gen.Cleanup == nil && !r.hook.gen.AsksCleanup() && !r.done.Children:
	case r.subject.Hold():
		return append([]effect.Write{write}, writes...)
	}
	return writes
}

// mayHold says whether a run is under way that counts for nothing any more: its commit may put the finalizer of the
// hook on an object, and nobody would take it off after a sweep. The hook may be gone, or another one in its place.
func (m *module) mayHold(id string) bool {
	for r := range m.runs() {
		if r.hook.gen.ID == id && r.outdated() {
			return true
		}
	}
	return false
}
