package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// Leftovers are objects that the next revision of a release no longer holds: those of the revision before it, and of
// revisions that failed since. They stand in the release's record before the next one is made and until they are gone,
// so a restart forgets none, and a release with leftovers is not done.

// left reads the leftovers that are recorded and, when the last revision is not deployed,
// adds what the revisions since the last good one hold.
func (m *Manager) left(ctx context.Context, ref Ref, last revision) ([]chart.Object, error) {
	rec, err := m.records.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	left := rec.Left
	switch s := last.Status; {
	case last.Number == 0, s == helm.StatusDeployed, s == helm.StatusSuperseded, s == helm.StatusUninstalled:
		return left, nil
	}
	revisions, err := m.revisions(ctx, ref)
	if err != nil {
		return nil, err
	}
	for _, r := range revisions {
		rel, _, err := m.read(ctx, ref, r.Number)
		_, unreadable := errors.AsType[*helm.Unreadable](err)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil && !unreadable {
			return nil, err
		}
		var found []chart.Object
		if err == nil {
			found, err = chart.ObjectsOf(rel.Manifest)
		}
		if err != nil { // Helm leaves it out, too
			m.o.Log.Warn().Str("release", ref.Name).Int("revision", r.Number).Msg("a revision, or its manifest, cannot be read: objects that only it holds are not found again")
			continue
		}
		left = chart.Merge(ref.Namespace, left, found)
		if r.Status == helm.StatusDeployed || r.Status == helm.StatusSuperseded {
			break // what came before it was dealt with when it was made
		}
	}
	return left, nil
}

func (m *Manager) placed(list []chart.Object) []chart.Object {
	return chart.Placed(list, m.clusterWide)
}

// sweep deletes the leftovers of a release and records which are still there. The error says which, and why.
func (m *Manager) sweep(ctx context.Context, ref Ref) error {
	rec, err := m.records.get(ctx, ref)
	if err != nil || len(rec.Left) == 0 {
		return err
	}
	failed := make([]error, len(rec.Left))
	var stays atomic.Bool
	refused, _ := m.order(true).Each(len(rec.Left), func(i int) string { return rec.Left[i].Kind }, func(i int) error {
		if rec.Left[i].Kind == "Namespace" && stays.Load() {
			failed[i] = errors.New("it may hold another one")
		} else {
			failed[i] = m.remove(ctx, ref, rec.Left[i])
		}
		if failed[i] != nil {
			stays.Store(true)
			return fmt.Errorf("%s: %w", rec.Left[i], tidy(failed[i]))
		}
		return nil
	})
	var still []chart.Object
	for i, o := range rec.Left {
		if failed[i] != nil {
			still = append(still, o)
		}
	}
	if len(still) < len(rec.Left) {
		rec.Left = still
		if err := m.records.set(ctx, rec); err != nil {
			return err
		}
	}
	switch {
	case len(still) == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(still) == 1:
		return fmt.Errorf("the release no longer holds an object that cannot be deleted, which is tried again: %w", refused[0])
	}
	return fmt.Errorf("the release no longer holds %d objects that cannot be deleted, which is tried again; the first is %w", len(still), refused[0])
}

// remove deletes one object, if it is there and belongs to the release.
func (m *Manager) remove(ctx context.Context, ref Ref, o chart.Object) error {
	mapping, _, err := m.mapping(o.GVK())
	if meta.IsNoMatchError(err) {
		return m.unserved(ctx, o)
	}
	if err != nil {
		return err
	}
	_, err = m.take(ctx, ref, mapping, keyOf(mapping, cmp.Or(o.Namespace, ref.Namespace), o.Name), true)
	return err
}

// unserved says nothing when the API server itself does not know the kind of o any more:
// its objects are gone with it. That discovery does not list it is not enough, for the
// server behind an APIService may be down.
func (m *Manager) unserved(ctx context.Context, o chart.Object) error {
	path := "/api/" + o.APIVersion
	if strings.Contains(o.APIVersion, "/") {
		path = "/apis/" + o.APIVersion
	}
	var served metav1.APIResourceList
	err := m.core.RESTClient().Get().AbsPath(path).Do(ctx).Into(&served)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking whether kind %s is served: %w", o.Kind, err)
	}
	for _, r := range served.APIResources {
		if r.Kind == o.Kind {
			m.ResetDiscovery()
			return fmt.Errorf("kind %s is served again", o.Kind)
		}
	}
	return nil
}

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
