package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// Uninstall removes the release and its history, then its record. done says that nothing of the release is left; a
// release that is not there is no error. Only releases of this instance and module are touched: for any other the
// error says whose it is. timeout 0 means 10 minutes.
func (m *Manager) Uninstall(ctx context.Context, ref Ref, timeout time.Duration) (done bool, err error) {
	ctx, leave, err := m.enter(ctx, timeout)
	if err != nil {
		return false, err
	}
	defer leave(&err)
	defer m.glances.forget(ref)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	m.ending.Store(ref.Module, end)
	defer m.ending.Delete(ref.Module)
	last, err := m.latest(ctx, ref)
	if err != nil {
		return false, err
	}
	if last.Number > 0 {
		if who := owner(last.Labels, m.o.Instance, ref.Module); who != "" {
			return false, errForeign(ref, who)
		}
		// Objects of the last revision are not left: they go with that.
		left, err := m.left(ctx, ref, last)
		if err != nil {
			return false, err
		}
		if err := m.records.set(ctx, record{Ref: ref, Left: left}); err != nil {
			return false, err
		}
		if err := m.uninstall(ctx, ref, last, false, timeout); err != nil {
			return false, err
		}
	}
	if err := m.giveBackCRDs(ctx, ref.Module); err != nil {
		return false, err
	}
	if err := m.sweep(ctx, ref); err != nil {
		return false, fmt.Errorf("uninstalling %s: %w", ref, err)
	}
	return true, m.forget(ctx, ref)
}

// forget drops what is known of a release, and its record.
func (m *Manager) forget(ctx context.Context, ref Ref) error {
	for _, of := range m.remembered() {
		of.Delete(ref)
	}
	return m.records.change(ctx, recordKey(ref), nil)
}

// uninstall ends a release: hooks before, its objects, hooks after, its revisions, the newest one last. One that was
// cut off stays "uninstalling", and is begun again. wait: until the objects are gone. An error says what its reader can
// do.
func (m *Manager) uninstall(ctx context.Context, ref Ref, last revision, wait bool, timeout time.Duration) error {
	l, err := m.open(ctx, ref, Target{Timeout: cmp.Or(timeout, defaultTimeout)})
	if err != nil {
		return err
	}
	_, skip := m.hookless.LoadAndDelete(Ref{Module: ref.Module})
	var at helm.HookEvent
	rel, _, err := m.read(ctx, ref, last.Number)
	if err != nil {
		err = fmt.Errorf("%w: delete what it has made, then the Secret %s in namespace %s", err, helm.Key(ref.Name, last.Number), ref.Namespace)
	} else {
		texts := map[string]string{"": rel.Manifest}
		for _, h := range rel.Hooks {
			texts[h.Path] += h.Manifest
		}
		l.mask = *newMask(Target{Input: chart.Input{Values: rel.Config}}, rendering{files: texts})
		at, err = l.end(rel, wait, skip && last.Status == helm.StatusUninstalling)
	}
	stays := map[helm.HookEvent]string{helm.HookPreDelete: "stay: switch the module on again, ", helm.HookPostDelete: "are deleted: "}[at]
	switch err = l.ended(err); {
	case err == nil:
		return nil
	case stays == "":
		return fmt.Errorf("uninstalling %s: %w", ref, err)
	}
	return fmt.Errorf("uninstalling %s, by a %s hook of its chart: %w; its objects %smend what keeps the hook, or have it skipped by: kubectl annotate --overwrite module %s %s=%s",
		ref, at, err, stays, ref.Module, effect.ReconcileAnnotation, effect.WithoutHooks)
}

// whole says whether a release is uninstalling and nothing of it is deleted yet: a pre-delete hook has not succeeded
// since then.
func whole(rel *helm.Release) bool {
	return rel.Info.Status == helm.StatusUninstalling && slices.ContainsFunc(rel.Hooks, func(h *helm.Hook) bool {
		return slices.Contains(h.Events, helm.HookPreDelete) &&
			(h.LastRun.Phase != helm.HookPhaseSucceeded || h.LastRun.StartedAt.Before(rel.Info.Deleted))
	})
}

var errAgain = errors.New("somebody asks for another try")

// Again ends a try of an uninstall that is under way, so that the next one comes at once. Without hooks of the chart,
// when an uninstall had begun; a module that is on again forgets that. A revision that was rolled back is tried once
// more.
func (m *Manager) Again(module string, hookless bool) {
	m.again.Store(Ref{Module: module}, nil)
	if hookless {
		m.hookless.Store(Ref{Module: module}, nil)
	}
	if end, is := m.ending.Load(module); is {
		end.(context.CancelCauseFunc)(errAgain)
	}
}

