package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
	plain "github.com/starling-operator/starling/runtime/object"
)

// life makes one revision of a release, or ends the release. All that it writes and waits for ends with its context;
// how a revision ended is written down in the grace after that.
//
// The way of a revision: pending → hooks before → objects → wait → hooks after → tests → deployed → the one before
// superseded. Objects that the release holds no more stand in its record by then, and are deleted afterwards.
type life struct {
	m   *Manager
	ref Ref
	ctx context.Context
	// over ends waits alone, see [Overtakable].
	over context.Context
	// target is empty, but for its timeout, where the release ends.
	target  Target
	log     zerolog.Logger
	mask    plain.Mask
	objects dynamic.Interface
	// hooked are the objects that hooks of the revision before have made, by identity.
	hooked map[Key]bool
	// since is when the first try of what is tried once more has begun.
	since time.Time
	// seen are the objects of the release as the API server has answered.
	seen []Object
	// uid is that of the Secret of the revision that is made.
	uid string

	mu sync.Mutex
	// warned holds the API server's warnings that were logged.
	warned map[string]bool
	// undone are edits of others that the revision has taken back, see [Result].
	undone map[Key][]owned.Edit
}

// open prepares the life of a release; ctx bounds it.
func (m *Manager) open(ctx context.Context, ref Ref, t Target) (*life, error) {
	l := &life{
		m: m, ref: ref, ctx: ctx, target: t, warned: map[string]bool{}, undone: map[Key][]owned.Edit{},
		log: m.o.Log.With().Str("module", ref.Module).Str("release", ref.Name).Str("namespace", ref.Namespace).Logger(),
	}
	config := dynamic.ConfigFor(m.o.Config)
	config.WarningHandlerWithContext = l
	var err error
	if l.objects, err = dynamic.NewForConfigAndClient(config, m.http); err != nil {
		return nil, err
	}
	if l.over, _ = ctx.Value(overtaken{}).(context.Context); l.over == nil {
		l.over = context.Background()
	}
	return l, nil
}

// overtaken says that nobody wants what the life makes any more.
func (l *life) overtaken() error {
	if l.over.Err() != nil {
		return &lane.Awaits{Err: errors.New("its inputs have changed, so nobody waits for it any more"), For: lane.AwaitsChange}
	}
	return nil
}

// HandleWarningHeaderWithContext logs what the API server warns of: unknown fields, deprecated kinds.
func (l *life) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	if code == 299 && text != "" {
		l.warn(l.mask.Text(text))
	}
}

// warn logs a warning once.
func (l *life) warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.warned[text] {
		return
	}
	l.warned[text] = true
	l.log.Warn().Msg(text)
}

// revisionPlan is a revision before it is made.
type revisionPlan struct {
	rel *helm.Release
	// before is the revision whose objects are there: the newest one that is deployed, else the last one; nil: none is.
	before *helm.Release
	// uid is that of the Secret of before.
	uid string
	// again: the revision has failed, and is tried once more. unknown: fields of the one before were dropped.
	again, unknown bool
	// tried is its LabelTried where it fails for good; "" without rollbacks.
	tried string
	// was and want are the objects of the two.
	was, want []stored
}

