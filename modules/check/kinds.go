package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// oldest is the oldest Kubernetes that Starling works with: 1.33.
const oldest = 33

// kinds are the kinds that are known without a cluster.
type kinds struct {
	// known holds "apps/v1 Deployment".
	known map[string]bool
	// gone holds kinds that no supported Kubernetes serves, with what replaced them.
	gone map[string]string
	// groups are the API groups of known kinds; the core group is "".
	groups map[string]bool
	// complete: there are no others, a cluster has said so.
	complete bool
}

// newKinds returns the kinds of Kubernetes itself.
func newKinds() kinds {
	k := kinds{known: map[string]bool{}, gone: map[string]string{}, groups: map[string]bool{}}
	object := reflect.TypeFor[metav1.Object]()
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || !reflect.PointerTo(t).Implements(object) {
			continue
		}
		apiVersion := gvk.GroupVersion().String()
		obj := reflect.New(t).Interface()
		if old, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
			if major, minor := old.APILifecycleRemoved(); major == 1 && minor <= oldest {
				instead := ""
				if next, ok := obj.(interface {
					APILifecycleReplacement() schema.GroupVersionKind
				}); ok {
					to := next.APILifecycleReplacement()
					instead = to.GroupVersion().String() + " " + to.Kind
				}
				k.gone[apiVersion+" "+gvk.Kind] = instead
				continue
			}
		}
		k.add(apiVersion, gvk.Kind)
	}
	k.add("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	k.add("apiregistration.k8s.io/v1", "APIService")
	return k
}

// newest are the capabilities of the newest Kubernetes that Starling works with, without its kinds.
func newest() *helm.Capabilities {
	caps, err := helm.NewCapabilities(rest.Version)
	if err != nil {
		panic(err) // the constant is no version
	}
	return caps
}

// servedKinds returns the kinds that a dump of a cluster's OpenAPI lists, as `kubectl
// get --raw /openapi/v2` prints it, and what charts see of them.
func servedKinds(dump []byte) (kinds, *helm.Capabilities, error) {
	var doc struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
		Definitions map[string]struct {
			Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(dump, &doc); err != nil {
		return kinds{}, nil, fmt.Errorf("is no OpenAPI document (%w); make it with: kubectl get --raw /openapi/v2", err)
	}
	caps, err := helm.NewCapabilities(doc.Info.Version)
	if err != nil { // a part of a document: it names kinds only
		caps = newest()
	}
	var served []schema.GroupVersionKind
	k := kinds{known: map[string]bool{}, gone: map[string]string{}, groups: map[string]bool{}, complete: true}
	for _, d := range doc.Definitions {
		if len(d.Kinds) > 1 {
			continue // DeleteOptions and the like, which all groups have
		}
		for _, gvk := range d.Kinds {
			k.add(schema.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String(), gvk.Kind)
			served = append(served, schema.GroupVersionKind(gvk))
		}
	}
	if len(k.known) == 0 {
		return kinds{}, nil, errors.New("names no kinds; make it with: kubectl get --raw /openapi/v2")
	}
	return k, helm.WithKinds(caps, served...), nil
}

func (k kinds) add(apiVersion, kind string) {
	k.known[apiVersion+" "+kind] = true
	k.groups[effect.GroupOf(apiVersion)] = true
}

// kindsOf are the kinds of the CustomResourceDefinitions in a file of YAML.
func kindsOf(data []byte) (out []schema.GroupVersionKind) {
	for _, d := range generation.Definitions(data) {
		for _, v := range d.Spec.Versions {
			if v.Served {
				out = append(out, schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind})
			}
		}
	}
	return out
}

