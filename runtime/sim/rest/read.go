package rest

import (
	"encoding/json"
	"sync"
)

// maxRead is how many objects are remembered as they were read.
const maxRead = 100

// read remembers objects of built-in kinds as JSON: a hook that is tried again reads the same ones again. Those of
// definitions may change without a new version, with their schema.
type read struct {
	mu      sync.Mutex
	objects map[state][]byte
}

// state is what an object is in: there is no other object with these.
type state struct{ apiVersion, kind, uid, version string }

// whole is the answer that shows an object.
func (r *read) whole(obj map[string]any) *answer {
	meta, _ := obj["metadata"].(map[string]any)
	var of state
	of.apiVersion, _ = obj["apiVersion"].(string)
	of.kind, _ = obj["kind"].(string)
	of.uid, _ = meta["uid"].(string)
	of.version, _ = meta["resourceVersion"].(string)
	a := ok(obj)
	if of.uid == "" || of.version == "" {
		return a
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.encoded = r.objects[of]; a.encoded != nil {
		return a
	}
	if body, err := json.Marshal(obj); err == nil {
		if r.objects == nil || len(r.objects) >= maxRead {
			r.objects = map[state][]byte{}
		}
		a.encoded = append(body, '\n')
		r.objects[of] = a.encoded
	}
	return a
}
