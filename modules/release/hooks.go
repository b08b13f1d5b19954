package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
)

// hooks runs the hooks of a chart at a point of its release, one after the other, by their weights and names. Each is
// made anew by the rules of its delete policy; a Job or Pod is waited for. members are objects of the release: a hook
// that takes the place of one is applied to it, and nothing is deleted, but Jobs and Pods, which have to run.
func (l *life) hooks(rel *helm.Release, at helm.HookEvent, members []stored) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("failed %s: %w", at, err)
		}
	}()
	list := slices.DeleteFunc(slices.Clone(rel.Hooks), func(h *helm.Hook) bool { return !slices.Contains(h.Events, at) })
	slices.SortStableFunc(list, func(a, b *helm.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	test := at == helm.HookTest // one that has failed holds up no other
	for i, h := range list {
		if err := l.overtaken(); err != nil { // it would run twice
			return err
		}
		if len(h.DeletePolicies) == 0 || test && !slices.Contains(h.DeletePolicies, helm.HookBeforeHookCreation) {
			h.DeletePolicies = append(h.DeletePolicies, helm.HookBeforeHookCreation)
		}
		objects, err := l.beginHook(rel, h, members)
		if err != nil {
			return err
		}
		err = l.awaitHook(h, objects, test)
		if h.LastRun.CompletedAt = l.now(); err != nil {
			defer l.afterTime()()
			err = fmt.Errorf("%s: %w", h.Path, err)
			for _, done := range list[:i] {
				err = cmp.Or(err, l.deleteHook(done, helm.HookSucceeded, members))
			}
			return cmp.Or(err, l.deleteHook(h, helm.HookFailed, members))
		}
		h.LastRun.Phase = helm.HookPhaseSucceeded
	}
	for _, h := range slices.Backward(list) {
		if err := l.deleteHook(h, helm.HookSucceeded, members); err != nil {
			return err
		}
	}
	return nil
}

// beginHook makes the objects of a hook.
func (l *life) beginHook(rel *helm.Release, h *helm.Hook, members []stored) ([]stored, error) {
	objects, err := l.served(h.Manifest)
	if err == nil && l.target.Name != "" { // a release that ends holds what it was allowed
		err = l.m.limitList(l.target, objects)
	}
	if err == nil {
		err = l.deleteHook(h, helm.HookBeforeHookCreation, members)
	}
	if err != nil {
		return nil, err
	}
	since := l.since
	if !h.LastRun.CompletedAt.IsZero() { // what is there was made for another event
		since = time.Time{}
	}
	h.LastRun = helm.HookExecution{StartedAt: l.now(), Phase: helm.HookPhaseRunning}
	if err := l.record(rel, false); err != nil {
		return nil, err
	}
	h.LastRun.Phase = helm.HookPhaseFailed
	if err := l.m.each(objects, false, func(i int) error { return l.makeHook(objects[i], members, since) }); err != nil {
		h.LastRun.CompletedAt = l.now()
		return nil, fmt.Errorf("%s: %w", h.Path, err)
	}
	return objects, nil
}

// HooksRan are the times in which Jobs and Pods of the hooks of a revision ran.
func HooksRan(rel *helm.Release) (spans []owned.Span) {
	for _, h := range rel.Hooks {
		if run := h.LastRun; (h.Kind == "Job" || h.Kind == "Pod") && !run.CompletedAt.IsZero() {
			spans = append(spans, owned.Span{From: run.StartedAt.Time, To: run.CompletedAt.Time})
		}
	}
	return spans
}

func isOf(members []stored, s stored) bool {
	return slices.ContainsFunc(members, func(m stored) bool { return m.key.AnyVersion() == s.key.AnyVersion() })
}

// runs says whether an object is waited for until it has ended.
func runs(s stored) bool { return s.key.Kind == "Job" || s.key.Kind == "Pod" }

// seenFor is how long a Job of a hook stays at least once it has ended: else nobody sees how.
const seenFor = 60

// makeHook makes an object of a hook, or applies it to a member of the release, or to a namespace or definition that
// stays. An object that was made since is of an earlier try.
func (l *life) makeHook(s stored, members []stored, since time.Time) error {
	to, definition := l.to(s), s.mapping.Resource == crdResource()
	if !runs(s) && isOf(members, s) || isNamespace(s) || definition {
		live, err := to.Get(l.ctx, s.key.Name, metav1.GetOptions{})
		if err == nil {
			switch by := l.others(s.key, live); {
			case by == "" || isOf(members, s) || definition && by == noRelease && l.target.Adopt:
			case definition:
				return held(s.key, by)
			default:
				return foreign(s.key, by)
			}
			c := change{ref: l.ref, s: s, live: live}
			_, _, err = c.apply(l.ctx, l.m.writer(l.warn), to)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if ttl, is, _ := unstructured.NestedInt64(s.obj.Object, "spec", "ttlSecondsAfterFinished"); is && ttl < seenFor && s.key.Kind == "Job" {
		_ = unstructured.SetNestedField(s.obj.Object, int64(seenFor), "spec", "ttlSecondsAfterFinished")
	}
	_, err := to.Create(l.ctx, s.obj, metav1.CreateOptions{FieldManager: l.ref.hookManager()})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	err = fmt.Errorf("%w: delete it, or have each release delete it with the annotation "+
		"helm.sh/hook-delete-policy: before-hook-creation", err)
	if since.IsZero() {
		return err
	}
	live, lost := to.Get(l.ctx, s.key.Name, metav1.GetOptions{})
	if lost != nil || live.GetCreationTimestamp().Time.Before(since.Truncate(time.Second)) || !l.ref.hooked(live) {
		return err
	}
	if _, failed := result(live); failed == nil || !runs(s) { // a process that has ended early has made it for this try
		return nil
	}
	uid, background := live.GetUID(), metav1.DeletePropagationBackground
	lost = to.Delete(l.ctx, s.key.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if lost == nil {
		lost = l.gone([]stored{s})
	}
	if lost != nil {
		return lost
	}
	_, err = to.Create(l.ctx, s.obj, metav1.CreateOptions{FieldManager: l.ref.hookManager()})
	return err
}

// deleteHook deletes the objects of a hook that has the policy, and waits until they are gone. Definitions stay, with
// all their objects, and so do namespaces that have any. Those of others are refused.
func (l *life) deleteHook(h *helm.Hook, policy helm.HookDeletePolicy, members []stored) error {
	if h.Kind == "CustomResourceDefinition" {
		return nil
	}
	asked := slices.Contains(h.DeletePolicies, policy)
	objects, _, err := l.m.storedObjects(l.ref, h.Manifest)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(s stored) bool {
		if isOf(members, s) && (!runs(s) || policy == helm.HookBeforeHookCreation) {
			return !runs(s)
		}
		return !asked
	})
	err = l.delete(objects, false, true, func(s stored) (bool, error) {
		in := l.m.meta.Resource(s.mapping.Resource).Namespace(s.key.Namespace)
		return deleteSeen(l.ctx, in, s.key.Name, func(live *metav1.PartialObjectMetadata) (goes, gone bool, err error) {
			if by := l.others(s.key, live); by != "" {
				return false, false, foreign(s.key, by)
			}
			if isNamespace(s) {
				why, err := l.m.inhabited(l.ctx, l.ref, s.key.Name, false)
				return why == "", false, err
			}
			return true, false, nil
		})
	})
	if err != nil {
		return fmt.Errorf("deleting hook %s: %w", h.Path, err)
	}
	return nil
}

// awaitHook waits for the Jobs and Pods of a hook until they have succeeded or failed, by Helm's rules; other kinds
// are ready at once. One that is gone counts as done, unless it is a test.
func (l *life) awaitHook(h *helm.Hook, objects []stored, test bool) error {
	if !slices.Contains(h.DeletePolicies, helm.HookBeforeHookCreation) && !slices.Contains(h.DeletePolicies, helm.HookFailed) {
		defer func(over context.Context) { l.over = over }(l.over)
		l.over = context.Background() // while it is there no other one can be made
	}
	objects = slices.DeleteFunc(slices.Clone(objects), func(s stored) bool { return !runs(s) })
	return l.until(objects, func(s stored) (why string, err error) {
		live, err := l.to(s).Get(l.ctx, s.key.Name, metav1.GetOptions{})
		switch gone := apierrors.IsNotFound(err); {
		case gone && test:
			return "", &ended{fmt.Errorf("%s %s was deleted before it had ended", strings.ToLower(s.key.Kind), s.key.Name)}
		case gone:
			return "", nil
		case err != nil:
			return "", err
		}
		over, failed := result(live)
		if failed != nil {
			return "", &ended{failed}
		}
		if !over {
			why = fmt.Sprintf("%s %s has not finished", s.key.Kind, s.key.Name)
		}
		return why, nil
	})
}