// unknown says what is odd about a kind: "" when it is known. near is the kind that was
// probably meant; sure is false for kinds of groups that nothing is known of.
func (k kinds) unknown(apiVersion, kind string) (problem, near string, sure bool) {
	name := apiVersion + " " + kind
	if k.known[name] {
		return "", "", true
	}
	if instead, old := k.gone[name]; old {
		return fmt.Sprintf("%s is served by no Kubernetes from 1.%d on", name, oldest), instead, true
	}
	var same, all []string
	for other := range k.known {
		v, other, _ := strings.Cut(other, " ")
		if strings.EqualFold(other, kind) {
			same = append(same, v+" "+other)
		}
		all = append(all, v+" "+other)
	}
	// A kind of another version or group: the one that is most stable.
	slices.SortFunc(same, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(a, apiVersion), distance(b, apiVersion)), cmp.Compare(a, b))
	})
	slices.Sort(all)
	switch {
	case len(same) > 0:
		near = same[0]
	default:
		near = message.Nearest(name, all)
	}
	if k.complete {
		return "neither the cluster of --openapi nor a CustomResourceDefinition of this tree has the kind " + name, near, true
	}
	sure = near != "" || k.groups[effect.GroupOf(apiVersion)]
	return "neither Kubernetes nor a CustomResourceDefinition of this tree has the kind " + name, near, sure
}

// distance is 0 for a kind of the group of apiVersion, more for others and for
// versions that are not stable.
func distance(kind, apiVersion string) int {
	v, _, _ := strings.Cut(kind, " ")
	d := 0
	if effect.GroupOf(v) != effect.GroupOf(apiVersion) {
		d += 2
	}
	if strings.Contains(v, "alpha") || strings.Contains(v, "beta") {
		d++
	}
	if effect.GroupOf(v) == "extensions" {
		d += 4
	}
	return d
}

// allKinds looks at what hooks watch, and at what grants allow.
func (c *checker) allKinds() {
	for _, m := range c.modules {
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				if b.Watch != nil {
					c.kind(m.Name, b.Watch.Pos, "k8s.watch: ", b.Watch.APIVersion, b.Watch.Kind)
					c.inNoNamespace(m.Name, b.Watch)
				}
				if a := b.Admission; a != nil && a.Kind != "" {
					of := "k8s.validate: "
					if a.Mutate {
						of = "k8s.mutate: "
					}
					c.kind(m.Name, a.Pos, of, a.APIVersion, a.Kind)
				}
			}
		}
		for _, g := range m.Decl.Grants {
			if !strings.Contains(g.APIVersion+g.Kind, "*") {
				c.kind(m.Name, m.Decl.Pos, "grant: ", g.APIVersion, g.Kind)
			}
		}
	}
}

func (c *checker) kind(module, pos, what, apiVersion, kind string) {
	problem, near, sure := c.kinds.unknown(apiVersion, kind)
	if problem == "" {
		return
	}
	hint, severity := "", Warning
	if near != "" {
		hint = "did you mean " + near + "?"
	}
	if !sure {
		severity = Note // somebody else brings its definition
	}
	c.addAt(severity, "kinds", module, pos, what+problem, hint)
}

// inNoNamespace warns of namespaces that a watch names of a kind whose objects are in none.
func (c *checker) inNoNamespace(module string, w *builtins.WatchBinding) {
	param := ""
	switch {
	case len(w.ExcludeNamespaces) > 0:
		param = "exclude_namespaces"
	case w.Namespaces != nil:
		param = "namespaces"
	case w.NamespaceLabels != "":
		param = "namespace_labels"
	default:
		return
	}
	s := store.New(store.Options{Builtins: c.cache.builtins()})
	if k, known := s.KindOf(schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)); !known || k.Namespaced {
		return
	}
	c.addAt(Warning, "kinds", module, w.Pos, fmt.Sprintf("k8s.watch: a %s is in no namespace, so %s changes nothing", w.Kind, param),
		`object_names = ["a"], fields = "metadata.name!=a" and labels= choose`)
}

// goneKind tells of an object of a chart whose kind no supported Kubernetes serves.
func (c *checker) goneKind(m *generation.Module, path, apiVersion, kind string) {
	problem, instead, _ := c.kinds.unknown(apiVersion, kind)
	f, src := c.inChart(m, Error, path, 0, problem)
	f.Line = chart.LineOf(src, kind, "apiVersion")
	if version, _, _ := strings.Cut(instead, " "); version != "" {
		f.Hint = "write apiVersion: " + version
	}
	if src == nil {
		f.Severity = Warning // of somebody else
	}
	c.add(f)
}
