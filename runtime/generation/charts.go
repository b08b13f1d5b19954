package generation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// NotFetched is the error of a module whose chart starling.lock does not name yet.
type NotFetched struct{ Module string }

func (e NotFetched) Error() string {
	return tree.LockFile + " names no chart of module " + e.Module + ": run starling fetch, which gets it"
}

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
		err = NotFetched{m.Name}
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
	if data, key := m.OwnValues(); len(data) > 0 {
		out = append(out, values.Layer{Name: own, File: t.ValuesFile, Data: data, Key: key})
	}
	return out
}

// OwnValues are the values of the module in its values.yaml. With module(values_key=) the file may be as the
// chart sees it: then they are below that key, and what is beside it the chart alone sees.
func (m *Module) OwnValues() (data map[string]any, key string) {
	section, there := m.Tree.Values[m.Decl.ValuesKey]
	if !there || m.Decl.ValuesKey == "" {
		return m.Tree.Values, ""
	}
	data, _ = section.(map[string]any)
	return data, m.Decl.ValuesKey
}

// BesideOwn are the values in the values.yaml of the module that stand beside those of [Module.OwnValues].
func (m *Module) BesideOwn() map[string]any {
	_, key := m.OwnValues()
	if key == "" {
		return nil
	}
	out := maps.Clone(m.Tree.Values)
	delete(out, key)
	delete(out, values.EnabledKey(key))
	return out
}

// checkOwnValues holds the section in the module's values.yaml against what a section is.
func (m *Module) checkOwnValues() {
	if section := m.Tree.Values[m.Decl.ValuesKey]; section != nil && m.Decl.ValuesKey != "" {
		if _, isMap := section.(map[string]any); !isMap {
			m.join(fmt.Errorf("%s: %s must be a map; put what it holds below a key", m.Tree.ValuesFile, m.Decl.ValuesKey))
		}
	}
}
