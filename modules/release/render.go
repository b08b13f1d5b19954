package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

type (
	// File is one file of a chart, or one file of CRDs.
	File = tree.File
	// Chart is a chart's own files.
	Chart = tree.Chart
)

// facts are what a chart's files tell about how to treat it.
type facts struct {
	// digest names the files that were looked at.
	digest string
	// capabilities: a file mentions .Capabilities; all: one may want all that is served; has are the names that files ask
	// for one by one, in lines.
	capabilities, all bool
	has               string
	// former: earlier versions took the end of another word (allowedCapabilities) for a question.
	former bool
	// branches: a file asks whether this is an install or an upgrade; revision: which revision this is.
	branches, revision bool
	// crds: there are files in crds/, of subcharts.
	crds bool
}

// Load builds a chart of files that may come from anywhere, within the limits of charts; its
// dependencies may be missing.
func Load(c *Chart) (*helm.Chart, error) {
	if err := checkFiles(c.Files); err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	return loadFiles(c)
}

func loadFiles(c *Chart) (*helm.Chart, error) {
	ch, err := helm.Load(c.Files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %s", c.Name, tidy(err.Error()))
	}
	return ch, nil
}

// load builds the chart from its files alone. Helm changes a chart while it works on it, so each use needs its own.
func load(c *Chart) (*helm.Chart, error) {
	ch, err := loadFiles(c)
	if err != nil {
		return nil, err
	}
	if ch.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library: it has nothing to install (type in Chart.yaml)", c.Name)
	}
	// The values of a target are composed over the chart's own already. Helm
	// would lay them below once more, and bring back what was taken out.
	ch.Values = map[string]any{}
	if err := helm.Missing(ch); err != nil {
		return nil, fmt.Errorf("chart %s: a dependency is %s; run `starling fetch`", c.Name, tidy(err.Error()))
	}
	return ch, nil
}

// factsOf looks at all files of the chart and its subcharts; packed ones too.
func factsOf(digest string, ch *helm.Chart) facts {
	f := facts{digest: digest, crds: len(ch.CRDObjects()) > 0}
	has := map[string]bool{}
	for _, c := range helm.All(ch) {
		for _, file := range slices.Concat(c.Templates, c.Files) { // tpl (.Files.Get …)
			f.ask(file.Data, has)
			f.branches = f.branches || bytes.Contains(file.Data, []byte("IsInstall")) || bytes.Contains(file.Data, []byte("IsUpgrade"))
			f.revision = f.revision || bytes.Contains(file.Data, []byte("Revision"))
		}
	}
	f.has = strings.Join(slices.Sorted(maps.Keys(has)), "\n")
	return f
}

// chartFacts gives the facts of the target's chart, kept for each release until its chart changes.
func (m *Manager) chartFacts(t Target) (facts, error) {
	digest := t.Chart.Digest
	if digest == "" {
		digest = chartDigest(t.Chart.Files)
	}
	if known, ok := m.facts.Load(t.Ref()); ok && known.(facts).digest == digest {
		return known.(facts), nil
	}
	if err := checkFiles(t.Chart.Files); err != nil {
		return facts{}, fmt.Errorf("chart %s: %w", t.Chart.Name, err)
	}
	ch, err := load(t.Chart)
	if err != nil {
		return facts{}, err
	}
	f := factsOf(digest, ch)
	m.facts.Store(t.Ref(), f)
	return f, nil
}

// rendering is what a chart rendered to.
type rendering struct {
	files   map[string]string
	notes   string
	objects []object
	digest  string
	// lookups is the digest of what was looked up; "" where nothing was. Answers are what it was.
	lookups string
	answers map[lookup]found
	// lookedUp are the objects that templates have read.
	lookedUp []map[string]any
	// warnings are about objects that are applied in another way than the chart has it.
	warnings []string
	// back is the revision that has it, of what is brought back.
	back *helm.Release
}

var kindDefinition = regexp.MustCompile(`(?m)^kind:\s*["']?(CustomResourceDefinition|APIService)\b`)

// definesKinds says that the manifest changes what the API server serves.
func (r rendering) definesKinds() bool {
	for _, text := range r.files {
		if kindDefinition.MatchString(text) {
			return true
		}
	}
	return false
}

