package release

import (
	"fmt"
	"slices"

	"github.com/starling-operator/starling/modules/helm"
)

// end ends a release: hooks before, its objects, hooks after, its revisions, the newest one last. One that was cut off
// stays "uninstalling", and is begun again. wait: until the objects are gone; hookless: without hooks.
func (l *life) end(last revision, wait, hookless bool) error {
	rel, err := l.read(last.Number)
	if err != nil {
		return l.ended(fmt.Errorf("%w: delete what it has made, then the Secret %s in namespace %s", err, helm.Key(l.ref.Name, last.Number), l.ref.Namespace))
	}
	l.holds = int64(len(rel.Manifest))
	return l.ended(l.endOf(rel, wait, hookless))
}

func (l *life) endOf(rel *helm.Release, wait, hookless bool) error {
	if rel.Info.Status != helm.StatusUninstalled {
		objects, unserved, err := l.m.storedObjects(l.ref, rel.Manifest)
		if err != nil {
			return err
		}
		for _, o := range unserved {
			if err := l.m.unserved(l.ctx, o); err != nil {
				return err
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
		if err := l.hooks(rel, helm.HookPreDelete, nil); err != nil {
			return err
		}
		if err := l.record(rel, false); err != nil {
			return err
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
			return err
		}
		if err := l.hooks(rel, helm.HookPostDelete, nil); err != nil {
			return err
		}
	}
	all, err := l.m.revisions(l.ctx, l.ref)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(all) {
		if err := l.m.drop(l.ctx, l.ref, r.Number); err != nil {
			return err
		}
	}
	return nil
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
