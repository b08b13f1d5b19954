package rbac

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins/crd"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// resource is what RBAC knows of a kind.
type resource struct {
	group, plural string
	namespaced    bool
	// subresources are those that are known: "status", "scale".
	subresources []string
	// guessed: neither Kubernetes nor the tree has the kind.
	guessed bool
}

func (r resource) rule(verbs ...string) Rule {
	return Rule{Group: r.group, Resource: r.plural, Verbs: verbs}
}

// kinds are the kinds of Kubernetes and of the tree.
type kinds struct {
	builtins *store.Builtins
	known    map[schema.GroupKind]resource
	// served are those of definitions that are applied, for charts that ask for them.
	served []schema.GroupVersionKind
}

func newKinds() *kinds {
	k := &kinds{builtins: store.NewBuiltins(), known: map[schema.GroupKind]resource{}}
	for _, b := range store.New(store.Options{Builtins: k.builtins}).Kinds() {
		r := resource{group: b.Group, plural: b.Plural, namespaced: b.Namespaced}
		if b.Status {
			r.subresources = append(r.subresources, "status")
		}
		if b.Scale {
			r.subresources = append(r.subresources, "scale")
		}
		k.known[schema.GroupKind{Group: b.Group, Kind: b.Kind}] = r
	}
	return k
}

// of returns the resource of a kind; one that nobody knows is guessed.
func (k *kinds) of(apiVersion, kind string) resource {
	group := effect.GroupOf(apiVersion)
	if r, ok := k.known[schema.GroupKind{Group: group, Kind: kind}]; ok {
		return r
	}
	return resource{group: group, plural: crd.Plural(kind), namespaced: true, subresources: []string{"status", "scale"}, guessed: true}
}

// addCRDs adds the kinds of the CustomResourceDefinitions in a file of YAML and
// returns them by the names of the definitions. Those that are not applied may be at another time.
func (k *kinds) addCRDs(data []byte, applied bool) (added map[string]resource) {
	added = map[string]resource{}
	for _, d := range generation.Definitions(data) {
		if d.Metadata.Name == "" {
			continue
		}
		kind := schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
		r := resource{group: kind.Group, plural: d.Spec.Names.Plural, namespaced: d.Spec.Scope == "Namespaced"}
		for _, v := range d.Spec.Versions {
			r.subresources = slices.AppendSeq(r.subresources, maps.Keys(v.Subresources))
			if applied {
				k.served = append(k.served, kind.WithVersion(v.Name))
			}
		}
		k.known[kind], added[d.Metadata.Name] = r, r
	}
	return added
}
