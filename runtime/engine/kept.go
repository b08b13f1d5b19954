package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
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

// readKept takes the layers of the module's hooks from what was kept. A hook that
// is gone has taken its layer away; what cannot be read counts as gone too, its hook
// will set it again.
func (m *module) readKept(kept map[string][]byte) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		data := kept[key]
		switch {
		case strings.HasPrefix(key, tickPrefix):
			errs = append(errs, m.readTick(key, data))
		case key == upKey:
			m.up, m.upKept = true, true
		case strings.HasPrefix(key, statePrefix):
			errs = append(errs, m.readState(key, data))
		}
		if !strings.HasPrefix(key, layerPrefix) {
			continue
		}
		var k keptLayer
		err := json.Unmarshal(data, &k)
		s := m.subject(k.Hook, k.Key)
		if err == nil && s == nil {
			m.keepOrphan(key, data)
			continue
		}
		if err == nil {
			err = s.readLayer(data, k.Ops)
		}
		if err != nil {
			m.stale = true
			errs = append(errs, fmt.Errorf("what was kept as %s cannot be read: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// readLayer takes over the layer of a subject from what was kept.
func (s *subject) readLayer(data, encoded []byte) error {
	layer, err := values.DecodeOps(encoded)
	if err == nil && s.hook.module.gen.Global {
		_, _, err = values.SplitGlobal(layer) // from here on it holds for every layer
	}
	if err != nil {
		return err
	}
	s.keep(layerPrefix, data)
	s.layer = layer
	return nil
}

// keepOrphan keeps the state of a hook that is not there only while the module does not
// load: the hook may be in a file that cannot be read for now. Else it drops the state.
func (m *module) keepOrphan(key string, data []byte) {
	if m.gen.Err != nil {
		m.kept[key] = data
	} else {
		m.stale = true
	}
}

// subject returns what was kept under the id of a hook and a key, or nil when that is
// no subject any more. Objects are not known yet: those that are gone are forgotten as
// the watch syncs.
func (m *module) subject(hook, key string) *subject {
	h := m.byKey[hook]
	switch {
	case h == nil || (h.each != nil) != (key != ""):
		return nil
	case key == "":
		return h.subject
	}
	return h.object(splitKey(key))
}

// readState takes the state of a hook from what was kept.
func (m *module) readState(key string, data []byte) error {
	var k keptState
	// Integers stay integers, as the hook has set them.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &k); err != nil {
		m.stale = true
		return fmt.Errorf("the state of a hook that was kept cannot be read: %w", err)
	}
	if s := m.subject(k.Hook, k.Key); s != nil {
		s.state, s.stateSecrets = k.State, k.Secrets
		s.keep(statePrefix, data)
	} else {
		m.keepOrphan(key, data)
	}
	return nil
}

// keeping is the kept state of one subject, as it is written; nil: nothing.
type keeping struct {
	subject      *subject
	layer, state []byte
}

// subjectKeys are the keys of what is kept of one subject.
type subjectKeys struct{ layer, state string }

func (s *subject) keptKeys() *subjectKeys {
	if s.keys == nil {
		s.keys = &subjectKeys{keptKey(layerPrefix, s.id()), keptKey(statePrefix, s.id())}
	}
	return s.keys
}

// keep notes what stands in the Secret for the layer or the state of a subject; nil:
// nothing.
func (s *subject) keep(prefix string, data []byte) {
	key := s.keptKeys().layer
	if prefix == statePrefix {
		key = s.keptKeys().state
	}
	putKept(s.hook.module.kept, key, data)
}

// put makes the change in what is kept.
func (k keeping) put(kept map[string][]byte) {
	keys := k.subject.keptKeys()
	putKept(kept, keys.layer, k.layer)
	putKept(kept, keys.state, k.state)
}

func putKept(kept map[string][]byte, key string, data []byte) {
	if data == nil {
		delete(kept, key)
	} else {
		kept[key] = data
	}
}

// encode returns the kept state of a subject with this layer and this state.
func (s *subject) encode(layer []effect.ValueOp, state map[string]any, secrets [][]string) (keeping, error) {
	k := keeping{subject: s}
	if len(state) > 0 {
		data, err := json.Marshal(keptState{s.hook.gen.ID, s.key, state, secrets})
		if err != nil {
			return k, err
		}
		k.state = data
	}
	if len(layer) == 0 {
		return k, nil
	}
	data, err := values.EncodeOps(layer)
	if err != nil {
		return k, err
	}
	// Not json.Marshal: it would write < and > in another way than
	// EncodeOps, and what is kept should read as it was set.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(keptLayer{Hook: s.hook.gen.ID, Key: s.key, Ops: data}); err != nil {
		return k, err
	}
	k.layer = bytes.TrimSpace(b.Bytes())
	return k, nil
}

// kept returns the kept state of a module once these changes count. The
// result is never nil.
func (e *Engine) kept(m *module, changes ...keeping) (map[string][]byte, error) {
	out := maps.Clone(m.kept)
	for _, h := range m.hooks {
		if err := h.keepTicks(out); err != nil {
			return nil, err
		}
	}
	for _, k := range changes {
		if !k.subject.gone {
			k.put(out)
		}
	}
	if err := m.keepFinalizers(out); err != nil {
		return nil, err
	}
	if m.up {
		out[upKey] = []byte("true")
	}
	if m == e.global {
		if err := keepConfig(e.config.accepted, out); err != nil {
			return nil, err
		}
		if len(e.places) > 0 {
			out[orderKey] = e.places
		}
	}
	return out, nil
}

// save writes what is kept again when that changed outside a commit: with it go the
// states of the runs that have nothing else to be kept. Commits that would write the
// same Secret wait meanwhile.
func (e *Engine) save(m *module) {
	if m.removed && !m.leaving {
		e.forgetAll(m)
		return
	}
	if m.keeping || m.saveAt.After(e.now) || !m.stale && len(m.toSave) == 0 {
		return
	}
	runs := m.toSave
	m.toSave = nil
	changes := make([]keeping, 0, len(runs))
	for _, id := range runs {
		changes = append(changes, e.runs[id].keeping)
	}
	data, err := e.kept(m, changes...)
	if err != nil {
		m.stale = false
		for _, id := range runs {
			e.runFailed(id, err)
		}
		return
	}
	stale := m.stale
	m.keeping, m.stale = true, false
	up := m.up
	finalizers := slices.Collect(maps.Values(m.finalizers))
	op := e.ask(func(in Input) {
		defer e.keptDone(m)
		err := in.(Saved).Err
		for _, id := range runs {
			e.saved(id, err)
		}
		if err != nil {
			// The state of the runs may be in the Secret all the same.
			m.stale = true
			if m.saveTry++; m.saveTry == 1 && stale {
				e.note(builtins.LevelWarn, m, "", "what its hooks have set cannot be kept, tried again: "+err.Error())
			}
			m.saveAt = e.now.Add(releaseRetry.Delay(m.saveTry, e.opts.Jitter()))
			return
		}
		m.saveTry, m.saveAt, m.upKept = 0, time.Time{}, up
		for _, f := range finalizers {
			f.kept = true
		}
	})
	e.do(Save{Op: op, Module: m.name, Data: data})
}

// forgetLayers drops the layers, the states and the ticks of a module that is off for good.
func (e *Engine) forgetLayers(m *module) {
	before := m.values
	for _, h := range m.hooks {
		for _, t := range h.schedules {
			m.stale = m.stale || !t.last.IsZero() && t.catchUp
			t.last = time.Time{}
		}
		for s := range h.subjects {
			if len(s.state) > 0 {
				s.state, s.stateSecrets, m.stale = nil, nil, true
				s.keep(statePrefix, nil)
			}
			if len(s.layer) > 0 {
				s.layer, m.stale = nil, true
				s.keep(layerPrefix, nil)
				m.values = m.values.WithHook(s.id(), nil)
			}
		}
	}
	if m.values != before {
		e.recomposeModule(m)
	}
}
