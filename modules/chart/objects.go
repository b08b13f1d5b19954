package chart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	plain "github.com/starling-operator/starling/runtime/object"
)

// Object names an object of a manifest. Its Namespace is empty for the release's own, and for kinds that have none.
type Object struct {
	effect.Ref
	// Hook: it is made for a while. Test: it is there while tests of the chart run, see Test of [Input].
	Hook bool `json:"-"`
	Test bool `json:"-"`
	// Token: it is a Secret with the token of a ServiceAccount.
	Token bool `json:"-"`
	// doc is what was read; it is dropped once its faults are told.
	doc map[string]any
}

// String is "DaemonSet agent in namespace logs", for people.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Name + " in namespace " + o.Namespace
}

// GVK is its kind.
func (o Object) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// Identity is equal for two names of one object of a release in namespace.
func (o Object) Identity(namespace string) effect.Ref {
	if o.Namespace == namespace {
		o.Namespace = ""
	}
	return o.AnyVersion()
}

func identities(namespace string, list []Object) map[effect.Ref]bool {
	ids := map[effect.Ref]bool{}
	for _, o := range list {
		ids[o.Identity(namespace)] = true
	}
	return ids
}

// Merge adds the objects of more that list does not hold.
func Merge(namespace string, list, more []Object) []Object {
	seen := identities(namespace, list)
	for _, o := range more {
		if id := o.Identity(namespace); !seen[id] {
			seen[id] = true
			list = append(list, o)
		}
	}
	return list
}

// Without leaves out the objects that others holds.
func Without(namespace string, list, others []Object) []Object {
	gone := identities(namespace, others)
	return slices.DeleteFunc(slices.Clone(list), func(o Object) bool { return gone[o.Identity(namespace)] })
}

// Placed leaves out the namespaces of objects that have none, whatever a chart says: neither the API server nor Helm
// looks at them. A nil clusterWide knows of no such kind.
func Placed(list []Object, clusterWide func(Object) bool) []Object {
	list = slices.Clone(list)
	for i, o := range list {
		if o.Namespace != "" && clusterWide != nil && clusterWide(o) {
			list[i].Namespace = ""
		}
	}
	return list
}

// ObjectsOf names the objects of a manifest, those of lists too.
func ObjectsOf(manifest string) ([]Object, error) {
	found, err := documentsOf(manifest)
	return withKinds(found), err
}

func withKinds(list []Object) []Object {
	return slices.DeleteFunc(list, func(o Object) bool { return o.Kind == "" })
}

// documentsOf does so with documents that have no kind, too.
func documentsOf(manifest string) (found []Object, err error) {
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
func objectOf(doc map[string]any) Object {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	apiVersion, kind := text(doc, "apiVersion"), text(doc, "kind")
	meta, _ := doc["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	hooks := text(annotations, "helm.sh/hook")
	return Object{
		Ref:   effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: text(meta, "namespace"), Name: text(meta, "name")},
		doc:   doc,
		Token: effect.HoldsToken(apiVersion, kind, doc),
		Hook:  hooks != "",
		Test:  hooks != "" && !slices.ContainsFunc(strings.Split(hooks, ","), func(h string) bool { return !strings.HasPrefix(strings.TrimSpace(h), "test") }),
	}
}
