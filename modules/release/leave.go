package release

import (
	"cmp"
	"context"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// take deletes an object that is of a release, and leaves what another one has taken over, or waits for, and definitions
// that a module has in crds/. keep leaves objects that ask for it. deleted says that it is gone, or on its way.
func (m *Manager) take(ctx context.Context, ref Ref, mapping *meta.RESTMapping, key Key, keep bool) (deleted bool, err error) {
	if key.Kind == "CustomResourceDefinition" && m.defined(key.Name) {
		return false, nil
	}
	in := m.meta.Resource(mapping.Resource).Namespace(key.Namespace)
	return deleteSeen(ctx, in, key.Name, func(live *metav1.PartialObjectMetadata) (goes, gone bool, err error) {
		of := live.Annotations[helmName]
		ours := of == ref.Name && live.Annotations[helmNamespace] == ref.Namespace
		if of == "" { // somebody has taken it off, or anybody has written the record of the release
			if ours = live.Labels[effect.ReleasedByLabel] == m.o.Instance; !ours {
				m.o.Log.Warn().Str("release", ref.Name).Msgf("%s stays: it has neither the annotation %s nor the label %s of an object of this release; delete it if nobody needs it", key, helmName, effect.ReleasedByLabel)
			}
		}
		switch {
		case !ours, m.claimed(ref, key), keep && helm.Keeps(live.Annotations):
			return false, false, nil
		case live.DeletionTimestamp != nil:
			return false, true, nil
		case isNamespace(stored{mapping: mapping}):
			why, err := m.inhabited(ctx, ref, key.Name, !keep)
			if why != "" && err == nil {
				m.o.Log.Warn().Str("release", ref.Name).Msgf("%s stays, as %s: delete it if nobody needs it", key, why)
			}
			return why == "", false, err
		}
		return true, false, nil
	})
}

// mostLooks is how often an object is looked at that others change all the time.
const mostLooks = 5

// deleteSeen deletes an object that goes by what judge sees of it, and no other one of its name. One that somebody has
// changed since, who may have taken it over, is looked at again. Where it does not go, gone says whether that is the end
// of it.
func deleteSeen(
	ctx context.Context, in metadata.ResourceInterface, name string,
	judge func(live *metav1.PartialObjectMetadata) (goes, gone bool, err error),
) (gone bool, err error) {
	uid, background := types.UID(""), metav1.DeletePropagationBackground
	for try := 1; ; try++ {
		live, err := in.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if goes, gone, err := judge(live); !goes || err != nil {
			return gone, err
		}
		uid = cmp.Or(uid, live.UID)
		err = in.Delete(ctx, name, metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &live.ResourceVersion},
		})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case !apierrors.IsConflict(err) || try == mostLooks:
			return err == nil, err
		}
	}
}

// onlyNames is of an object what it is called, and what says whose it is and whether it stays.
func onlyNames(u *unstructured.Unstructured) *unstructured.Unstructured {
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	maps.DeleteFunc(labels, func(key, _ string) bool { return key != effect.ReleasedByLabel && key != helmManages })
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, "meta.helm.sh/") && !strings.HasPrefix(key, "helm.sh/")
	})
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out
}
