package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
)

// uninstallTimeout bounds an uninstall that has no timeout.
const uninstallTimeout = 10 * time.Minute

// ApplyCRDs applies the crds/ of a module.
func (x *Executor) ApplyCRDs(ctx context.Context, a engine.ApplyCRDs) error {
	return x.applyCRDs(ctx, a.Module)
}

// ForgetCRDs drops what is remembered of the definitions of a module that is gone.
func (x *Executor) ForgetCRDs(ctx context.Context, module string) error {
	return x.o.Releases.ForgetCRDs(ctx, module)
}

func (x *Executor) applyCRDs(ctx context.Context, m *generation.Module) error {
	ref := release.Ref{Module: m.Name, Name: m.Decl.Release, Namespace: m.Decl.Namespace}
	changed, err := x.o.Releases.ApplyCRDs(ctx, ref, release.CRDOptions{Adopt: m.Decl.Adopt, Force: m.Decl.ForceCRDs}, chart.Label(m.Tree.CRDs, m.Decl.Labels))
	if changed {
		x.o.Client.Refresh()
		x.o.Releases.ResetDiscovery()
		x.o.Watches.Kick()
	}
	return err
}

// Release installs or upgrades the release of a module, after its crds/ in case that
// somebody has removed them. The result tells what was done.
func (x *Executor) Release(ctx context.Context, a engine.Release) (engine.Released, release.Result) {
	decl := a.Module.Decl
	var vals map[string]any
	err := x.marked("chart_values() of "+a.Module.Name, x.host().Digest(a.Module.Tree.ModuleFile), func() (err error) {
		vals, err = hook.ChartValues(x.metered(ctx, a.Module.Name), x.host(), a.Module, a.Values, a.Secrets.Texts, x.o.Now(), x.o.Log(a.Module.Name, ""))
		return err
	})
	if err != nil {
		return engine.Released{Op: a.Op, Err: err}, release.Result{}
	}
	if err := x.applyCRDs(ctx, a.Module); err != nil {
		return engine.Released{Op: a.Op, Err: fmt.Errorf("crds: %w", err)}, release.Result{}
	}
	ref := release.Ref(a.Ref)
	watched := a.Drift != builtins.DriftIgnore
	var standing func() release.Objects
	if watched {
		standing = x.o.Drift.Begin(ref, decl.Ignore)
	} else {
		x.o.Drift.Forget(ref)
	}
	result, err := x.o.Releases.Reconcile(ctx, release.Target{
		Input: chart.Input{
			Module: a.Ref.Module, Name: a.Ref.Name, Namespace: a.Ref.Namespace, Chart: a.Module.Tree.Chart,
			Values: a.Module.ChartExports.Exports(vals), Reads: a.Module.ChartReads, CRDs: a.Module.Tree.CRDs,
			Installs: decl.Installs, Lookup: decl.Lookup, Test: decl.Test, Labels: decl.Labels,
		},
		Secrets: a.Secrets.Texts, Adopt: decl.Adopt, ForceCRDs: decl.ForceCRDs, Wait: decl.Wait, Rollback: decl.Rollback, Timeout: decl.Timeout,
		Ignore: decl.Ignore, IgnoreDrift: !watched, Standing: standing,
	})
	if err == nil && watched {
		x.o.Drift.Expect(ref, result.Objects)
	}
	if err == nil && result.RolledBack != "" {
		err = &lane.Awaits{Err: errors.New(result.RolledBack), For: lane.AwaitsChange}
	}
	changed := result.Action != "" && result.Action != release.ActionUnchanged
	if changed {
		// The chart may have brought kinds that hooks wait for.
		x.o.Watches.Kick()
	}
	return engine.Released{Op: a.Op, Err: err, Changed: changed, Revision: result.Revision, Unknown: result.Unknown}, result
}

// Repair puts objects of a release right that are not as Starling has left them, or finds them and
// no more.
func (x *Executor) Repair(ctx context.Context, a engine.Repair) engine.Repaired {
	ref, decl, asked := release.Ref(a.Ref), a.Module.Decl, a.Refs()
	var gone []effect.Ref
	for _, o := range a.Objects {
		if o.Missing {
			gone = append(gone, o.Ref)
		}
	}
	result, err := x.o.Releases.Repair(ctx, release.RepairTarget{
		Only: asked, Gone: gone, Report: a.Drift == builtins.DriftReport,
		Target: release.Target{
			Input:  chart.Input{Module: ref.Module, Name: ref.Name, Namespace: ref.Namespace, Installs: decl.Installs},
			Ignore: decl.Ignore, Secrets: a.Secrets.Texts, Timeout: decl.Timeout,
		},
	})
	if a.Drift == builtins.DriftReport {
		result.Written = nil
	}
	if !result.Lost {
		now := x.o.Drift.Repaired(ref, drift.Repair{Asked: asked, Objects: result.Objects, Ended: err == nil && result.Waits == ""})
		if err == nil && a.Objects != nil && now.Digest != "" {
			err = x.o.Releases.NoteObjects(ctx, ref, now)
		}
	}
	if a.Drift == builtins.DriftReport {
		result.Edits = nil
	}
	return engine.Repaired{
		Op: a.Op, Err: err, Failed: result.Failed, Lost: result.Lost, Waits: result.Waits, Written: result.Written,
		Changes: ChangesOf(result.Edits), Left: ChangesOf(result.Left),
	}
}

// Uninstall takes a release away, or gives it back. Done is false when there was none.
func (x *Executor) Uninstall(ctx context.Context, a engine.Uninstall) (done bool, err error) {
	timeout := cmp.Or(a.Timeout, uninstallTimeout)
	x.o.Drift.Forget(release.Ref(a.Ref))
	if a.GiveBack {
		return x.o.Releases.GiveBack(ctx, release.Ref(a.Ref), timeout)
	}
	return x.o.Releases.Uninstall(ctx, release.Ref(a.Ref), timeout)
}

// ChangesOf are edits of objects, in their order.
func ChangesOf(edits map[release.Key][]owned.Edit) (out []engine.Change) {
	for _, key := range slices.SortedFunc(maps.Keys(edits), effect.Ref.Compare) {
		out = append(out, engine.Change{Ref: key, Edits: edits[key]})
	}
	return out
}
