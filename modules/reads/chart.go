package reads

import (
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
)

// Chart returns what a chart reads of the global values: its templates, those of its
// subcharts, the schemas of both, and the conditions of dependencies. Files are all of the
// chart, by their paths in it. The chart may do anything with what it reads. Packed
// subcharts are not looked into: they read all.
func Chart(files map[string][]byte) *Reads {
	c := &chart{subcharts: map[string]bool{}, templates: map[string][]byte{}}
	for name, data := range files {
		base, dir := path.Base(name), path.Dir(name)
		if strings.Contains("/"+dir+"/", "/templates/") {
			c.templates[name] = data
		}
		switch {
		case path.Ext(name) == ".tgz" && path.Base(dir) == "charts":
			return nil
		case base == "Chart.yaml" || base == "requirements.yaml":
			if !c.meta(data, dir != ".") {
				return nil
			}
		}
	}
	for name, data := range files {
		if path.Base(name) == "values.schema.json" && !c.schema(data) {
			return nil
		}
	}
	t := newTemplates(c.subcharts)
	if !t.read(c.templates) {
		return nil
	}
	return &Reads{paths: append(c.paths, t.paths()...)}
}

// chart is what is known of one.
type chart struct {
	// subcharts are the keys of values under which the values of subcharts stand: Helm puts
	// the global values below each.
	subcharts map[string]bool
	templates map[string][]byte
	paths     []place
}

// meta reads a Chart.yaml or requirements.yaml. False: it may read all.
func (c *chart) meta(data []byte, sub bool) bool {
	var m struct {
		Name         string `json:"name"`
		Dependencies []struct {
			Name         string `json:"name"`
			Alias        string `json:"alias"`
			Condition    string `json:"condition"`
			ImportValues []any  `json:"import-values"`
		} `json:"dependencies"`
	}
	if bounded.CheckYAML(data) != nil || yaml.Unmarshal(data, &m) != nil {
		return false
	}
	if sub && m.Name != "" {
		c.subcharts[m.Name] = true
	}
	for _, d := range m.Dependencies {
		if len(d.ImportValues) > 0 { // values of the subchart, the global ones among them
			return false
		}
		c.subcharts[d.Name] = true
		if d.Alias != "" {
			c.subcharts[d.Alias] = true
		}
		for _, condition := range strings.Split(d.Condition, ",") {
			keys := strings.Split(strings.TrimSpace(condition), ".")
			for i, k := range keys {
				if k == globalKey {
					c.paths = append(c.paths, place{keys: keys[i+1:]})
					break
				}
			}
		}
	}
	return true
}
