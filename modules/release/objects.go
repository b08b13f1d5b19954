package release

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// object names an object of a manifest.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for the release's own, and for kinds that have none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// hook: Helm makes it for a while. test: it is there while `helm test` runs, which
	// Starling never does.
	hook, test bool
	// wrong is what keeps Helm from reading it, "" for nothing.
	wrong string
	// token: it is a Secret with the token of a ServiceAccount.
	token bool
}

// String is "DaemonSet agent in namespace logs", for people.
func (o object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Name + " in namespace " + o.Namespace
}

// groupKind is what stays the same when a kind gets another version.
func (o object) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: effect.GroupOf(o.APIVersion), Kind: o.Kind}
}

// version is that of the kind.
func (o object) version() string { return o.APIVersion[strings.LastIndexByte(o.APIVersion, '/')+1:] }

// identity is equal for two names of one object of a release in namespace.
func (o object) identity(namespace string) string {
	if o.Namespace == namespace {
		o.Namespace = ""
	}
	return o.groupKind().String() + "/" + o.Namespace + "/" + o.Name
}

// merge adds the objects of more that list does not hold.
func merge(namespace string, list, more []object) []object {
	seen := map[string]bool{}
	for _, o := range list {
		seen[o.identity(namespace)] = true
	}
	for _, o := range more {
		if id := o.identity(namespace); !seen[id] {
			seen[id] = true
			list = append(list, o)
		}
	}
	return list
}

// without leaves out the objects that others holds.
func without(namespace string, list, others []object) []object {
	gone := map[string]bool{}
	for _, o := range others {
		gone[o.identity(namespace)] = true
	}
	var rest []object
	for _, o := range list {
		if !gone[o.identity(namespace)] {
			rest = append(rest, o)
		}
	}
	return rest
}

// objectsOf names the objects of a manifest, those of lists too.
func objectsOf(manifest string) ([]object, error) {
	var found []object
	docs := releaseutil.SplitManifests(manifest)
	keys := slices.Sorted(maps.Keys(docs))
	sort.Sort(releaseutil.BySplitManifestsOrder(keys))
	for _, key := range keys {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(docs[key]), &doc); err != nil {
			return nil, err
		}
		found = addObjects(found, doc, "", "", false)
	}
	return found, nil
}

// addObjects adds the objects of a document to list. An object with items is a list to the API
// machinery, whatever its kind; an item without a kind has that of the list.
func addObjects(list []object, doc map[string]any, apiVersion, kind string, item bool) []object {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	if v := text(doc, "apiVersion"); v != "" {
		apiVersion = v
	}
	if k := text(doc, "kind"); k != "" {
		kind = k
	}
	items, isList := doc["items"].([]any)
	for _, one := range items {
		if m, ok := one.(map[string]any); ok {
			list = addObjects(list, m, apiVersion, strings.TrimSuffix(kind, "List"), true)
		}
	}
	if kind == "" || isList && !item { // comments only
		return list
	}
	meta, _ := doc["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	hooks := text(annotations, "helm.sh/hook")
	return append(list, object{
		wrong:      wrongIn(doc["metadata"]),
		APIVersion: apiVersion, Kind: kind, token: effect.HoldsToken(apiVersion, kind, doc), Namespace: text(meta, "namespace"), Name: text(meta, "name"),
		hook: hooks != "",
		test: hooks != "" && !slices.ContainsFunc(strings.Split(hooks, ","), func(h string) bool { return !strings.HasPrefix(strings.TrimSpace(h), "test") }),
	})
}

// places are where a chart renders its objects, by their identity.
type places map[string]string

// twice notes the place of an object of a release in namespace. It says so when the chart
// renders the object elsewhere, too, for Helm makes it once, and "" when it does not. An
// object of a hook may have gone when another one takes its place.
func (p places) twice(namespace, file string, o object) string {
	if o.hook || o.Name == "" {
		return ""
	}
	id := o.identity(namespace)
	other, there := p[id]
	if !there {
		p[id] = file
		return ""
	}
	where := "in " + other + " too"
	if other == file {
		where = "there twice"
	}
	return fmt.Sprintf("%s is %s: rename one, or leave one out", o, where)
}

// wrongIn says what of an object's metadata is no text: Helm's error names neither the
// object nor the file. YAML takes y, on and 1.0 for something else.
func wrongIn(metadata any) string {
	meta, ok := metadata.(map[string]any)
	if !ok {
		return ""
	}
	wrong := func(field string, v any) string {
		if _, ok := v.(string); ok || v == nil {
			return ""
		}
		return fmt.Sprintf("metadata.%s is %s: it must be a string, in quotes where YAML takes it for something else", field, typeOf(v))
	}
	for _, field := range []string{"name", "namespace"} {
		if text := wrong(field, meta[field]); text != "" {
			return text
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := meta[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if text := wrong(field+"["+strconv.Quote(message.Cut(key, 100))+"]", texts[key]); text != "" {
				return text
			}
		}
	}
	return ""
}

func typeOf(v any) string {
	switch v.(type) {
	case bool:
		return "true or false"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	return "a number"
}
