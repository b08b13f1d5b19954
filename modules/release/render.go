package release

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// chartFacts gives the facts of the target's chart, kept for each release until
// its chart changes.
func (m *Manager) chartFacts(t Target) (chart.Facts, error) {
	digest := t.Chart.Digest
	if digest == "" {
		digest = chart.DigestOf(t.Chart.Files)
	}
	if known, ok := m.facts.Load(t.Ref()); ok && known.(chart.Facts).Digest == digest {
		return known.(chart.Facts), nil
	}
	f, err := chart.FactsOf(t.Chart, digest)
	if err == nil {
		m.facts.Store(t.Ref(), f)
	}
	return f, err
}

// rendering is what a chart rendered to.
type rendering struct {
	files   map[string]string
	notes   string
	objects []chart.Object
	digest  string
	// lookups is the digest of what was looked up; "" where nothing was. Answers are what it was.
	lookups string
	answers map[effect.Ref]found
	// lookedUp are the objects that templates have read.
	lookedUp []map[string]any
	// warnings are about objects that are applied in another way than the chart has it.
	warnings []string
	// back is the revision that has it, of what is brought back.
	back *helm.Release
}

// definesKinds says that the manifest changes what the API server serves.
func (r rendering) definesKinds() bool {
	return slices.ContainsFunc(r.objects, func(o chart.Object) bool { return o.Kind == "CustomResourceDefinition" || o.Kind == "APIService" })
}

// renderAs renders the chart as an install or as an upgrade, and refuses what the release may not hold. The revision is
// mostly 1, so that a chart that prints it does not differ each time.
func (m *Manager) renderAs(ctx context.Context, t Target, caps *helm.Capabilities, upgrade bool, revision int) (rendering, error) {
	in := t.Input
	lookups := &lookups{mapper: m.o.Mapper, client: m.dynamic, target: t, instance: m.instance()}
	out, err := m.o.Renderer.Render(ctx, in, chart.How{Caps: caps, Upgrade: upgrade, Revision: revision}, lookups.in(ctx))
	read := rendering{lookedUp: lookups.found()}
	masked := func(err error) error { return &worded{chart.Tidy(newMask(t, read).Text(err.Error())), err} }
	if err == nil && out.Err != "" {
		err = &worded{chart.WithValueHint(in, chart.InSource(t.Chart, newMask(t, read).Text(out.Err))), lookups.failed}
	}
	if err != nil {
		return read, err
	}
	ch, err := chart.Installable(t.Chart)
	if err != nil {
		return rendering{}, err
	}
	objects, warnings, err := chart.ObjectsIn(in, ch, out.Files, m.clusterWide)
	if err != nil {
		return read, masked(err)
	}
	if err := m.limit(t, m.placed(objects)); err != nil {
		return read, err
	}
	if out.Files, err = chart.LabelAll(out.Files, t.Labels); err != nil {
		return read, masked(err)
	}
	return rendering{
		files: out.Files, notes: out.Notes, objects: objects, digest: chart.ManifestDigest(out.Files),
		lookups: digestOf(lookups.answers), answers: lookups.answers, lookedUp: read.lookedUp, warnings: warnings,
	}, nil
}

// chartCRDs are the files under crds/ of the chart and of its enabled subcharts.
func (m *Manager) chartCRDs(ctx context.Context, t Target, f chart.Facts) ([]chart.File, error) {
	if !f.CRDs {
		return nil, nil
	}
	files, wrong, err := m.o.Renderer.CRDs(ctx, t.Input)
	if err == nil && wrong != "" {
		err = errors.New(chart.Tidy(newMask(t, rendering{}).Text(wrong)))
	}
	return files, err
}

// lookups answers the `lookup` of templates from the cluster and notes what it was asked.
type lookups struct {
	mapper   meta.RESTMapper
	client   dynamic.Interface
	target   Target
	instance effect.Instance

	mu      sync.Mutex
	failed  error // why one has no answer
	seen    []map[string]any
	answers map[effect.Ref]found
}

// found are the objects that templates have read.
func (l *lookups) found() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// clusterWide says whether the cluster serves the kind of an object without namespaces.
func (m *Manager) clusterWide(o chart.Object) bool {
	mapping, err := m.o.Mapper.RESTMapping(o.GVK().GroupKind(), o.GVK().Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
