package sim

import (
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

// Held is one thing that the cluster holds, without what depends on the way there.
type Held struct {
	// Kind is that of the object, or "values" and "state": what a hook has set, and what
	// it remembers.
	Kind string
	// Name names it for people, and among all.
	Name string
	// Fields are those of the object, or the values.
	Fields map[string]any
}

// State is what the cluster holds, by name, without what depends on the way there:
// versions, uids, times, values that controllers make with a Secret, who has written what,
// revisions of releases, Events. The state that Starling keeps for its hooks is named in their words.
func (w *World) State() []Held {
	var out []Held
	all := map[string]map[string]any{}
	uids := map[string]effect.Ref{}
	for _, k := range w.store.Kinds() {
		list, err := w.store.List(store.Target{GVR: k.GVR(), Spared: true}, store.ListOptions{})
		if err != nil {
			continue
		}
		releases := map[string]helmRevision{}
		for _, obj := range list.Items {
			if w.moving != nil && workloads.Made(obj) {
				continue
			}
			if w.moving != nil && k.Kind == "CronJob" {
				obj = maps.Clone(obj)
				delete(obj, "status") // the Jobs that run at this time
			}
			if text(obj["type"]) == "helm.sh/release.v1" {
				noteRevision(releases, obj)
				continue
			}
			meta, _ := obj["metadata"].(map[string]any)
			if uid := text(meta["uid"]); uid != "" {
				uids[uid] = effect.RefOf(obj)
			}
			if k.Kind != "Event" && k.Kind != "Lease" {
				all[effect.RefOf(obj).String()] = obj // of a kind with several versions the last one
			}
		}
		for name, last := range releases {
			out = append(out, Held{Kind: "release", Name: "release " + name, Fields: map[string]any{"status": last.status}})
		}
	}
	s := &stater{uids: uids}
	for name, obj := range all {
		if obj["type"] == cluster.KeptType {
			out = append(out, s.kept(obj)...)
			continue
		}
		if fields, ok := s.plainly(obj).(map[string]any); ok {
			w.unfill(name, fields)
			out = append(out, Held{Kind: text(obj["kind"]), Name: name, Fields: fields})
		}
	}
	slices.SortFunc(out, func(a, b Held) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// fills notes which values controllers make with their Secrets: they are made by chance.
func (w *World) fills(wanted []hook.Wanted) {
	for _, part := range wanted {
		if len(part.Filled) == 0 {
			continue
		}
		if w.filled == nil {
			w.filled = map[string][]string{}
		}
		w.filled[effect.RefOf(part.Object).String()] = part.Filled
	}
}

// unfill leaves of such values only that they are there.
func (w *World) unfill(name string, fields map[string]any) {
	if _, parent := reconcile.ParentOf(fields); parent == "" { // somebody else's
		return
	}
	data, _ := fields["data"].(map[string]any)
	for _, key := range w.filled[name] {
		if text(data[key]) != "" {
			data[key] = "made with its object"
		}
	}
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

// passing are the fields of metadata that tell of the way, not of the state. Signatures hold a time or a uid.
var passing = map[string]bool{
	"resourceVersion": true, "uid": true, "creationTimestamp": true, "managedFields": true, "generation": true, "deletionTimestamp": true,
	"starling.dev/revision": true, effect.DefinedByAnnotation: true, effect.ChildSignature: true, effect.SetSignature: true, effect.MadeBySignature: true,
	"deployment.kubernetes.io/revision": true, "podIP": true, "podIPs": true, "startedAt": true, "finishedAt": true,
}

// stater makes the state of objects.
type stater struct {
	uids map[string]effect.Ref // of all objects
}

// plainly copies an object without what depends on the way.
func (s *stater) plainly(v any) any {
	switch v := v.(type) {
	case map[string]any:
		secret := v["kind"] == "Secret" && v["apiVersion"] == "v1"
		out := make(map[string]any, len(v))
		for key, e := range v {
			if passing[key] || strings.HasSuffix(key, "Time") || key == "observedGeneration" {
				continue
			}
			if key == "objects" && v["module"] != nil { // of the record of a release: found anew where they are missing
				continue
			}
			if data, ok := e.(map[string]any); ok && secret && key == "data" {
				e = decoded(data)
			}
			out[key] = s.plainly(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = s.plainly(e)
		}
		return out
	case string:
		return s.text(v)
	}
	return v
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// text reads what is JSON, and has names in place of uids.
func (s *stater) text(v string) any {
	if strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[") {
		var parsed any
		if json.UnmarshalCaseSensitivePreserveInts([]byte(v), &parsed) == nil {
			return s.plainly(parsed)
		}
	}
	return uidPattern.ReplaceAllStringFunc(v, func(uid string) string {
		if ref, ok := s.uids[uid]; ok {
			return "the uid of " + ref.String()
		}
		return uid
	})
}

// decoded is the data of a Secret as people wrote it, where it is text.
func decoded(data map[string]any) map[string]any {
	out := make(map[string]any, len(data))
	for key, v := range data {
		out[key] = v
		if plain, err := base64.StdEncoding.DecodeString(text(v)); err == nil && utf8.Valid(plain) {
			out[key] = string(plain)
		}
	}
	return out
}

// kept is what Starling keeps for hooks: their values, and what they remember.
func (s *stater) kept(obj map[string]any) []Held {
	var out []Held
	data, _ := obj["data"].(map[string]any)
	for at, v := range decoded(data) {
		if !strings.HasPrefix(at, subjects.LayerKey) && !strings.HasPrefix(at, subjects.StateKey) {
			continue // such as messages that wait, and which schedules have fired
		}
		var one struct {
			Hook string `json:"hook"`
			Key  string `json:"key"`
			Ops  []struct {
				Path  []string `json:"path"`
				Value any      `json:"value"`
			} `json:"ops"`
			State map[string]any `json:"state"`
		}
		if json.UnmarshalCaseSensitivePreserveInts([]byte(text(v)), &one) != nil || one.Hook == "" {
			continue
		}
		kind, fields := "state", one.State
		if fields == nil {
			kind, fields = "values", map[string]any{}
			for _, op := range one.Ops {
				object.Put(fields, op.Path, op.Value)
			}
		}
		name := kind + " of hook " + one.Hook
		if one.Key != "" {
			name += " for " + one.Key
		}
		out = append(out, Held{Kind: kind, Name: name, Fields: s.plainly(fields).(map[string]any)})
	}
	return out
}
