package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/kstatus"
)

// Pruned is what has to be known of a child of manager, beside Secrets, of which all is: who it is, whose, how
// it is, the fields that manager has applied, and who else writes it. [Same], [Written] and [Taker] say the
// same of it, and so do package reconcile and [kstatus.Of]. It shares maps with live.
func Pruned(live map[string]any, manager string) map[string]any {
	out := live
	if live["apiVersion"] != "v1" || live["kind"] != "Secret" {
		out = appliedOf(live, manager, true)
		spec, status := kstatus.Part(live)
		for key, m := range map[string]map[string]any{"spec": spec, "status": status} {
			if len(m) > 0 {
				out[key] = apply.Union(out[key], m)
			}
		}
		out["apiVersion"], out["kind"] = live["apiVersion"], live["kind"]
	}
	metadata, _ := live["metadata"].(map[string]any)
	out, own := effect.WithMetadata(out)
	maps.Copy(own, effect.Only(metadata, "name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences"))
	if v, there := metadata["finalizers"]; there && own["deletionTimestamp"] != nil { // they say for what it waits
		own["finalizers"] = v
	}
	for _, in := range []string{"labels", "annotations"} {
		if m, _ := metadata[in].(map[string]any); m != nil {
			own[in] = apply.Union(own[in], marksOf(m))
		}
	}
	own["managedFields"] = managers(live, manager)
	return out
}

// appliedOf is what manager has applied of an object: of one without server-side apply all that it has. Keyed has
// items of lists come with all of their keys, also those that are given by default.
func appliedOf(live map[string]any, manager string, keyed bool) map[string]any {
	if apply.Plain(live, manager) {
		return contentOf(live)
	}
	if a := apply.FieldsOf(live, manager, ""); a != nil && !apply.Whole(a.Set) {
		return ownedOf(live, a.Set, keyed).(map[string]any) // as live is one
	}
	return map[string]any{}
}

// contentOf is what an object has but for its status and what the API server notes of each write.
func contentOf(live map[string]any) map[string]any {
	out, metadata := effect.WithMetadata(live)
	delete(out, "status")
	for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, key)
	}
	return out
}

// marksOf are the labels and annotations of Starling and of Helm, whoever has written them.
func marksOf(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		if strings.HasPrefix(key, "starling.dev/") || strings.HasPrefix(key, "meta.helm.sh/") {
			out[key] = v
		}
	}
	return out
}

// managers are the entries of managedFields, those of others by their names alone.
func managers(live map[string]any, manager string) []any {
	out := []any{}
	for entry := range apply.Entries(live) {
		if entry["manager"] != manager {
			entry = effect.Only(entry, "manager", "subresource")
		}
		out = append(out, entry)
	}
	return out
}

// ownedOf is a value with the fields alone that are owned.
func ownedOf(live any, owned map[string]any, keyed bool) any {
	if apply.Whole(owned) {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, of := range owned {
			key, is := strings.CutPrefix(name, "f:")
			fields, ok := of.(map[string]any)
			if v, there := live[key]; is && ok && there {
				out[key] = ownedOf(v, fields, keyed)
			}
		}
		return out
	case []any:
		out, names := []any{}, apply.ItemsOf(owned)
		for _, item := range live {
			if i := slices.IndexFunc(names, func(n apply.Item) bool { return n.Is(item) }); i >= 0 {
				out = append(out, ownedItem(item, names[i], keyed))
			}
		}
		return out
	}
	return live
}

// ownedItem is an item of a list that is merged by keys, or of a set.
func ownedItem(item any, name apply.Item, keyed bool) any {
	m, is := ownedOf(item, name.Fields, keyed).(map[string]any)
	if !is || name.Key == nil {
		return item
	}
	if !keyed {
		return m
	}
	m = maps.Clone(m)
	for _, k := range *name.Key { // some are given by default, and owned by nobody
		m[k.Name] = item.(map[string]any)[k.Name]
	}
	return m
}
