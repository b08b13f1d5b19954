package subjects

import (
	"bytes"
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// These begin the keys under which layers and states are kept.
const (
	LayerKey = "layer."
	StateKey = "state."
)

// Of names the subject that something is kept of.
type Of struct {
	Hook string `json:"hook"`
	Key  string `json:"key,omitempty"`
}

// KeptLayer is what is kept of the layer of a subject.
type KeptLayer struct {
	Of
	Ops json.RawMessage `json:"ops"`
}

// KeptState is what is kept of what a subject remembers.
type KeptState struct {
	Of
	State map[string]any `json:"state"`
	// Secrets are the paths inside State at which secret texts stand.
	Secrets [][]string `json:"secrets,omitempty"`
}

// Decode reads what was kept: of a layer, of a state, or of what it was. Integers stay integers, as the hook has set
// them.
func Decode[K KeptLayer | KeptState | Of](data []byte) (k K, err error) {
	err = kjson.UnmarshalCaseSensitivePreserveInts(data, &k)
	return k, err
}

// Keys are the keys of its layer and of its state.
func (s *Subject) Keys() [2]string {
	key := object.DataKey("", s.ID())
	return [2]string{LayerKey + key, StateKey + key}
}

// Keep is what is kept of a subject with this layer and this memory, by key; nil for what it
// has not. An error says that it is too large.
func (s *Subject) Keep(layer []effect.ValueOp, memory effect.Memory) (map[string][]byte, error) {
	ofLayer, err := s.encodeLayer(layer)
	if err != nil {
		return nil, err
	}
	ofState, err := s.encodeState(memory)
	if err != nil {
		return nil, err
	}
	for _, data := range [][]byte{ofLayer, ofState} {
		if len(data) > effect.MaxKept { // which would have the writes of other runs fail, too
			return nil, fmt.Errorf("what it sets or remembers has %d KiB, more than the %d KiB that fit into a Secret: set less", len(data)>>10, effect.MaxKept>>10)
		}
	}
	keys := s.Keys()
	return map[string][]byte{keys[0]: ofLayer, keys[1]: ofState}, nil
}

func (s *Subject) encodeLayer(layer []effect.ValueOp) ([]byte, error) {
	if len(layer) == 0 {
		return nil, nil
	}
	ops, err := values.EncodeOps(layer)
	if err != nil {
		return nil, err
	}
	// Not json.Marshal: it would write < and > in another way than EncodeOps, and what is
	// kept should read as it was set.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(KeptLayer{Of{s.Hook, s.Key}, ops})
	return bytes.TrimSpace(b.Bytes()), err
}

func (s *Subject) encodeState(memory effect.Memory) ([]byte, error) {
	if len(memory.State) == 0 {
		return nil, nil
	}
	return json.Marshal(KeptState{Of{s.Hook, s.Key}, memory.State, memory.StateSecrets})
}
