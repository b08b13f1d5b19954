package release

import (
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// literalChart is a chart that renders to r whatever the values are: Helm's actions render
// a chart themselves, and what was rendered under limits must not be rendered once more
// without them. It also is what lookups and random values have given before.
func literalChart(ch *chart.Chart, r rendering) *chart.Chart {
	meta := *ch.Metadata
	meta.Dependencies = nil // their templates are among r's
	out := &chart.Chart{Metadata: &meta, Values: map[string]any{}}
	prefix := ch.Name() + "/"
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		out.Templates = append(out.Templates, &chart.File{Name: strings.TrimPrefix(name, prefix), Data: literal(r.files[name])})
	}
	if r.notes != "" {
		out.Templates = append(out.Templates, &chart.File{Name: "templates/NOTES.txt", Data: literal(r.notes)})
	}
	return out
}

// literal is a template that renders to text.
func literal(text string) []byte { return []byte(strings.ReplaceAll(text, "{{", `{{"{{"}}`)) }

// chartKeeper stores releases with the chart that they are of, where Helm has worked with
// a literal one.
type chartKeeper struct {
	driver.Driver
	literal, chart *chart.Chart
	// tries are the revisions that have failed since the last one that is deployed.
	tries tries
}

// Query lists revisions.
func (k *chartKeeper) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	list, err := k.Driver.Query(labels)
	if _, some := labels["status"]; err == nil && !some {
		k.tries = triesOf(list)
	}
	return list, err
}

// Create stores a new revision.
func (k *chartKeeper) Create(key string, rel *helmrelease.Release) error {
	return k.Driver.Create(key, k.with(rel))
}

// Update stores a revision again.
func (k *chartKeeper) Update(key string, rel *helmrelease.Release) error {
	return k.Driver.Update(key, k.with(rel))
}

func (k *chartKeeper) with(rel *helmrelease.Release) *helmrelease.Release {
	if k.literal == nil || rel.Chart != k.literal {
		return rel // an earlier revision
	}
	stored := *rel
	stored.Chart = k.chart
	return &stored
}
