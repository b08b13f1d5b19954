package release

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

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
	chart   *helm.Chart
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

// renderAs renders the chart as an install or as an upgrade, with what the API server serves now, and refuses what the
// release may not hold. The revision is mostly 1, so that a chart that prints it does not differ each time.
func (m *Manager) renderAs(ctx context.Context, t Target, upgrade bool, revision int) (rendering, error) {
	caps, err := m.capabilities()
	if err != nil {
		return rendering{}, err
	}
	lookups := &lookups{m: m, target: t}
	out, err := m.o.Renderer.Render(ctx, t.Input, chart.How{Caps: caps, Upgrade: upgrade, Revision: revision}, lookups.in(ctx))
	lookups.mu.Lock() // a chart that was given up may still ask
	read := rendering{lookedUp: lookups.seen}
	lookups.mu.Unlock()
	masked := func(err error) error { return &worded{chart.Tidy(newMask(t, read).Text(err.Error())), err} }
	if err == nil && out.Err != "" {
		err = &worded{chart.WithValueHint(t.Input, chart.InSource(t.Chart, newMask(t, read).Text(out.Err))), lookups.failed}
	}
	if err != nil {
		return read, err
	}
	read.files, read.notes, read.lookups, read.answers = out.Files, out.Notes, digestOf(lookups.answers), lookups.answers
	if read.chart, err = chart.Installable(t.Chart); err != nil {
		return read, err
	}
	if read.objects, read.warnings, err = chart.ObjectsIn(t.Input, read.chart, read.files, m.clusterWide); err != nil {
		return read, masked(err)
	}
	if err := m.limit(t, m.placed(read.objects)); err != nil {
		return read, err
	}
	if read.files, err = chart.LabelAll(read.files, t.Labels); err != nil {
		return read, masked(err)
	}
	read.digest = chart.ManifestDigest(read.files)
	return read, nil
}

// lookups answers the `lookup` of templates from the cluster and notes what it was asked.
type lookups struct {
	m      *Manager
	target Target

	mu      sync.Mutex
	failed  error // why one has no answer
	seen    []map[string]any
	answers map[effect.Ref]found
}

// clusterWide says whether the cluster serves the kind of an object without namespaces.
func (m *Manager) clusterWide(o chart.Object) bool {
	mapping, err := m.o.Mapper.RESTMapping(o.GVK().GroupKind(), o.GVK().Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
