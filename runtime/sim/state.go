package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
		releases := map[string]helmRevision{}
		for _, obj := range list.Items {
			if text(obj["type"]) == "helm.sh/release.v1" {
				noteRevision(releases, obj)
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
		for name, last := range releases {
			out = append(out, fmt.Sprintf("release %s: %s", name, last.status))
		}
	}
	slices.Sort(out)
	return out
}

// helmRevision is one revision of a release: its number and its status.
type helmRevision struct {
	number int
	status string
}

// noteRevision notes the revision that a Secret of Helm's holds, if it is the newest.
func noteRevision(newest map[string]helmRevision, secret map[string]any) {
	meta, _ := secret["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	name := text(meta["namespace"]) + "/" + text(labels["name"])
	number, err := strconv.Atoi(text(labels["version"]))
	if err == nil && number > newest[name].number {
		newest[name] = helmRevision{number, text(labels["status"])}
	}
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