// plan says which revision is next, without a write.
func (l *life) plan(next step, shown rendering, w want, last revision) (p revisionPlan, err error) {
	var hooks []*helm.Hook
	var manifest string
	if shown.back != nil {
		hooks, manifest = shown.back.Hooks, shown.back.Manifest
	} else if hooks, manifest, err = helm.Parts(shown.files); err != nil {
		return p, err
	}
	now := l.now()
	p.tried = w.Tried
	p.rel = &helm.Release{
		Name: l.ref.Name, Namespace: l.ref.Namespace, Chart: shown.chart, Config: plain.CopyPlain(l.target.Values).(map[string]any), Manifest: manifest, Hooks: hooks,
		Version: w.number(last),
		Labels: map[string]string{
			effect.InstanceLabel: w.Instance, effect.ModuleLabel: w.Module,
			LabelInputs: w.inputsLabel(), LabelManifest: w.Manifest, LabelChart: w.Chart,
		},
		Info: &helm.Info{FirstDeployed: now, LastDeployed: now, Status: helm.StatusPendingInstall, Description: "Initial install underway", Notes: shown.notes},
	}
	size := len(manifest)
	if next == stepUpgrade || next == stepRollback {
		newest, uid, err := l.m.read(l.ctx, l.ref, last.Number)
		p.before, p.uid, l.uid = newest, uid, uid
		if err == nil && last.Status != helm.StatusDeployed {
			var number int
			if number, err = l.m.lastDeployed(l.ctx, l.ref); number > 0 {
				p.before, p.uid, err = l.m.read(l.ctx, l.ref, number)
			}
		}
		if err != nil {
			return p, err
		}
		if p.again = p.rel.Version == last.Number; p.again {
			p.rel.Info.LastDeployed = newest.Info.LastDeployed // what it wrote then counts
			l.since = newest.Info.LastDeployed.Time
		}
		p.rel.Labels = labels.Merge(newest.Labels, p.rel.Labels)
		delete(p.rel.Labels, LabelTried)
		delete(p.rel.Labels, LabelBack)
		p.rel.Info.FirstDeployed = p.before.Info.FirstDeployed
		p.rel.Info.Status, p.rel.Info.Description = helm.StatusPendingUpgrade, "Preparing upgrade"
		if back := shown.back; back != nil {
			p.rel.Config, p.rel.Info.Notes = back.Config, back.Info.Notes
			p.rel.Info.Status, p.rel.Info.Description = helm.StatusPendingRollback, fmt.Sprintf("Rollback to %d", back.Version)
			p.rel.Labels[LabelManifest], p.rel.Labels[LabelTried] = back.Labels[LabelManifest], w.Tried
			p.rel.Labels[LabelBack] = cmp.Or(last.Labels[LabelBack], fmt.Sprintf("%d.%d", last.Number, back.Version))
		}
		l.hooked = l.hookNames(p.before)
		if p.was, _, err = l.m.storedObjects(l.ref, p.before.Manifest); err != nil {
			return p, err
		}
		size += len(p.before.Manifest)
	}
	holds(l.ctx, size)
	if p.want, err = l.served(manifest); err != nil {
		return p, err
	}
	if l.target.IgnoreDrift {
		for _, s := range p.want {
			labels := s.obj.GetLabels()
			delete(labels, effect.ReleasedByLabel)
			s.obj.SetLabels(labels)
		}
	}
	return p, l.m.limitList(l.target, p.want)
}

func (l *life) now() helm.Time { return helm.Time{Time: l.m.o.Now()} }

// make makes a revision. begun says that its record was written.
func (l *life) make(next step, p revisionPlan, last revision) (begun bool, err error) {
	if err := l.overtaken(); err != nil {
		return false, l.ended(err)
	}
	live, err := l.free(p)
	if err == nil && next == stepReplace {
		err = l.m.mark(l.ctx, l.ref, last.Number, helm.StatusSuperseded, "superseded by new release")
	}
	if err == nil {
		err = l.record(p.rel, !p.again)
	}
	if err != nil {
		return false, l.ended(err)
	}
	done, err := l.carryOut(next, p, live)
	final := p.tried != "" && l.final(err)
	if err = l.ended(err); err != nil && !done {
		switch {
		case final && p.before != nil && p.before.Info.Status == helm.StatusDeployed:
			p.rel.Labels[LabelTried] = p.tried
		case final:
			err = fmt.Errorf("%w; there is no deployed revision to go back to", err)
		}
		what := cmp.Or(map[step]string{stepUpgrade: "Upgrade", stepRollback: "Rollback"}[next], "Release")
		p.rel.SetStatus(helm.StatusFailed, fmt.Sprintf("%s %q failed: %s", what, l.ref.Name, err))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), grace)
		defer cancel()
		if err := l.m.store(p.rel.Namespace).Update(ctx, p.rel); err != nil {
			l.log.Warn().Err(err).Msg("the release stays pending; the next start takes it over")
		}
	}
	return true, err
}

