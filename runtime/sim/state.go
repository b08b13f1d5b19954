package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// State is what the cluster holds, an object a line, without what depends on the way
// there: versions, uids, times, who has written what, revisions of releases, Events.
func (w *World) State() []string {
	var out []string
	for _, k := range w.store.Kinds() {
		if k.Kind == "Event" || k.Kind == "Lease" {
			continue
		}
		list, err := w.store.List(store.Target{GVR: k.GVR(), Spared: true}, store.ListOptions{})
		if err != nil {
			continue
		}
		for _, obj := range list.Items {
			if text(obj["type"]) == "helm.sh/release.v1" {
				continue
			}
			data, err := json.Marshal(plainly(obj))
			if err != nil {
				continue
			}
			if line := fmt.Sprintf("%s: %s", RefOf(obj), data); !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return out
}

func text(v any) string { s, _ := v.(string); return s }

// passing are the fields of metadata that tell of the way, not of the state.
var passing = map[string]bool{"resourceVersion": true, "uid": true, "creationTimestamp": true, "managedFields": true, "generation": true, "deletionTimestamp": true, "starling.dev/revision": true}

// plainly copies an object without them.
func plainly(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			if passing[key] || strings.HasSuffix(key, "Time") || key == "observedGeneration" {
				continue
			}
			out[key] = plainly(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainly(e)
		}
		return out
	}
	return v
}
