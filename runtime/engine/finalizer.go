package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// Finalizers of hooks with a cleanup. One that nobody takes off keeps its object for
// ever, so what was put where is kept before the first one is.

// finalizerPrefix begins every finalizer of Starling.
const finalizerPrefix = "starling.dev/"

// Finalizer is what is kept of the finalizer of one hook.
type Finalizer struct {
	Hook       string `json:"hook"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"finalizer"`
}

const finalizerKey = "cleanup."

// kind is the kind of its objects, in any version.
func (f Finalizer) kind() effect.Ref {
	return anyVersion(effect.Ref{APIVersion: f.APIVersion, Kind: f.Kind})
}

// finalizer is a [Finalizer] of a module.
type finalizer struct {
	Finalizer
	swept   bool // objects that the hook does not watch any more are without it
	running bool
	off     bool // it is being taken off all objects
	attempt int
	next    time.Time
}

// Finalizers reads those of a module from what was kept for it.
func Finalizers(kept map[string][]byte) []Finalizer {
	var out []Finalizer
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if f, err := finalizerIn(kept[key]); strings.HasPrefix(key, finalizerKey) && err == nil {
			out = append(out, f)
		}
	}
	return out
}

func finalizerIn(data []byte) (f Finalizer, err error) {
	if err := json.Unmarshal(data, &f); err != nil {
		return f, err
	}
	if !strings.HasPrefix(f.Name, finalizerPrefix) {
		return f, fmt.Errorf("%q is no finalizer of Starling", f.Name)
	}
	return f, nil
}

// finalizerOf is the finalizer of a hook's cleanup; the name is "" without one. It
// holds the module's name for people, and tells instances and hooks apart.
func (e *Engine) finalizerOf(h *hook) Finalizer {
	if h.gen.Cleanup == nil {
		return Finalizer{}
	}
	sum := sha256.Sum256([]byte(e.opts.Namespace + "/" + e.opts.Name + "/" + h.gen.ID))
	module := h.module.name[:min(len(h.module.name), 40)]
	w := h.eachWatch().decl
	return Finalizer{
		Hook: h.gen.ID, APIVersion: w.APIVersion, Kind: w.Kind,
		Name: finalizerPrefix + strings.TrimRight(module, "-") + "-" + hex.EncodeToString(sum[:5]),
	}
}

// readFinalizer takes over one that was kept.
func (m *module) readFinalizer(data []byte) (known bool, err error) {
	f, err := finalizerIn(data)
	if err != nil {
		return false, err
	}
	if m.finalizers[f.Hook] == nil {
		m.finalizers[f.Hook] = &finalizer{Finalizer: f}
	}
	return true, nil
}

// keepFinalizer keeps that of a hook, if there is one.
func (m *module) keepFinalizer(hook string) {
	var data []byte
	if f := m.finalizers[hook]; f != nil {
		data, _ = json.Marshal(f.Finalizer) // texts
	}
	m.store.Put(keptKey(finalizerKey, hook), data)
}

// willHold has the finalizer of a hook kept before it is used.
func (e *Engine) willHold(h *hook) {
	want := e.finalizerOf(h)
	if want.Name == "" {
		return
	}
	if f := h.module.finalizers[h.gen.ID]; f != nil {
		f.swept = false
		if f.Finalizer == want {
			return
		}
		if f.Finalizer.Name == want.Name && f.kind() != want.kind() {
			return // first it goes from the objects of the old kind
		}
	}
	h.module.finalizers[h.gen.ID] = &finalizer{Finalizer: want}
	h.module.keepFinalizer(h.gen.ID)
}

// remembersFinalizer says whether a hook with a cleanup may run: its finalizer is kept.
func (m *module) remembersFinalizer(h *hook) bool {
	if h.gen.Cleanup == nil {
		return true
	}
	f := m.finalizers[h.gen.ID]
	w := h.eachWatch().decl
	return f != nil && m.store.Stands(keptKey(finalizerKey, h.gen.ID)) && !f.off && f.kind() == Finalizer{APIVersion: w.APIVersion, Kind: w.Kind}.kind()
}

// stepFinalizers takes finalizers off what nobody cleans up any more.
func (e *Engine) stepFinalizers(m *module) {
	for _, id := range slices.Sorted(maps.Keys(m.finalizers)) {
		f, h := m.finalizers[id], m.byKey[id]
		if f.running || f.next.After(e.now) {
			continue
		}
		useless := h == nil && m.broken == "" || h != nil && e.finalizerOf(h) != f.Finalizer
		a := Unhold{Module: m.name, Hook: id, APIVersion: f.APIVersion, Kind: f.Kind, Finalizer: f.Name}
		switch {
		case useless, m.verdict.Forget && !m.started:
			if e.mayHold(m, id) {
				continue
			}
		case h != nil && m.started && !f.swept && h.complete() && h.eachWatch().served:
			a.Watch = h.eachWatch().id
		default:
			continue
		}
		f.running, f.off = true, a.Watch == ""
		a.Op = e.ask(func(in Input) { e.unheld(m, f, a.Watch != "", in.(Unheld).Err) })
		e.do(a)
	}
}

func (e *Engine) unheld(m *module, f *finalizer, swept bool, err error) {
	f.running, f.off = false, false
	e.touch(m)
	switch {
	case err != nil:
		f.attempt++
		delay := releaseRetry.Delay(f.attempt, e.opts.Jitter())
		f.next = e.now.Add(delay)
		if f.attempt == 1 {
			e.note(builtins.LevelWarn, m, f.Hook, fmt.Sprintf("finalizer %s of %s objects: %v; tried again", f.Name, f.Kind, err))
		}
	case swept:
		f.swept, f.attempt, f.next = true, 0, time.Time{}
	default:
		delete(m.finalizers, f.Hook)
		m.keepFinalizer(f.Hook)
		if h := m.byKey[f.Hook]; h != nil && m.started {
			e.willHold(h)
		}
	}
}

// held adds to the writes of a run what has to be done about the finalizer: before the
// first write for an object that has none, after the last one of a cleanup.
func (e *Engine) held(r *run) []effect.Write {
	s, writes := r.subject, r.effects.Writes
	f := e.finalizerOf(r.hook)
	if f.Name == "" {
		return writes
	}
	write := effect.Write{Kind: effect.WriteAddFinalizer, Ref: s.ref(), Finalizer: f.Name, Pos: r.hook.gen.Pos}
	switch {
	case r.cleanup:
		write.Kind = effect.WriteRemoveFinalizer
		return append(slices.Clip(writes), write)
	case !s.held:
		s.mayHold = true
		return append([]effect.Write{write}, writes...)
	}
	return writes
}

// finalizerWake returns when a finalizer is tried again.
func (m *module) finalizerWake(now time.Time) (at time.Time) {
	for _, f := range m.finalizers {
		if f.next.After(now) && (at.IsZero() || f.next.Before(at)) {
			at = f.next
		}
	}
	return at
}

// running says whether a run of the hook, or its commit, is under way.
func (e *Engine) running(h *hook) bool {
	for _, r := range e.runs {
		if r.hook == h {
			return true
		}
	}
	return false
}

// mayHold says whether something is under way that may put the finalizer of a hook on an
// object. The hook may be gone, or another one in its place.
func (e *Engine) mayHold(m *module, id string) bool {
	for _, r := range e.runs {
		if r.hook.module == m && r.hook.gen.ID == id {
			return true
		}
	}
	return false
}