// carryOut does what a revision is for. done: all of it, and an error is one of writing that down.
func (l *life) carryOut(next step, p revisionPlan, live []placed) (done bool, err error) {
	pre, post, says := helm.HookPreInstall, helm.HookPostInstall, "Install complete"
	switch next {
	case stepUpgrade:
		pre, post, says = helm.HookPreUpgrade, helm.HookPostUpgrade, "Upgrade complete"
	case stepRollback:
		pre, post, says = helm.HookPreRollback, helm.HookPostRollback, p.rel.Info.Description
	}
	if err := l.hooks(p.rel, pre, p.was); err != nil {
		return false, err
	}
	if slices.ContainsFunc(p.rel.Hooks, func(h *helm.Hook) bool { return slices.Contains(h.Events, pre) }) {
		l.target.Standing = nil // they may have changed some, and watches lag behind
		if live, err = l.free(p); err != nil {
			return false, err
		}
	}
	err = l.write(p, live)
	if err == nil && l.target.Wait {
		err = l.wait(p.want)
	}
	if err == nil {
		err = l.hooks(p.rel, post, nil)
	}
	if err == nil && l.target.Test && next != stepRollback {
		err = l.hooks(p.rel, helm.HookTest, p.was)
	}
	if err != nil {
		return false, err
	}
	p.rel.SetStatus(helm.StatusDeployed, says)
	if err := l.record(p.rel, false); err != nil {
		return true, fmt.Errorf("the end of the action is not recorded: %w", err)
	}
	if p.before != nil && p.before.Info.Status != helm.StatusSuperseded && p.before.Version != p.rel.Version {
		p.before.Info.Status = helm.StatusSuperseded
		if err := l.record(p.before, false); err != nil { // the next reconcile sees that two are deployed
			return true, fmt.Errorf("the end of the action is not recorded: revision %d is deployed, too: %w", p.before.Version, err)
		}
	}
	return true, l.forget(p.rel.Version)
}

// record stores a revision.
func (l *life) record(rel *helm.Release, fresh bool) (err error) {
	if !fresh {
		return l.m.store(rel.Namespace).Update(l.ctx, rel)
	}
	l.uid, err = l.m.store(rel.Namespace).Create(l.ctx, rel)
	return err
}

// afterTime has the context live on for the grace, if the time of the action is over, until end is called.
func (l *life) afterTime() (end func()) {
	before := l.ctx
	if _, late := context.Cause(before).(errTimeout); !late {
		return func() {}
	}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithTimeout(context.WithoutCancel(before), grace)
	return func() { cancel(); l.ctx = before }
}

// forget deletes the revisions that are more than are kept.
func (l *life) forget(newest int) error {
	if newest <= l.m.o.History {
		return nil
	}
	all, err := l.m.revisions(l.ctx, l.ref)
	for i, r := range all {
		if err == nil && i >= l.m.o.History && r.Status != helm.StatusDeployed {
			err = l.m.drop(l.ctx, l.ref, r.Number)
		}
	}
	return err
}

// ended is the error of a life: readable, and, if the context has ended, with the cause of that.
func (l *life) ended(err error) error {
	if err == nil {
		return nil
	}
	text := chart.Tidy(l.mask.Text(err.Error())) // masked before it is cut: a part of a secret is not known
	if l.ctx.Err() == nil {
		return &worded{text, err}
	}
	why := context.Cause(l.ctx)
	out := &worded{why.Error(), why}
	if _, trouble := errors.AsType[*lane.Passing](err); trouble {
		out.cause = &lane.Passing{Err: why}
	}
	if _, waited, is := strings.Cut(text, why.Error()+": "); is && waited != "" {
		out.text += ": " + waited
	}
	return out
}

// inTemplate puts the template that has written what the API server refuses before an error of ended.
func (l *life) inTemplate(r rendering, err error) error {
	if l.ctx.Err() != nil {
		return err
	}
	return &worded{chart.InTemplate(l.target.Input, r.files, err).Error(), err}
}
