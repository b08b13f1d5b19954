package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// keptKind is a kind of what is kept for a module. To keep something more takes a line in [keptKinds].
type keptKind struct {
	prefix string // of its keys
	// adopt takes over what an earlier process has kept. It is not known when it is of a hook that the module does
	// not have, or has no more.
	adopt func(t *turn, m *module, data []byte) (known bool, err error)
	// follow makes what the one that leads has kept count on a standby; nil: a standby does not go by it.
	follow func(t *turn, m *module, data []byte) (known bool, err error)
	// forget makes nothing of it count for a subject any more; nil: it is of none.
	forget func(t *turn, m *module, s *subjects.Subject)
}

// keptKinds are all but the config, the order and upKey: their owners read those.
var keptKinds = []keptKind{
	{prefix: failedKey, adopt: func(*turn, *module, []byte) (known bool, err error) { return false, nil }},
	{prefix: messageKey, adopt: readMessage},
	{prefix: tickPrefix, adopt: readTick},
	{prefix: finalizers.Key, adopt: readFinalizer},
	{prefix: subjects.StateKey, adopt: readState, follow: readState, forget: forgetState},
	{prefix: subjects.LayerKey, adopt: readLayer, follow: followLayer, forget: forgetLayer},
}

// keptKindOf is the kind of a key; without functions if this version knows none.
func keptKindOf(key string) keptKind {
	for _, k := range keptKinds {
		if strings.HasPrefix(key, k.prefix) {
			return k
		}
	}
	return keptKind{}
}

// readKept takes over what an earlier process has kept for the module. A hook that is gone
// has taken its layer and its state away; what cannot be read counts as gone, too: its hook
// will set it again. Keys of a kind that this version does not know stay: a newer one, which may
// lead again, has kept them. So do keys of hooks that a newer tree may have, while the tree takes nothing away.
func (t *turn) readKept(m *module) error {
	var errs []error
	for key, data := range m.store.All() {
		kind := keptKindOf(key)
		if kind.adopt == nil {
			continue
		}
		known, err := kind.adopt(t, m, data)
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

// readLayer takes over the layer of a subject.
func readLayer(_ *turn, m *module, data []byte) (known bool, err error) {
	return m.keptLayer(data, func(s *subjects.Subject, layer []effect.ValueOp) { m.values.Keep(s.ID(), layer) })
}

func followLayer(t *turn, m *module, data []byte) (known bool, err error) {
	return m.keptLayer(data, func(s *subjects.Subject, layer []effect.ValueOp) { t.setLayer(m, s, layer, nil) })
}

func forgetLayer(t *turn, m *module, s *subjects.Subject) {
	if len(m.layer(s)) > 0 {
		t.setLayer(m, s, nil, nil)
	}
}

// keptLayer has take have the layer of a subject that is there.
func (m *module) keptLayer(data []byte, take func(*subjects.Subject, []effect.ValueOp)) (known bool, err error) {
	k, err := subjects.Decode[subjects.KeptLayer](data)
	s := m.subject(k.Of)
	if s == nil || err != nil {
		return false, err
	}
	layer, err := values.DecodeOps(k.Ops)
	if err == nil && m.gen.Global {
		_, _, err = values.SplitGlobal(layer) // from here on it holds for every layer
	}
	if err == nil {
		take(s, layer)
	}
	return err == nil, err
}

// readState takes over the state of a subject.
func readState(_ *turn, m *module, data []byte) (known bool, err error) {
	k, err := subjects.Decode[subjects.KeptState](data)
	s := m.subject(k.Of)
	if s == nil || err != nil {
		return false, err
	}
	s.Remember(effect.Memory{State: k.State, StateSecrets: k.Secrets})
	return true, nil
}

func forgetState(_ *turn, _ *module, s *subjects.Subject) { s.Remember(effect.Memory{}) }

// subject returns what something was kept of, or nil when that is no subject any more.
func (m *module) subject(of subjects.Of) *subjects.Subject {
	if h := m.byKey[of.Hook]; h != nil {
		return h.subjects.Kept(of.Key)
	}
	return nil
}

// forgetKept makes nothing count that is kept of a subject, and drops it.
func (t *turn) forgetKept(m *module, s *subjects.Subject) {
	for _, kind := range keptKinds {
		if kind.forget != nil {
			kind.forget(t, m, s)
		}
	}
	m.dropKept(s)
}

// dropKept keeps nothing of a subject any more.
func (m *module) dropKept(s *subjects.Subject) {
	for _, key := range s.Keys() {
		m.store.Put(key, nil)
	}
}

// forgetOff drops the layers, the states and the ticks of a module that is off for good, once it is gone. A no of
// enabled() stands without them: it may go by what they have set, and a yes would bring the module up to set the same
// again. Another no has enabled() asked anew once it holds no more.
func (e *Engine) forgetOff(m *module) {
	if m.verdict.Do != verdicts.Forget {
		return
	}
	disabled := m.answer().Says == verdicts.Disabled
	for _, h := range m.hooks {
		m.keepTicks(h.schedules, nil)
		for _, s := range h.subjects.All() {
			e.forgetKept(m, s)
		}
	}
	if e.showLayers(m); disabled {
		m.eval.version = m.values.Version()
		if !m.verdict.Asks {
			m.eval.version--
		}
	}
}
