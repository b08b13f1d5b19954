package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/lane"
)

// maxSteps bounds the steps of one reconcile; the longest way that decide can send it is recover, render, upgrade.
const maxSteps = 6

// Reconcile brings the release to its target, with as little work as that takes: nothing when neither inputs nor
// manifest changed. It records the release before it installs it and takes over what a process that died left pending.
//
// Errors are for people: a broken template as "file:line: …", a failed action with what it was waiting for. They hold
// no values. An error that wraps ErrFenced or the context's means that the action was stopped.
func (m *Manager) Reconcile(ctx context.Context, t Target) (_ Result, err error) {
	t.Timeout = cmp.Or(t.Timeout, defaultTimeout)
	ctx, leave, err := m.enter(ctx, t.Timeout)
	if err != nil {
		return Result{}, err
	}
	defer leave(&err)
	defer m.glances.forget(t.Ref())
	m.hookless.Delete(Ref{Module: t.Module})
	r := &reconcile{m: m, ctx: ctx, t: t}
	res, err := r.run()
	res.Undone = r.undone
	if err != nil && lane.AwaitedBy(err) != lane.AwaitsChange {
		if r.last.Number == 0 { // it came before the look
			r.last, _ = m.latest(ctx, t.Ref())
		}
		res.Revision = r.last.Number
	}
	if err = readable(ctx, t, r.rendered, err); err != nil && res.Action != "" {
		err = &worded{err.Error(), errors.Join(errInRevision, err)}
	}
	return res, err
}

// readable is the error of an operation as callers get it, without secrets.
func readable(ctx context.Context, t Target, r rendering, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	if text := newMask(t, r).Text(err.Error()); text != err.Error() {
		return &worded{text, err}
	}
	return err
}

// reconcile is one call of Reconcile.
type reconcile struct {
	m        *Manager
	ctx      context.Context
	t        Target
	facts    chart.Facts
	last     revision
	want     want
	rendered rendering
	action   string // that has made a revision
	objects  Objects
	undone   map[Key][]owned.Edit
}

func (r *reconcile) run() (Result, error) {
	if err := validateName(r.t.Ref()); err != nil {
		return Result{}, err
	}
	var err error
	if r.facts, err = r.m.chartFacts(r.t); err != nil {
		return Result{}, err
	}
	if _, unserved := r.m.kindless.LoadAndDelete(r.t.Ref()); unserved {
		if _, err := r.definitions(); err != nil {
			return Result{}, err
		}
	}
	r.want = want{Instance: r.m.o.Instance, Module: r.t.Module, Adopt: r.t.Adopt, Now: r.m.o.Now(), Older: r.m.o.Older()}
	_, r.want.Again = r.m.again.LoadAndDelete(Ref{Module: r.t.Module})
	if r.t.Rollback {
		r.want.Tried = chart.Digest(fmt.Sprint(r.t.Wait, r.t.Timeout, r.t.Test))
	}
	if err := r.inputs(); err != nil {
		return Result{}, err
	}
	if err := r.look(); err != nil {
		return Result{}, err
	}
	for range maxSteps {
		next, why := decide(r.last, r.want)
		r.m.o.Log.Debug().Str("module", r.t.Module).Str("release", r.t.Name).Str("step", string(next)).Msg(why)
		switch next {
		case stepRefuse:
			return Result{}, errForeign(r.t.Ref(), why)
		case stepWait:
			return Result{}, fmt.Errorf("release %s %s", r.t.Ref(), why)
		case stepOlder:
			return Result{}, &lane.Awaits{For: lane.AwaitsTree, Err: fmt.Errorf("release %s %s", r.t.Ref(), why)}
		case stepNothing:
			return r.result(ActionUnchanged, why), r.clean()
		case stepRender:
			err = r.render()
		case stepNote:
			if err = r.note(); err == nil {
				return r.result(ActionUnchanged, why), r.clean()
			}
		case stepRecover:
			if err = r.m.recover(r.ctx, r.t.Ref(), r.last, "taken over: the process that worked on it ended early"); err == nil {
				err = r.read()
			}
		case stepFinishUninstall:
			if err = r.m.uninstall(r.ctx, r.t.Ref(), r.last, true, r.t.Timeout); err == nil {
				err = r.read()
			}
		case stepInstall, stepReplace, stepUpgrade, stepRollback:
			if err = r.act(next); err == nil {
				return r.result(r.action, why), r.m.sweep(r.ctx, r.t.Ref())
			}
		}
		if err != nil { // where a revision was made the answer to its last write may be lost
			return Result{Action: r.action}, err
		}
	}
	return Result{}, fmt.Errorf("release %s stays %s; look at it with `helm history`", r.t.Ref(), r.last.Status)
}