// render renders the chart as an install or as an upgrade, and refuses what the release may not hold. The revision is
// always 1, so that a chart that prints it does not differ each time.
func (m *Manager) render(ctx context.Context, t Target, caps *helm.Capabilities, upgrade bool) (rendering, error) {
	return m.renderAs(ctx, t, caps, upgrade, 1)
}

// renderAs is render for a revision of this number.
func (m *Manager) renderAs(ctx context.Context, t Target, caps *helm.Capabilities, upgrade bool, revision int) (rendering, error) {
	j, err := newJob(jobRender, t)
	if err != nil {
		return rendering{}, err
	}
	j.Caps, j.Upgrade, j.Revision = caps, upgrade, revision
	lookups := &lookups{mapper: m.o.Mapper, client: m.dynamic, target: t, instance: m.instance()}
	out, err := m.evaluate(ctx, j, lookups.in(ctx))
	read := rendering{lookedUp: lookups.found()}
	if err == nil && out.Err != "" {
		err = errors.New(withValueHint(t, inSource(t.Chart, tidy(newMask(t, read).Text(out.Err)))))
		if lookups.kindless.Load() {
			err = &lane.Awaits{Err: err, For: lane.AwaitsKind}
		}
	}
	if err != nil {
		return read, err
	}
	ch, err := load(t.Chart)
	if err != nil {
		return rendering{}, err
	}
	objects, warnings, err := m.objectsIn(t, ch, out.Files)
	if err != nil {
		return read, errors.New(tidy(newMask(t, read).Text(err.Error())))
	}
	if err := m.limit(t, objects); err != nil {
		return read, err
	}
	if out.Files, err = labelAll(out.Files, t.Labels); err != nil {
		return read, errors.New(tidy(newMask(t, read).Text(err.Error())))
	}
	return rendering{
		files: out.Files, notes: out.Notes, objects: objects, digest: manifestDigest(out.Files),
		lookups: lookups.digest(), answers: lookups.answers, lookedUp: read.lookedUp, warnings: warnings,
	}, nil
}

// evaluate has a job done. The error is for people; that of the chart is in the outcome.
func (m *Manager) evaluate(ctx context.Context, j job, lookup helm.Lookup) (outcome, error) {
	out, err := m.o.Renderer.do(ctx, j, lookup)
	if err != nil {
		return outcome{}, fmt.Errorf("rendering chart %s: %w", j.Chart, err)
	}
	return out, nil
}

// objectsIn names the objects of the rendered files of a release. The error is about the first one that the API server
// cannot be told of; warnings are about those that are applied in another way than the chart has it.
func (m *Manager) objectsIn(t Target, ch *helm.Chart, files map[string]string) (all []object, warnings []string, err error) {
	f := faults{t: t, clusterWide: m.clusterWide, seen: map[string][]place{}, definitions: slices.Concat(t.CRDs, helm.CRDs(ch))}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found, err := documentsOf(files[name])
		if err != nil {
			return nil, nil, notYAML(t.Chart, name, files[name], err)
		}
		f.file(name, found)
		all = append(all, withKinds(found)...)
	}
	for _, fault := range f.all() {
		if !fault.Warns {
			return nil, nil, errors.New(fault.String())
		}
		warnings = append(warnings, fault.String())
	}
	return all, warnings, nil
}

// chartCRDs are the files under crds/ of the chart and of its enabled subcharts.
func (m *Manager) chartCRDs(ctx context.Context, t Target, f facts) ([]File, error) {
	if !f.crds {
		return nil, nil
	}
	j, err := newJob(jobCRDs, t)
	if err != nil {
		return nil, err
	}
	out, err := m.evaluate(ctx, j, nil)
	if err == nil && out.Err != "" {
		err = errors.New(tidy(newMask(t, rendering{}).Text(out.Err)))
	}
	return out.CRDs, err
}

// lookups answers the `lookup` of templates from the cluster and notes what it was asked.
type lookups struct {
	mapper   meta.RESTMapper
	client   dynamic.Interface
	target   Target
	instance effect.Instance
	kindless atomic.Bool // a kind that they ask for is not served

	mu      sync.Mutex
	seen    []map[string]any
	answers map[lookup]found
}

// found are the objects that templates have read.
func (l *lookups) found() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}
