package release

import (
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// object names an object of a manifest.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for the release's own, and for kinds that have none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
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
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: o.Kind}
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
	keys := sortedKeys(docs)
	sort.Sort(releaseutil.BySplitManifestsOrder(keys))
	for _, key := range keys {
		var head manifestHead
		if err := yaml.Unmarshal([]byte(docs[key]), &head); err != nil {
			return nil, err
		}
		found = head.add(found)
	}
	return found, nil
}

// manifestHead is what of a document names its object, or its objects.
type manifestHead struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []manifestHead `json:"items"`
}

func (h manifestHead) add(list []object) []object {
	if strings.HasSuffix(h.Kind, "List") && h.Metadata.Name == "" {
		for _, item := range h.Items {
			list = item.add(list)
		}
		return list
	}
	if h.Kind == "" { // comments only
		return list
	}
	return append(list, object{APIVersion: h.APIVersion, Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name})
}