// look reads the newest revision, unless a list has just shown that it is as it should be.
func (r *reconcile) look() (err error) {
	if last, ok := r.m.glance(r.ctx, r.t.Ref()); ok {
		if last, err = r.m.noted(r.ctx, r.t.Ref(), last); err != nil {
			return err
		}
		if next, _ := decide(last, r.want); next == stepNothing {
			r.last = last
			return nil
		}
	}
	return r.read()
}

// read reads the newest revision.
func (r *reconcile) read() error {
	last, err := r.m.latest(r.ctx, r.t.Ref())
	if err != nil {
		return err
	}
	r.last, err = r.m.noted(r.ctx, r.t.Ref(), last)
	return err
}

// clean notes that the release is there, and deletes what is left of earlier revisions. Objects of the one that is
// deployed may be among these: another one may have ended before it began.
func (r *reconcile) clean() error {
	rec, err := r.m.records.get(r.ctx, r.t.Ref())
	if err != nil {
		return err
	}
	if len(rec.Left) > 0 {
		rel, err := r.m.Last(r.ctx, r.t.Namespace, r.t.Name)
		if err != nil || rel == nil {
			return err
		}
		had, err := chart.ObjectsOf(rel.Manifest)
		if err != nil {
			return fmt.Errorf("the stored manifest cannot be read: %w", err)
		}
		rec.Left = chart.Without(r.t.Namespace, r.m.placed(rec.Left), r.m.placed(had))
	}
	if err := r.m.records.set(r.ctx, rec); err != nil {
		return err
	}
	return r.m.sweep(r.ctx, r.t.Ref())
}

// inputs computes the digest of the inputs.
func (r *reconcile) inputs() error {
	caps, err := r.m.capabilities()
	if err != nil {
		return err
	}
	in, err := chart.InputsOf(r.t.Input, r.facts, caps)
	if err != nil {
		return err
	}
	r.want.Inputs, r.want.Chart = in.Digest, chart.Digest(r.facts.Digest)
	return r.m.ask(r.t.Ref(), in.Asks)
}

// definitions applies the chart's own CustomResourceDefinitions.
func (r *reconcile) definitions() (changed bool, err error) {
	var crds []chart.File // of its enabled subcharts, too
	if r.facts.CRDs {
		wrong := ""
		if crds, wrong, err = r.m.o.Renderer.CRDs(r.ctx, r.t.Input); err != nil {
			return false, err
		}
		if wrong != "" {
			return false, errors.New(chart.Tidy(newMask(r.t, rendering{}).Text(wrong)))
		}
	}
	of := crdOwner{whose: ofChart(r.t.Module), release: r.t.Ref(), CRDOptions: CRDOptions{r.t.Adopt, r.t.ForceCRDs}}
	return r.m.applyCRDs(r.ctx, of, chart.Label(crds, r.t.Labels))
}

// render renders the chart after its own CustomResourceDefinitions are there, as
// Helm would: as an upgrade once there is something to upgrade.
func (r *reconcile) render() error {
	changed, err := r.definitions()
	if err != nil {
		return err
	}
	if changed { // capabilities may have
		if err := r.inputs(); err != nil {
			return err
		}
	}
	upgrade := r.last.Number > 0 && r.last.Status != helm.StatusUninstalled
	if r.rendered, err = r.m.renderAs(r.ctx, r.t, upgrade, 1); err != nil {
		return err
	}
	r.want.Rendered, r.want.Manifest, r.want.Lookups = true, r.rendered.digest, r.rendered.lookups
	r.follow(r.rendered, r.last.Labels[LabelManifest] == r.want.Manifest)
	return nil
}

