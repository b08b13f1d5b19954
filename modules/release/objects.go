package release

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	plain "github.com/starling-operator/starling/runtime/object"
)

// object names an object of a manifest. Its Namespace is empty for the release's own, and for kinds that have none.
type object struct {
	Key
	// hook: it is made for a while. test: it is there while tests of the chart run, see Test of [Target].
	hook, test bool
	// doc is what was read; it is dropped once its faults are told.
	doc map[string]any
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

// gvk is its kind.
func (o object) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// identity is equal for two names of one object of a release in namespace.
func (o object) identity(namespace string) Key {
	if o.Namespace == namespace {
		o.Namespace = ""
	}
	return o.AnyVersion()
}

// merge adds the objects of more that list does not hold.
func merge(namespace string, list, more []object) []object {
	seen := map[Key]bool{}
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
	gone := map[Key]bool{}
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
	found, err := documentsOf(manifest)
	return withKinds(found), err
}

func withKinds(list []object) []object {
	return slices.DeleteFunc(list, func(o object) bool { return o.Kind == "" })
}

// documentsOf does so with documents that have no kind, too.
func documentsOf(manifest string) (found []object, err error) {
	for _, doc := range plain.Documents(manifest) {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			return nil, err
		}
		objects, err := plain.Objects(obj)
		if err != nil {
			return nil, err
		}
		for _, one := range objects {
			found = append(found, objectOf(one))
		}
	}
	return found, nil
}

// objectOf names an object.
func objectOf(doc map[string]any) object {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	apiVersion, kind := text(doc, "apiVersion"), text(doc, "kind")
	meta, _ := doc["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	hooks := text(annotations, "helm.sh/hook")
	return object{
		Key:   Key{APIVersion: apiVersion, Kind: kind, Namespace: text(meta, "namespace"), Name: text(meta, "name")},
		doc:   doc,
		token: effect.HoldsToken(apiVersion, kind, doc),
		hook:  hooks != "",
		test:  hooks != "" && !slices.ContainsFunc(strings.Split(hooks, ","), func(h string) bool { return !strings.HasPrefix(strings.TrimSpace(h), "test") }),
	}
}
