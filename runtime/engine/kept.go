package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// readKept takes over what an earlier process has kept for the module. A hook that is gone
// has taken its layer and its state away; what cannot be read counts as gone, too: its hook
// will set it again. Keys of a kind that this version does not know stay: a newer one, which may
// lead again, has kept them. So do keys of hooks that a newer tree may have, while the tree takes nothing away.
func (t *turn) readKept(m *module) error {
	var errs []error
	for key, data := range m.store.All() {
		known, err := m.readKey(key, data)
		if err != nil {
			errs = append(errs, fmt.Errorf("what was kept as %s cannot be read: %w", key, err))
		}
		// While the module does not load, the hook may be in a file that cannot be read for now.
		if err != nil || !known && m.gen.Err == nil && t.globals.Stays == "" {
			m.store.Put(key, nil)
		}
	}
	return errors.Join(errs...)
}

// readKey takes over what was kept under one key. It is not known when it is of a hook that the module does not
// have, or has no more.
func (m *module) readKey(key string, data []byte) (known bool, err error) {
	switch {
	case key == upKey:
		return true, nil
	case m.gen.Global && (userconfig.IsKey(key) || key == orderKey):
		return true, nil
	case strings.HasPrefix(key, messageKey): // whichever hook has said it
		_, err := decodeMessage(data)
		return true, err
	case strings.HasPrefix(key, tickPrefix):
		return m.readTick(data)
	case strings.HasPrefix(key, finalizers.Key):
		return m.readFinalizer(data)
	case strings.HasPrefix(key, subjects.StateKey):
		return m.readState(data)
	case strings.HasPrefix(key, subjects.LayerKey):
		return m.readLayer(data)
	}
	return true, nil // whatever it is, it is of another version
}

// readLayer takes over the layer of a subject.
func (m *module) readLayer(data []byte) (known bool, err error) {
	s, layer, err := m.decodeLayer(data)
	if s == nil || err != nil {
		return false, err
	}
	m.values.Keep(s.ID(), layer)
	return true, nil
}

// decodeLayer reads the layer of a subject; nil: there is no such subject any more.
func (m *module) decodeLayer(data []byte) (*subjects.Subject, []effect.ValueOp, error) {
	k, err := subjects.DecodeLayer(data)
	if err != nil {
		return nil, nil, err
	}
	s := m.subject(k.Hook, k.Key)
	if s == nil {
		return nil, nil, nil
	}
	layer, err := values.DecodeOps(k.Ops)
	if err == nil && m.gen.Global {
		_, _, err = values.SplitGlobal(layer) // from here on it holds for every layer
	}
	return s, layer, err
}

// readState takes over the state of a subject.
func (m *module) readState(data []byte) (known bool, err error) {
	k, err := subjects.DecodeState(data)
	if err != nil {
		return false, err
	}
	s := m.subject(k.Hook, k.Key)
	if s == nil {
		return false, nil
	}
	s.Remember(effect.Memory{State: k.State, StateSecrets: k.Secrets})
	return true, nil
}

// subject returns what was kept under the id of a hook and a key, or nil when that is
// no subject any more.
func (m *module) subject(hook, key string) *subjects.Subject {
	if h := m.byKey[hook]; h != nil {
		return h.subjects.Kept(key)
	}
	return nil
}

// dropKept has nothing kept of a subject any more.
func (m *module) dropKept(s *subjects.Subject) {
	for _, key := range s.Keys() {
		m.store.Put(key, nil)
	}
}

// forgetOff drops what the hooks of a module that is off for good have set, once it is gone.
func (e *Engine) forgetOff(m *module) {
	if m.verdict.Do == verdicts.Forget {
		e.forgetLayers(m)
	}
}

// forgetLayers drops the layers, the states and the ticks of a module that is off for good. A no of enabled()
// stands without them: it may go by what they have set, and a yes would bring the module up to set the same again.
// Another no has enabled() asked anew once it holds no more.
func (e *Engine) forgetLayers(m *module) {
	disabled := m.answer().Says == verdicts.Disabled
	for _, h := range m.hooks {
		for _, t := range h.schedules {
			t.Forget()
			m.keepTick(t)
		}
		for _, s := range h.subjects.All() {
			s.Remember(effect.Memory{})
			if len(m.layer(s)) > 0 {
				e.setLayer(m, s, nil, nil)
			}
			m.dropKept(s)
		}
	}
	e.showLayers(m)
	switch {
	case !disabled:
	case m.verdict.Do == verdicts.Forget && !m.verdict.Asks:
		m.eval.version = m.values.Version() - 1
	default:
		m.eval.version = m.values.Version()
	}
}