// act makes a revision.
func (r *reconcile) act(next step) (err error) {
	shown := r.rendered
	switch {
	case next == stepRollback:
		shown, err = r.back()
	case next == stepUpgrade && r.facts.Revision: // it prints the number that the revision gets
		shown, err = r.m.renderAs(r.ctx, r.t, true, r.want.number(r.last))
	}
	if err == nil {
		err = r.m.keepTheirObjects(r.ctx, r.t, shown)
	}
	if err != nil {
		return err
	}
	l, err := r.m.open(r.ctx, r.t.Ref(), r.t)
	if err != nil {
		return err
	}
	l.mask = *newMask(r.t, shown)
	p, err := l.plan(next, shown, r.want, r.last)
	if err != nil {
		return l.inTemplate(shown, l.ended(err))
	}
	if err = r.rights(p, shown); err == nil {
		err = r.leaves(&p, shown)
	}
	if err == nil && p.before == nil {
		err = r.m.EnsureNamespace(r.ctx, r.t.Namespace)
	}
	if err != nil {
		return err
	}
	begun, err := l.make(next, p, r.last)
	r.undone = l.undone
	if begun {
		r.action = cmp.Or(map[step]string{stepUpgrade: ActionUpgraded, stepRollback: ActionRolledBack}[next], ActionInstalled)
		r.last.Number, r.last.Labels = p.rel.Version, p.rel.Labels
	}
	if shown.definesKinds() { // a failed action may have made them too
		r.m.ResetDiscovery()
	}
	if err != nil {
		return l.inTemplate(shown, err)
	}
	if err = r.noteObjects(l, shown); err == nil && shown.back == nil {
		r.settle()
	}
	return err
}

// leaves records what the next revision holds no more.
func (r *reconcile) leaves(p *revisionPlan, shown rendering) error {
	left, err := r.m.left(r.ctx, r.t.Ref(), r.last)
	if err != nil {
		return err
	}
	if p.before != nil {
		had, err := chart.ObjectsOf(p.before.Manifest)
		if err != nil {
			return fmt.Errorf("the stored manifest cannot be read: %w", err)
		}
		left = chart.Merge(r.t.Namespace, left, had)
	}
	left = chart.Without(r.t.Namespace, r.m.placed(left), r.m.placed(shown.objects))
	rec, err := r.m.records.get(r.ctx, r.t.Ref())
	if err != nil {
		return err
	}
	// Objects that were left already stay recorded until the next revision is deployed, also if that holds them: it may
	// end before it begins.
	left = chart.Merge(r.t.Namespace, left, r.m.placed(rec.Left))
	p.unknown = len(rec.Unknown) > 0
	// Objects say of which revision they are: no write is needed before the next one.
	return r.m.records.set(r.ctx, record{Ref: r.t.Ref(), Left: left, Objects: rec.Objects})
}

// settle notes what an upgrade would render now. For most charts that is what was just installed; one that looks
// things up, or that renders an upgrade in another way, would else get a second revision for nothing.
func (r *reconcile) settle() {
	if r.want.Lookups == "" && !r.facts.Branches {
		return
	}
	before := r.want
	again, err := r.m.renderAs(r.ctx, r.t, true, 1)
	if err != nil { // the next reconcile meets the same error and reports it
		return
	}
	r.follow(again, again.digest == before.Manifest)
	r.want.Manifest, r.want.Lookups = again.digest, cmp.Or(again.lookups, before.Lookups)
	if again.digest != before.Manifest || before.Lookups == "" && r.want.Lookups != "" {
		if err := r.note(); err != nil {
			r.m.o.Log.Debug().Err(err).Str("release", r.t.Name).Msg("the digests of the release are stale; it is rendered once more")
		}
	}
}

// note records the digests of the revision that is there.
func (r *reconcile) note() error {
	rec, err := r.m.records.get(r.ctx, r.t.Ref())
	if err != nil {
		return err
	}
	rec.Digests = &digests{Of: r.last.UID, Inputs: r.want.inputsLabel(), Manifest: r.want.Manifest, Chart: r.want.Chart}
	if err := r.m.records.set(r.ctx, rec); err != nil {
		return err
	}
	r.last, err = r.m.noted(r.ctx, r.t.Ref(), r.last)
	return err
}
