package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// keptLayer is what stands in a Secret for the layer of one hook.
type keptLayer struct {
	Hook string          `json:"hook"`
	Ops  json.RawMessage `json:"ops"`
}

// keptState is what stands in a Secret for the state of one hook.
type keptState struct {
	Hook  string         `json:"hook"`
	State map[string]any `json:"state"`
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
	for key, data := range kept {
		switch {
		case strings.HasPrefix(key, tickPrefix):
			errs = append(errs, m.readTick(data))
		case strings.HasPrefix(key, statePrefix):
			errs = append(errs, m.readState(data))
		}
		if !strings.HasPrefix(key, layerPrefix) {
			continue
		}
		var k keptLayer
		err := json.Unmarshal(data, &k)
		h := m.byKey[k.Hook]
		if err == nil && h == nil {
			m.stale = true
			continue
		}
		if err == nil {
			h.layer, err = values.DecodeOps(k.Ops)
		}
		if err != nil {
			m.stale = true
			errs = append(errs, fmt.Errorf("what was kept as %s cannot be read: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// readState takes the state of a hook from what was kept.
func (m *module) readState(data []byte) error {
	var k keptState
	// Integers stay integers, as the hook has set them.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &k); err != nil {
		m.stale = true
		return fmt.Errorf("the state of a hook that was kept cannot be read: %w", err)
	}
	if h := m.byKey[k.Hook]; h != nil {
		h.state = k.State
	} else {
		m.stale = true
	}
	return nil
}

// kept returns all that is to be kept for a module once the hook has this layer and
// this state. The hook may be nil. The result is never nil.
func (e *Engine) kept(m *module, changed *hook, layer []effect.ValueOp, state map[string]any) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, h := range m.hooks {
		if err := h.keepTicks(out); err != nil {
			return nil, err
		}
		ops, remembers := h.layer, h.state
		if h == changed {
			ops, remembers = layer, state
		}
		if len(remembers) > 0 {
			data, err := json.Marshal(keptState{h.gen.ID, remembers})
			if err != nil {
				return nil, err
			}
			out[keptKey(statePrefix, h.gen.ID)] = data
		}
		if len(ops) == 0 {
			continue
		}
		data, err := values.EncodeOps(ops)
		if err != nil {
			return nil, err
		}
		// Not json.Marshal: it would write < and > in another way than
		// EncodeOps, and what is kept should read as it was set.
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(keptLayer{Hook: h.gen.ID, Ops: data}); err != nil {
			return nil, err
		}
		out[keptKey(layerPrefix, h.gen.ID)] = bytes.TrimSpace(b.Bytes())
	}
	if m == e.global {
		data, err := json.Marshal(e.config.accepted)
		if err != nil {
			return nil, err
		}
		out[configKey] = data
	}
	return out, nil
}

// save writes what is kept again when that changed outside a run. Commits that would
// write the same Secret wait meanwhile.
func (e *Engine) save(m *module) {
	if !m.stale || m.keeping || m.saveAt.After(e.now) {
		return
	}
	data, err := e.kept(m, nil, nil, nil)
	if err != nil {
		m.stale = false
		return
	}
	m.keeping, m.stale = true, false
	op := e.ask(func(in Input) {
		defer e.keptDone(m)
		if err := in.(Saved).Err; err != nil {
			if m.saveTry++; m.saveTry == 1 {
				e.note(builtins.LevelWarn, m, "", "what its hooks have set cannot be kept, tried again: "+err.Error())
			}
			m.stale, m.saveAt = true, e.now.Add(releaseRetry.Delay(m.saveTry, e.opts.Jitter()))
			return
		}
		m.saveTry, m.saveAt = 0, time.Time{}
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
		if len(h.state) > 0 {
			h.state, m.stale = nil, true
		}
		if len(h.layer) > 0 {
			h.layer = nil
			m.values = m.values.WithHook(h.gen.ID, nil)
			m.stale = true
		}
	}
	if m.values != before {
		e.recomposeModule(m)
	}
}
