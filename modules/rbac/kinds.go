package rbac

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins/crd"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/effect"
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
	docs, err := bounded.YAMLDocuments(data)
	if err != nil {
		return added // broken: then the release says so
	}
	for _, doc := range docs {
		var crd struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				Group string `json:"group"`
				Scope string `json:"scope"`
				Names struct {
					Kind   string `json:"kind"`
					Plural string `json:"plural"`
				} `json:"names"`
				Versions []struct {
					Name         string         `json:"name"`
					Subresources map[string]any `json:"subresources"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(doc, &crd); err != nil {
			return added // broken: then the release says so
		}
		if crd.Kind != "CustomResourceDefinition" || crd.Metadata.Name == "" {
			continue
		}
		r := resource{group: crd.Spec.Group, plural: crd.Spec.Names.Plural, namespaced: crd.Spec.Scope == "Namespaced"}
		for _, v := range crd.Spec.Versions {
			for sub := range v.Subresources {
				r.subresources = append(r.subresources, sub)
			}
			if applied {
				k.served = append(k.served, schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind})
			}
		}
		k.known[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = r
		added[crd.Metadata.Name] = r
	}
	return added
}
