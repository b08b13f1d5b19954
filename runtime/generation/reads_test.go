package generation_test

import (
	"maps"
	"testing"
)

func TestReadsOfModules(t *testing.T) {
	base := map[string]string{
		"web/module.star":      "module(enabled = True)\n",
		"web/Chart.yaml":       "name: web\nversion: 0.1.0\n",
		"web/templates/a.yaml": "a: {{ .Values.global.a }}\n",
		"web/hooks/a.star":     "load(\"//lib/x.star\", \"zone\")\ndef run(ctx):\n    values.set(\"z\", zone())\nhook(run, on = [startup()])\n",
		"lib/x.star":           "def zone():\n    return values.get(\"global.zone\")\n",
	}
	for name, tt := range map[string]struct {
		edit        map[string]string
		chart, want string
	}{
		"chart and library":    {nil, "a", "a zone"},
		"enabled()":            {map[string]string{"web/module.star": "module()\ndef enabled():\n    return values.has(\"global.on\")\n"}, "a", "a on zone"},
		"chart_values()":       {map[string]string{"web/module.star": "module()\ndef chart_values(v):\n    return v\n"}, "a", "all"},
		"values_key":           {map[string]string{"web/module.star": "module(values_key = \"web\")\n"}, "a", "a zone"},
		"any path":             {map[string]string{"lib/x.star": "def zone(p = \"a\"):\n    return values.get(p)\n"}, "a", "all"},
		"the whole chart":      {map[string]string{"web/templates/a.yaml": "{{ .Values | toYaml }}"}, "all", "all"},
		"no chart":             {map[string]string{"web/Chart.yaml": "", "web/templates/a.yaml": ""}, "", "zone"},
		"a file that is wrong": {map[string]string{"web/hooks/b.star": "x ="}, "a", "all"},
	} {
		files := maps.Clone(base)
		for path, text := range tt.edit {
			if files[path] = text; text == "" {
				delete(files, path)
			}
		}
		g := next(t, files, nil)
		for range 2 {
			m := g.Modules["web"]
			if m.ChartReads.String() != tt.chart || m.Reads.String() != tt.want {
				t.Errorf("%s: the chart reads %q, the module %q", name, m.ChartReads, m.Reads)
			}
			g = next(t, files, g) // taken over
		}
	}
}
