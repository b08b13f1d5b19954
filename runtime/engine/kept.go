package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
)

// keptLayer is what stands in a Secret for the layer of one hook.
type keptLayer struct {
	Hook string `json:"hook"`
	// Key is the object, with for_each.
	Key string          `json:"key,omitempty"`
	Ops json.RawMessage `json:"ops"`
}

// keptState is what stands in a Secret for the state of one hook.
type keptState struct {
	Hook  string         `json:"hook"`
	Key   string         `json:"key,omitempty"`
	State map[string]any `json:"state"`
	// Secrets are the paths inside State at which secret texts stand.
	Secrets [][]string `json:"secrets,omitempty"`
}

const (
	layerPrefix = "layer."
	statePrefix = "state."
)

// keptKey is a Secret key for a hook or a binding: readable, and unique by its hash.
func keptKey(prefix, id string) string {
	sum := sha256.Sum256([]byte(id))
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, id)
	if len(readable) > 100 {
		readable = readable[:100]
	}
	return prefix + readable + "." + hex.EncodeToString(sum[:6])
}

// readKept takes over what an earlier process has kept for the module. A hook that is gone
// has taken its layer and its state away; what cannot be read counts as gone, too: its hook
// will set it again.
func (m *module) readKept() error {
	var errs []error
	for key, data := range m.store.All() {
		known, err := m.readKey(key, data)
		if err != nil {
			errs = append(errs, fmt.Errorf("what was kept as %s cannot be read: %w", key, err))
		}
		// While the module does not load, the hook may be in a file that cannot be read for now.
		if err != nil || !known && m.gen.Err == nil {
			m.store.Put(key, nil)
		}
	}
	return errors.Join(errs...)
}

// readKey takes over what was kept under one key. It is not known when nothing of the module
// has kept it, or it has gone since.
func (m *module) readKey(key string, data []byte) (known bool, err error) {
	switch {
	case key == upKey:
		return true, nil
	case m.gen.Global && (userconfig.IsKey(key) || key == orderKey):
		return true, nil
	case strings.HasPrefix(key, tickPrefix):
		return m.readTick(data)
	case strings.HasPrefix(key, finalizers.Key):
		return m.readFinalizer(data)
	case strings.HasPrefix(key, statePrefix):
		return m.readState(data)
	case strings.HasPrefix(key, layerPrefix):
		return m.readLayer(data)
	}
	return false, nil
}

// readLayer takes over the layer of a subject.
func (m *module) readLayer(data []byte) (known bool, err error) {
	var k keptLayer
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	s := m.subject(k.Hook, k.Key)
	if s == nil {
		return false, nil
	}
	layer, err := values.DecodeOps(k.Ops)
	if err == nil && m.gen.Global {
		_, _, err = values.SplitGlobal(layer) // from here on it holds for every layer
	}
	if err != nil {
		return false, err
	}
	m.values.Keep(s.id(), layer)
	return true, nil
}

// readState takes over the state of a subject.
func (m *module) readState(data []byte) (known bool, err error) {
	var k keptState
	// Integers stay integers, as the hook has set them.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &k); err != nil {
		return false, err
	}
	s := m.subject(k.Hook, k.Key)
	if s == nil {
		return false, nil
	}
	s.state, s.stateSecrets = k.State, k.Secrets
	return true, nil
}

// subject returns what was kept under the id of a hook and a key, or nil when that is
// no subject any more. Objects are not known yet: those that are gone are forgotten as
// the watch syncs.
func (m *module) subject(hook, key string) *subject {
	h := m.byKey[hook]
	switch {
	case h == nil || h.forEach() != (key != ""):
		return nil
	case key == "":
		return h.subject
	}
	return h.object(splitKey(key))
}

// subjectKeys are the keys of what is kept of one subject.
type subjectKeys struct{ layer, state string }

func (s *subject) keptKeys() *subjectKeys {
	if s.keys == nil {
		s.keys = &subjectKeys{keptKey(layerPrefix, s.id()), keptKey(statePrefix, s.id())}
	}
	return s.keys
}

// dropKept has nothing kept of a subject any more.
func (s *subject) dropKept() {
	store, keys := s.hook.module.store, s.keptKeys()
	store.Put(keys.layer, nil)
	store.Put(keys.state, nil)
}

// encode is what is kept of a subject with this layer and this state.
func (s *subject) encode(layer []effect.ValueOp, state map[string]any, secrets [][]string) (persist.Change, error) {
	keys := s.keptKeys()
	change := persist.Change{keys.layer: nil, keys.state: nil}
	if len(state) > 0 {
		data, err := json.Marshal(keptState{s.hook.gen.ID, s.key, state, secrets})
		if err != nil {
			return nil, err
		}
		change[keys.state] = data
	}
	if len(layer) > 0 {
		ops, err := values.EncodeOps(layer)
		if err != nil {
			return nil, err
		}
		// Not json.Marshal: it would write < and > in another way than EncodeOps, and what is
		// kept should read as it was set.
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(keptLayer{Hook: s.hook.gen.ID, Key: s.key, Ops: ops}); err != nil {
			return nil, err
		}
		change[keys.layer] = bytes.TrimSpace(b.Bytes())
	}
	for _, data := range change {
		if len(data) > effect.MaxKept { // which would have the writes of other runs fail, too
			return nil, fmt.Errorf("what it sets or remembers has %d KiB, more than the %d KiB that fit into a Secret: set less", len(data)>>10, effect.MaxKept>>10)
		}
	}
	return change, nil
}

// forgetLayers drops the layers, the states and the ticks of a module that is off for good.
func (e *Engine) forgetLayers(m *module) {
	for _, h := range m.hooks {
		for _, t := range h.schedules {
			t.Forget()
			m.keepTick(t)
		}
		for s := range h.subjects {
			s.state, s.stateSecrets = nil, nil
			if len(s.layer()) > 0 {
				e.setLayer(s, nil, nil)
			}
			s.dropKept()
		}
	}
	e.showLayers(m)
}
