package release

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
	plain "github.com/starling-operator/starling/runtime/object"
)

// stored is an object of a stored manifest, as Helm would send it.
type stored struct {
	key     Key
	obj     *unstructured.Unstructured
	mapping *meta.RESTMapping
	// moved: its version is served no more, and it is read in another one.
	moved bool
}

// String is "Deployment web in namespace apps", for people.
func (s stored) String() string {
	return chart.Object{Ref: s.key}.String()
}

// storedObjects reads the objects of the manifest of a release, in Helm's order. Those of kinds
// that the API server does not serve are named apart.
func (m *Manager) storedObjects(ref Ref, manifest string) (list []stored, unserved []chart.Object, err error) {
	for _, doc := range plain.Documents(manifest) {
		objects, err := chart.Decode(doc + "\n") // a text at its end had one
		if err != nil {
			return nil, nil, fmt.Errorf("the stored manifest cannot be read: %w", err)
		}
		for _, u := range objects {
			gvk := u.GroupVersionKind()
			mapping, moved, err := m.mapping(gvk)
			if meta.IsNoMatchError(err) {
				unserved = append(unserved, chart.Object{Ref: effect.RefOf(u.Object)})
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			list = append(list, stored{keyOf(mapping, cmp.Or(u.GetNamespace(), ref.Namespace), u.GetName()), m.asSent(ref, u), mapping, moved})
		}
	}
	return list, unserved, nil
}

// mapping is where objects of a kind are, if need be in another version of it.
func (m *Manager) mapping(gvk schema.GroupVersionKind) (mapping *meta.RESTMapping, moved bool, err error) {
	mapping, err = m.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, false, err
	}
	if other, found := m.o.Mapper.RESTMapping(gvk.GroupKind()); found == nil {
		return other, true, nil
	}
	return nil, false, err
}

// served reads the objects of a manifest before they are written: a kind that is not served is an error. One that the
// shared mapper does not know may be younger than it.
func (l *life) served(manifest string) ([]stored, error) {
	for try := 1; ; try++ {
		list, unserved, err := l.m.storedObjects(l.ref, manifest)
		for _, s := range list {
			if s.moved {
				unserved = append(unserved, chart.Object{Ref: effect.RefOf(s.obj.Object)})
			}
		}
		if err != nil || len(unserved) == 0 {
			return list, err
		}
		if try == 2 {
			return nil, l.m.kindMissing(unserved[0])
		}
		l.m.ResetDiscovery()
	}
}

// asSent adds what Helm and Starling add to an object of a release.
func (m *Manager) asSent(ref Ref, u *unstructured.Unstructured) *unstructured.Unstructured {
	u.Object = chart.Applied(u.Object)
	annotations := u.GetAnnotations()
	if annotations[helm.HookAnnotation] != "" {
		return u // Helm marks no objects of hooks
	}
	u.SetAnnotations(labels.Merge(annotations, labels.Set{helmName: ref.Name, helmNamespace: ref.Namespace}))
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{effect.ReleasedByLabel: m.o.Instance, helmManages: "Helm"}))
	return u
}

// runsOnce says that an object which is gone may have done its work: a Pod that is not started
// again, or a Job that goes when its time is over. It is not made anew.
func runsOnce(u *unstructured.Unstructured) bool {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		policy, _, _ := unstructured.NestedString(u.Object, "spec", "restartPolicy")
		return policy != "" && policy != "Always"
	case jobKind:
		_, goes, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "ttlSecondsAfterFinished")
		return goes
	}
	return false
}

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// kindMissing says that the cluster does not serve the kind of an object, and what to do. Nobody can bring a definition
// of a kind of Kubernetes itself.
func (m *Manager) kindMissing(o chart.Object) error {
	do := "; its CustomResourceDefinition belongs into crds/ of a module that comes before"
	if caps, err := m.capabilities(); err == nil {
		if instead := versionOf(caps.APIVersions, o.APIVersion, o.Kind); instead != "" {
			do = " (write apiVersion: " + instead + ")"
		}
	}
	err := fmt.Errorf("%s %q: the cluster does not serve kind %[1]s of %[3]s%s", o.Kind, o.Name, o.APIVersion, do)
	return &lane.Awaits{Err: err, For: lane.AwaitsKind}
}

// versionOf is the API version in which a kind is served; served lists all, as "apps/v1/Deployment", in the order of
// names. It is of the same group, or, of the groups of Kubernetes itself, of another one; a stable one, and a later one,
// before others. It is "" for kinds that are not served.
func versionOf(served []string, apiVersion, kind string) (nearest string) {
	native := func(group string) bool { return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") }
	of, least := schema.FromAPIVersionAndKind(apiVersion, kind).Group, 3
	for _, entry := range served {
		version, is := strings.CutSuffix(entry, "/"+kind)
		group, far := schema.FromAPIVersionAndKind(version, kind).Group, 0
		if !is || group != of && !(native(of) && native(group)) {
			continue
		}
		if group != of {
			far += 2
		}
		if strings.Contains(version, "alpha") || strings.Contains(version, "beta") {
			far++
		}
		if far <= least {
			nearest, least = version, far
		}
	}
	return nearest
}
