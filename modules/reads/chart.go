package reads

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/object"
)

// Chart returns what a chart reads of the global values: its templates, those of its
// subcharts, the schemas of both, and the conditions of dependencies. Files are all of the
// chart, by their paths in it. The chart may do anything with what it reads. Packed
// subcharts are not looked into: they read all.
func Chart(files map[string][]byte) *Reads {
	r, _ := analyse(files)
	return r
}

// analyse is Chart; whole says that all is read because templates use the global values as a whole.
func analyse(files map[string][]byte) (r *Reads, whole bool) {
	c := &chart{subcharts: map[string]bool{}, templates: map[string][]byte{}}
	for name, data := range files {
		base, dir := path.Base(name), path.Dir(name)
		if strings.Contains("/"+dir+"/", "/templates/") {
			c.templates[name] = data
		}
		switch {
		case path.Ext(name) == ".tgz" && path.Base(dir) == "charts":
			return nil, false
		case base == "Chart.yaml" || base == "requirements.yaml":
			if !c.meta(data, dir != ".") {
				return nil, false
			}
		}
	}
	for name, data := range files {
		if path.Base(name) == "values.schema.json" && !c.schema(data) {
			return nil, false
		}
	}
	t := newTemplates(c.subcharts)
	if !t.read(c.templates) {
		return nil, t.whole
	}
	return &Reads{paths: append(c.paths, t.paths()...)}, false
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

// Exports returns what a chart may read of what modules export. It is what [Chart] says, which is
// known as own. Where that is all, the chart reads none as long as none of its files has the word,
// nor a text in its values, which templates may evaluate: see [Reads.Exports].
func Exports(own *Reads, files map[string][]byte) *Reads {
	if own != nil {
		return own
	}
	if _, whole := analyse(files); whole {
		return nil
	}
	for name, data := range files {
		if bytes.Contains(data, []byte(exportsKey)) || path.Ext(name) == ".tgz" && packed(data) {
			return nil
		}
	}
	return &Reads{texts: true}
}

// packed says whether an archive may hold the word.
func packed(data []byte) bool {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return true
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPacked))
	return err != nil || len(text) == maxPacked || bytes.Contains(text, []byte(exportsKey))
}

const (
	// exportsKey is where exports of modules stand below `global`.
	exportsKey = builtins.ExportsKey
	// maxPacked bounds what is looked at of one archive.
	maxPacked = 16 << 20
)

// Exports leaves of the exports in the values of a chart what is read. Of each module there is a
// map, so that templates need not ask for it. vals are not changed; the result shares structure.
func (r *Reads) Exports(vals map[string]any) map[string]any {
	global, _ := vals[globalKey].(map[string]any)
	exports, _ := global[exportsKey].(map[string]any)
	if r == nil || len(exports) == 0 {
		return vals
	}
	out := make(map[string]any, len(exports))
	for module, v := range exports {
		if out[module] = v; isMap(v) {
			out[module] = map[string]any{}
		}
	}
	vals, global = maps.Clone(vals), maps.Clone(global)
	global[exportsKey], vals[globalKey] = out, global
	if r.texts && mentions(vals) {
		global[exportsKey] = exports
	}
	from, to := map[string]any{exportsKey: exports}, map[string]any{exportsKey: out}
	for _, p := range r.paths {
		switch keys := p.in(from); {
		case len(keys) <= 1 && p.truth:
		case len(keys) == 0 || len(keys) == 1 && keys[0] == exportsKey:
			global[exportsKey] = exports
		case keys[0] == exportsKey:
			keep(to, from, keys)
		}
	}
	return vals
}

func isMap(v any) bool { _, is := v.(map[string]any); return is }

// mentions says whether a text in v may name exports: a template may evaluate it. The keys of global,
// where these stand, do not count.
func mentions(v any) bool {
	for e := range object.All(v) {
		if text, is := e.(string); is && strings.Contains(text, exportsKey) {
			return true
		}
	}
	return false
}
