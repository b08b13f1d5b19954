package generation

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// checkChart holds the chart of a module against what module(chart=) says.
func (m *Module) checkChart() {
	want, locked := m.Decl.Chart, m.Tree.Locked
	var err error
	switch {
	case want.URL == "" && locked == nil:
		return
	case want.URL == "":
		err = fmt.Errorf("%s names chart %s for it, module() names none: run starling fetch", tree.LockFile, locked.URL)
	case m.Tree.Chart != nil && m.Tree.Chart.Archive == "":
		err = errors.New("two charts, one that module(chart=) names and one in the folder: keep one")
	case locked == nil:
		err = fmt.Errorf("%s names no chart of module %s: run starling fetch, which gets it", tree.LockFile, m.Name)
	default:
		if err = locked.Fits(want.URL, want.Version, want.Digest); err == nil {
			return
		}
		err = fmt.Errorf("%w: run starling fetch", err)
	}
	m.join(fmt.Errorf("%s: %w", cmp.Or(m.Decl.Pos, m.Tree.Dir), err))
}

// FileValues are the values of the module's files, each over those before it.
func (m *Module) FileValues() []values.Layer {
	t := m.Tree
	var out []values.Layer
	own := values.LayerChart
	if t.Chart != nil && t.Chart.Archive != "" {
		own = values.LayerFolder
	}
	if len(t.ChartValues) > 0 {
		out = append(out, values.Layer{Name: values.LayerChart, File: t.ChartValuesFile, Data: t.ChartValues})
	}
	if len(t.Values) > 0 {
		out = append(out, values.Layer{Name: own, File: t.ValuesFile, Data: t.Values})
	}
	return out
}
