package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// update makes the objects of a release that are not there, applies the others, and deletes what the release had and has
// no more. One that is refused holds up no other.
func (c *client) update(original, target kube.ResourceList) (*kube.Result, error) {
	res := &kube.Result{}
	created := make([]bool, len(target))
	err := c.each(target, func(i int) (err error) {
		created[i], err = c.write(original.Get(target[i]), target[i])
		return err
	})
	for i, info := range target {
		if created[i] {
			res.Created = append(res.Created, info)
		} else {
			res.Updated = append(res.Updated, info)
		}
	}
	if err != nil {
		return res, err
	}
	deleted, _ := c.delete(original.Difference(target), metav1.DeletePropagationBackground, true) // others are noted down
	res.Deleted = deleted
	return res, nil
}

// each has f see to all objects, in the order of their kinds, and to those of one kind side by side.
func (c *client) each(list kube.ResourceList, f func(i int) error) error {
	errs := make([]error, len(list))
	for from := 0; from < len(list); {
		end := from + 1
		for end < len(list) && list[end].Mapping.GroupVersionKind == list[from].Mapping.GroupVersionKind {
			end++
		}
		var group errgroup.Group
		if group.SetLimit(lookBeside); c.lifeless {
			group.SetLimit(1) // the same requests each time
		}
		for i := from; i < end; i++ {
			group.Go(func() error {
				errs[i] = f(i)
				return nil
			})
		}
		_ = group.Wait() // each has its own error
		from = end
	}
	return errors.Join(errs...)
}

// write makes an object, or applies what is wanted of the one that is there.
func (c *client) write(was, info *resource.Info) (created bool, err error) {
	to := c.objects.Resource(info.Mapping.Resource).Namespace(info.Namespace)
	want, is := info.Object.(*unstructured.Unstructured)
	if !is {
		return false, fmt.Errorf("%s cannot be read", info.ObjectName())
	}
	want.Object = Applied(want.Object)
	live, err := to.Get(c.ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if live, err = c.writer.Create(c.ctx, to, want); err != nil {
			return false, fmt.Errorf("%s: %w", info.ObjectName(), err)
		}
		return true, info.Refresh(live, true)
	case err != nil:
		return false, fmt.Errorf("%s: %w", info.ObjectName(), err)
	}
	if live, err = c.apply(to, was, info, live); err != nil {
		return false, fmt.Errorf("cannot apply %s %s: %w", info.Mapping.GroupVersionKind.Kind, info.Name, err)
	}
	return false, info.Refresh(live, true)
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
	_ = c.each(list, func(i int) error {
		done[i], failed[i] = c.deleteOne(list[i], policy, keep)
		return nil // one that stays holds up no other
	})
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

// apply gives an object that is there what is wanted of it, and leaves to others what is theirs; was is the object in the
// revision before, nil if it was not there.
func (c *client) apply(to dynamic.ResourceInterface, was, info *resource.Info, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want, before := info.Object.(*unstructured.Unstructured), map[string]any{}
	if was != nil && was != info { // one that is taken over is the same
		before = Applied(was.Object.(*unstructured.Unstructured).Object)
	}
	kind := info.Mapping.GroupVersionKind
	paths, all := owned.Ignored(c.ignore, kind.GroupVersion().String(), kind.Kind, info.Name)
	if all {
		return c.name(to, want, live)
	}
	said := []map[string]any{before}
	if fields := live.GetManagedFields(); c.tried != nil && len(owned.HandedOver(fields)) > 0 {
		said = append(said, c.tried(info, owned.LastWrite(fields, FieldManager()))...)
	}
	if _, ours := owned.Of(live.GetManagedFields(), FieldManager(), nil); !ours && before["apiVersion"] == want.GetAPIVersion() { // nothing tells what goes
		u, names := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(before)}, want.DeepCopy()
		onlyNames(names) // they stay: a Deployment without an annotation that it had is of another generation
		u.SetLabels(labels.Merge(u.GetLabels(), names.GetLabels()))
		u.SetAnnotations(labels.Merge(u.GetAnnotations(), names.GetAnnotations()))
		now, err := c.writer.Apply(c.ctx, to, yielding(before, u, live, append(paths[:len(paths):len(paths)], owned.HandedOver(live.GetManagedFields())...)))
		if err != nil {
			return nil, err
		}
		live = now
	}
	paths = append(paths[:len(paths):len(paths)], owned.Unchanged(live.GetManagedFields(), want.Object, said...)...)
	return c.writer.Apply(c.ctx, to, yielding(before, want, live, paths))
}

// yielding is what is wanted of a live object beside what is left to others at the paths; was is what was wanted before.
func yielding(was map[string]any, want, live *unstructured.Unstructured, paths []owned.Path) apply.Object {
	o := apply.Object{Want: want.DeepCopy(), Whole: want.DeepCopy(), Live: live, Was: &unstructured.Unstructured{Object: runtime.DeepCopyJSON(was)}}
	owned.Yield(o.Was.Object, o.Want.Object, live.DeepCopy().Object, live.GetManagedFields(), FieldManager(), paths)
	owned.Keep(o.Whole.Object, live.Object, paths)
	return o
}

// name writes on an object whose it is, and leaves the rest of it.
func (c *client) name(to dynamic.ResourceInterface, want, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	onlyNames(want)
	if apply.Holds(want.Object, live.Object, FieldManager()) {
		return live, nil
	}
	body, err := want.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return to.Patch(c.ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager()})
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