// end is uninstall, once the revision is read; hookless: without hooks. at is when the hook runs that has failed.
func (l *life) end(rel *helm.Release, wait, hookless bool) (at helm.HookEvent, err error) {
	holds(l.ctx, len(rel.Manifest))
	if rel.Info.Status != helm.StatusUninstalled {
		objects, unserved, err := l.m.storedObjects(l.ref, rel.Manifest)
		if err != nil {
			return "", err
		}
		for _, o := range unserved {
			if err := l.m.unserved(l.ctx, o); err != nil {
				return "", err
			}
		}
		if rel.Info.Status == helm.StatusUninstalling {
			l.since = rel.Info.Deleted.Time
		} else {
			rel.Info.Status, rel.Info.Deleted = helm.StatusUninstalling, l.now()
		}
		delete(rel.Labels, LabelInputs) // the next try of it is a new revision
		delete(rel.Labels, LabelManifest)
		rel.Info.Description = "Deletion in progress (or silently failed)"
		if hookless {
			rel.Hooks = nil
		}
		l.hooked = l.hookNames(rel)
		if whole(rel) { // else they have succeeded, and deleted what they would need once more
			if err := l.hooks(rel, helm.HookPreDelete, nil); err != nil {
				return helm.HookPreDelete, err
			}
		}
		if err := l.record(rel, false); err != nil {
			return "", err
		}
		objects = slices.DeleteFunc(objects, func(s stored) bool { return helm.Keeps(s.obj.GetAnnotations()) })
		err = l.delete(objects, true, wait, func(s stored) (bool, error) {
			deleted, err := l.m.take(l.ctx, l.ref, s.mapping, s.key, false)
			if err != nil {
				err = fmt.Errorf("%s: %w", s, err)
			}
			return deleted, err
		})
		if err != nil {
			return "", err
		}
		if err := l.hooks(rel, helm.HookPostDelete, nil); err != nil {
			return helm.HookPostDelete, err
		}
	}
	all, err := l.m.revisions(l.ctx, l.ref)
	if err != nil {
		return "", err
	}
	for _, r := range slices.Backward(all) {
		if err := l.m.drop(l.ctx, l.ref, r.Number); err != nil {
			return "", err
		}
	}
	return "", nil
}

// delete calls one for each object. With wait it returns once the deleted ones are gone.
func (l *life) delete(objects []stored, back, wait bool, one func(s stored) (deleted bool, err error)) error {
	deleted := make([]bool, len(objects))
	err := l.m.each(objects, back, func(i int) (err error) {
		deleted[i], err = one(objects[i])
		return err
	})
	if err != nil || !wait {
		return err
	}
	var goes []stored
	for i, s := range objects {
		if deleted[i] {
			goes = append(goes, s)
		}
	}
	return l.gone(goes)
}

// GiveBack makes a release one that no instance has, and leaves all of it as it is: an instance with a
// module of that name takes it over. Done says that it was this instance's. An uninstall that was
// cut off is brought to its end instead. timeout 0 means 10 minutes.
func (m *Manager) GiveBack(ctx context.Context, ref Ref, timeout time.Duration) (done bool, err error) {
	ctx, leave, err := m.enter(ctx, timeout)
	if err != nil {
		return false, err
	}
	defer leave(&err)
	defer m.glances.forget(ref)
	last, err := m.latest(ctx, ref)
	if err = cmp.Or(err, m.giveBackCRDs(ctx, ref.Module)); err != nil {
		return false, err
	}
	switch done = last.Number > 0 && owner(last.Labels, m.o.Instance, ref.Module) == ""; {
	case !done:
	case last.Status == helm.StatusUninstalling:
		err = m.uninstall(ctx, ref, last, false, timeout)
	default: // nobody works on the revision once it is marked
		if err = m.recover(ctx, ref, last, "given back: the process that worked on it ended early"); err != nil {
			return false, err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, effect.InstanceLabel)
		_, err = m.meta.Resource(secretsResource()).Namespace(ref.Namespace).
			Patch(ctx, helm.Key(ref.Name, last.Number), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			err = fmt.Errorf("giving the release back: %w", err)
		}
	}
	if err != nil {
		return false, err
	}
	return done, m.forget(ctx, ref)
}
