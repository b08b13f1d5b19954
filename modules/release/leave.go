package release

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

// update is Helm's Update, object by object: each that others have a part of is read just before Helm merges it, and
// loses that part on both sides of the merge. Errors and deletions are as Helm has them.
func (c *client) update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	all := &kube.Result{}
	var failed []string
	for _, info := range target {
		was := original.Get(info)
		if was == nil {
			was = info // as Helm takes an object that it takes over
		}
		if err := c.leave(was, info); err != nil {
			return all, err
		}
		res, err := c.Client.UpdateThreeWayMerge(kube.ResourceList{was}, kube.ResourceList{info}, force)
		all.Created, all.Updated = append(all.Created, res.Created...), append(all.Updated, res.Updated...)
		if err != nil && len(res.Updated) == 0 { // it could not be read or made
			return all, err
		}
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) > 0 {
		return all, errors.New(strings.Join(failed, " && "))
	}
	deleted, _ := c.delete(original.Difference(target), metav1.DeletePropagationBackground, true) // others are noted down
	all.Deleted = deleted
	return all, nil
}

// DeleteWithPropagationPolicy deletes the objects of a release that goes.
func (c *client) DeleteWithPropagationPolicy(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	deleted, errs := c.delete(resources, policy, false)
	return &kube.Result{Deleted: deleted}, errs
}

// lookBeside is how many objects are read, or deleted, at once.
const lookBeside = 16

// delete deletes objects of the release, kind by kind as Helm does, and leaves what another one has taken over,
// or waits for: Helm would delete these, too. It returns the objects that are gone. keep leaves objects that
// ask for it.
func (c *client) delete(list kube.ResourceList, policy metav1.DeletionPropagation, keep bool) (gone kube.ResourceList, errs []error) {
	done, failed := make([]bool, len(list)), make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(lookBeside)
	for i, info := range list {
		if i > 0 && info.Mapping.GroupVersionKind != list[i-1].Mapping.GroupVersionKind {
			_ = group.Wait() // each has its own error
		}
		group.Go(func() error {
			done[i], failed[i] = c.deleteOne(info, policy, keep)
			return nil
		})
	}
	_ = group.Wait()
	for i, info := range list {
		if failed[i] != nil {
			errs = append(errs, failed[i])
		} else if done[i] {
			gone = append(gone, info)
		}
	}
	return gone, errs
}

// deleteOne deletes one object, if it belongs to the release.
func (c *client) deleteOne(info *resource.Info, policy metav1.DeletionPropagation, keep bool) (gone bool, err error) {
	helper := resource.NewHelper(info.Client, info.Mapping)
	return deleteSeen(policy, func() (at metav1.Object, gone bool, err error) {
		live, err := helper.Get(info.Namespace, info.Name)
		if err != nil {
			return nil, false, err
		}
		if at, err = meta.Accessor(live); err != nil {
			return nil, false, err
		}
		key, of := keyOf(info.Mapping, info.Namespace, info.Name), at.GetAnnotations()[helmName]
		ours := of == c.ref.Name && at.GetAnnotations()[helmNamespace] == c.ref.Namespace
		if of == "" { // somebody has taken it off, or anybody has written the record of the release
			if ours = at.GetLabels()[effect.ReleasedByLabel] == c.m.o.Instance; !ours {
				c.m.o.Log.Warn().Str("release", c.ref.Name).Msgf("%s stays: it has neither the annotation %s nor the label %s of an object of this release; delete it if nobody needs it", key, helmName, effect.ReleasedByLabel)
			}
		}
		switch {
		case !ours, c.m.claimed(c.ref, key):
			c.others.Store(info, nil)
			return nil, true, nil // nothing is left of it here
		case keep && at.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy:
			return nil, false, nil
		}
		return at, false, nil
	}, func(o metav1.DeleteOptions) error {
		_, err := helper.DeleteWithOptions(info.Namespace, info.Name, &o)
		return err
	})
}

// mostLooks is how often an object is looked at that others change all the time.
const mostLooks = 5

// deleteSeen deletes an object as look has found it, and no other one of its name. One that somebody has changed
// since, who may have taken it over, is looked at again. Without an object from look nothing is deleted; gone then
// says whether that is the end of it.
func deleteSeen(policy metav1.DeletionPropagation, look func() (at metav1.Object, gone bool, err error), remove func(metav1.DeleteOptions) error) (gone bool, err error) {
	uid := types.UID("")
	for try := 1; ; try++ {
		at, gone, err := look()
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil || at == nil {
			return gone, err
		}
		version := at.GetResourceVersion()
		uid = cmp.Or(uid, at.GetUID())
		err = remove(metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case !apierrors.IsConflict(err) || try == mostLooks:
			return err == nil, err
		}
	}
}

// leave takes out of a merge what others have of an object that is there.
func (c *client) leave(was, info *resource.Info) error {
	want, is := info.Object.(*unstructured.Unstructured)
	before, known := was.Object.(*unstructured.Unstructured)
	kind := info.Mapping.GroupVersionKind
	paths, all := owned.Ignored(c.ignore, kind.GroupVersion().String(), kind.Kind, info.Name)
	if !is || !known || !all && len(paths) == 0 && !owned.HasHandovers(before.Object, want.Object) {
		return nil
	}
	live, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	now, is := live.(*unstructured.Unstructured)
	if err != nil || !is {
		return err // Helm's own read would fail, too
	}
	if all {
		onlyNames(want)
		onlyNames(before)
		return nil
	}
	want.Object, before.Object = plainSecret(want.Object), plainSecret(before.Object)
	had := before.Object
	if was == info { // nothing of it is known
		had = map[string]any{}
	}
	said := []map[string]any{before.Object}
	if fields := now.GetManagedFields(); c.tried != nil && len(owned.HandedOver(fields)) > 0 {
		said = append(said, c.tried(info, owned.LastWrite(fields, FieldManager()))...)
	}
	paths = append(paths[:len(paths):len(paths)], owned.Unchanged(now.GetManagedFields(), want.Object, said...)...)
	owned.Leave(had, want.Object, now.Object, paths)
	return nil
}

// onlyNames leaves of an object what it is called, and what says whose it is and whether it stays.
func onlyNames(u *unstructured.Unstructured) {
	only := func(all map[string]string, is func(string) bool) (some map[string]string) {
		for key, v := range all {
			if is(key) {
				if some == nil {
					some = map[string]string{}
				}
				some[key] = v
			}
		}
		return some
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetLabels(only(u.GetLabels(), func(key string) bool {
		return slices.Contains([]string{effect.ReleasedByLabel, "app.kubernetes.io/managed-by"}, key)
	}))
	out.SetAnnotations(only(u.GetAnnotations(), func(key string) bool {
		return strings.HasPrefix(key, "meta.helm.sh/") || strings.HasPrefix(key, "helm.sh/")
	}))
	u.Object = out.Object
}
