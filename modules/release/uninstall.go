package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
		// Helm deletes what the last revision holds.
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
	return m.records.remove(ctx, ref)
}

func (m *Manager) uninstall(ctx context.Context, ref Ref, last revision, wait bool, timeout time.Duration) error {
	l, err := m.open(ctx, ref, Target{Timeout: cmp.Or(timeout, defaultTimeout)})
	if err != nil {
		return err
	}
	_, skip := m.hookless.LoadAndDelete(Ref{Module: ref.Module})
	if err := l.end(last, wait, skip && last.Status == helm.StatusUninstalling); err != nil {
		return m.kept(ctx, ref, err)
	}
	return nil
}

// whole says whether a release is uninstalling of which nothing is deleted yet: a pre-delete hook has not succeeded.
func (m *Manager) whole(ctx context.Context, ref Ref) bool {
	rel, err := m.Last(ctx, ref.Namespace, ref.Name)
	return err == nil && rel != nil && rel.Info.Status == helm.StatusUninstalling && slices.ContainsFunc(rel.Hooks, func(h *helm.Hook) bool {
		return slices.Contains(h.Events, helm.HookPreDelete) && h.LastRun.Phase != helm.HookPhaseSucceeded
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

// kept is the error of an uninstall with what its reader can do.
func (m *Manager) kept(ctx context.Context, ref Ref, err error) error {
	if !m.whole(context.WithoutCancel(ctx), ref) {
		return fmt.Errorf("uninstalling %s: %w", ref, err)
	}
	return fmt.Errorf("uninstalling %s, by a pre-delete hook of its chart: %w; its objects stay: switch the module on again, mend what keeps the hook, or have it skipped by: kubectl annotate module %s %s=%s",
		ref, err, ref.Module, effect.ReconcileAnnotation, effect.WithoutHooks)
}
