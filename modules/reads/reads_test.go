package reads

import (
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/stdlib"
)

func chartOf(files map[string]string) *Reads {
	out := map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 0.1.0\n")}
	for name, text := range files {
		out[name] = []byte(text)
	}
	return Chart(out)
}

func TestTemplates(t *testing.T) {
	const helper = `{{define "one"}}{{.Values.global.a}}{{end}}{{define "show"}}{{toYaml .}}{{end}}{{define "name"}}{{.name | quote}}{{end}}{{define "of"}}{{.ctx.Values.global.a.b}}{{end}}`
	tests := []struct{ template, want string }{
		{"a: {{ .Values.replicas }}", ""},
		{"a: {{ .Values.global.a }}", "a"},
		{"a: {{ $.Values.global.a.b }}", "a.b"},
		{`{{ if .Values.global }}{{ .Values.global.a }}{{ end }}`, "? a"},
		{`{{ if .Values.global.a }}x{{ end }}`, "a?"},
		{`{{ with .Values.global.a }}{{ .b }}{{ $.Values.global.c }}{{ end }}`, "a.b a? c"},
		{`{{ range .Values.global.list }}{{ .x }}{{ end }}`, "list"},
		{`{{ range .Values.list }}{{ $.Values.global.a }}{{ end }}`, "a"},
		{`{{ $g := .Values.global }}{{ $g.a }}`, "a"},
		{`{{ $g := dict }}{{ if true }}{{ $g = .Values.global.x }}{{ end }}{{ $g.y }}`, "x.y"},
		{`{{ (.Values.global | default dict).a }}`, "? a"},
		{`{{ ((.Values.global).a).b }}`, "a.b"},
		{`{{ index .Values "global" "a" }}`, "a"},
		{`{{ index .Values.global "a.b" }}`, `["a.b"]`},
		{`{{ index .Values.global $.Values.key }}`, "all"},
		{`{{ index .Values .Values.key }}`, "all"},
		{`{{ get .Values.global "a" }}`, "a"},
		{`{{ dig "global" "a" "x" .Values }}`, "a"},
		{`{{ dig "a" "b" "x" .Values.global }}`, "a.b"},
		{`{{ if hasKey .Values.global "a" }}x{{ end }}`, "a"},
		{`{{ toYaml .Values }}`, "all"},
		{`{{ toYaml .Values.global }}`, "all"},
		{`{{ .Values }}`, "all"},
		{`{{ . | toYaml | sha256sum }}`, "all"},
		{`{{ toYaml .Values.resources | nindent 4 }}`, ""},
		{`{{ with .Values.resources }}{{ toYaml . }}{{ end }}`, ""},
		{`{{ range $k, $v := . }}{{ $v }}{{ end }}`, "all"},
		{`{{ range $k, $v := .Values }}{{ $k }}{{ end }}`, "all"},
		{`{{ tpl .Values.text . }}`, "all"},
		{`{{ tpl .Values.text (dict "x" 1) }}`, ""},
		{`{{ tpl .Values.text (dict "Template" $.Template "x" .Values.global.a) }}`, "a"},
		{`{{ include "one" . }}`, "a"},
		{`{{ include "one" $ | indent 2 }}`, "a"},
		{`{{ template "one" . }}`, "a"},
		{`{{ include "show" .Values.resources }}`, ""},
		{`{{ include "show" .Values.global.a }}`, "a"},
		{`{{ include "show" . }}`, "all"},
		{`{{ include "name" (dict "name" "x" "ctx" $) }}`, ""},
		{`{{ include "of" (dict "name" "x" "ctx" $) }}`, "a.b"},
		{`{{ include "of" (dict "ctx" (dict "Values" .Values)) }}`, "a.b"},
		{`{{ include .Values.name . }}`, "all"}, // "show" is one of them
		{`{{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}`, ""},
		{`{{ $l := list $ "x" }}{{ (index $l 0).Values.global.a }}{{ index $l 1 }}`, "a"},
		{`{{ $d := dict }}{{ $_ := set $d "v" .Values }}{{ $d.v.global.a }}`, "all"},
		{`{{ $_ := set .Values "x" 1 }}{{ .Values.global.a }}`, "a"},
		{`{{ $m := merge (dict) .Values.global.a .Values.b }}{{ $m.x }}`, "a"},
		{`{{ .Values.AsMap }}`, "all"},
		{`{{ (.Values.Table "global").a }}`, "all"},
		{`{{ .PathValue "Values.global.a" }}`, "all"},
		{`{{ .Subcharts.db.Values.global.a }}`, "all"},
		{`{{ printf "%s" .Values.global.a | quote }}`, "a"},
		{`{{ define "x/templates/y.yaml" }}{{ .Values.global.a }}{{ end }}`, "a"},
		{`{{ define "unused" }}{{ .Values.global.a }}{{ end }}`, ""},
		{`{{ define "loop" }}{{ include "loop" (dict "up" .) }}{{ end }}{{ include "loop" . }}`, "all"},
		{`{{ eq .Values.global.a "x" | ternary .Values.global.b .Values.global.c }}`, "a b c"},
		{`{{ and .Values.global.a .Values.global.b.c }}`, "a b.c"},
		{`{{ $ := .Values.global }}{{ $.a }}`, "a"},
		{`{{ dict "x" 1 .Values.global.a | toYaml }}`, "a"},
		{`{{ define "web/templates/x.yaml" }}{{ .v }}{{ end }}{{ include (print $.Template.BasePath "/x.yaml") (dict "v" .Values.global.a) }}`, "a"},
		{`{{ .Values.global.a`, "all"},
	}
	for _, tt := range tests {
		r := chartOf(map[string]string{"templates/a.yaml": tt.template, "templates/_helpers.tpl": helper})
		if got := r.String(); got != tt.want {
			t.Errorf("%s\n  reads %q, want %q", tt.template, got, tt.want)
		}
	}
}

func TestCharts(t *testing.T) {
	sub := "apiVersion: v2\nname: db\nversion: 1.0.0\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a template of a subchart", map[string]string{"charts/db/Chart.yaml": sub, "charts/db/templates/a.yaml": "{{ .Values.global.a }}"}, "a"},
		{"the values of a subchart", map[string]string{"charts/db/Chart.yaml": sub, "templates/a.yaml": "{{ toYaml .Values.db }}"}, "all"},
		{"global values below a subchart", map[string]string{"charts/db/Chart.yaml": sub, "templates/a.yaml": "{{ .Values.db.global.a }}"}, "a"},
		{"a subchart with a name of Helm's", map[string]string{"charts/templates/Chart.yaml": strings.Replace(sub, "db", "templates", 1), "templates/a.yaml": "{{ toYaml .Values.templates }}"}, "all"},
		{"an alias", map[string]string{"Chart.yaml": "name: web\ndependencies: [{name: db, alias: store}]", "templates/a.yaml": "{{ toYaml .Values.store }}"}, "all"},
		{"a condition", map[string]string{"Chart.yaml": "name: web\ndependencies: [{name: db, condition: 'db.on,global.db.on'}]"}, "db.on"},
		{"imported values", map[string]string{"Chart.yaml": "name: web\ndependencies: [{name: db, import-values: [data]}]"}, "all"},
		{"a packed subchart", map[string]string{"charts/db-1.0.0.tgz": "…"}, "all"},
		{"a Chart.yaml that cannot be read", map[string]string{"Chart.yaml": "dependencies: 1"}, "all"},
		{"a schema without global", map[string]string{"values.schema.json": `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`}, ""},
		{"a schema with a global map", map[string]string{"values.schema.json": `{"properties": {"global": {"type": "object"}}}`}, ""},
		{"a schema with global fields", map[string]string{"values.schema.json": `{"properties": {"global": {"properties": {"a": {"type": "string"}}, "required": ["b"]}}}`}, "a b"},
		{"a schema that allows no other", map[string]string{"values.schema.json": `{"properties": {"global": {"properties": {"a": {}}, "additionalProperties": false}}}`}, "all"},
		{"a schema with references", map[string]string{"values.schema.json": `{"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {}}}`}, "all"},
		{"a schema for all other keys", map[string]string{"values.schema.json": `{"additionalProperties": {"type": "object"}}`}, "all"},
		{"a schema that is none", map[string]string{"values.schema.json": `[]`}, "all"},
		{"a schema for a subchart", map[string]string{"charts/db/Chart.yaml": sub, "values.schema.json": `{"properties": {"db": {"type": "object"}}}`}, "all"},
		{"a schema of a subchart", map[string]string{"charts/db/Chart.yaml": sub, "charts/db/values.schema.json": `{"properties": {"global": {"maxProperties": 1}}}`}, "all"},
		{"a text that is no template", map[string]string{"config/a.yaml": "{{ .Values.global.a }}", "README.md": "{{ .Values }}"}, ""},
		{"templates without end", map[string]string{"templates/a.yaml": strings.Repeat("{{if .Values.global.a}}", maxActions+1)}, "all"},
		{"templates nested deep", map[string]string{"templates/a.yaml": strings.Repeat("{{if .Values.global.a}}", maxActions/2) + strings.Repeat("{{end}}", maxActions/2)}, "a?"},
	}
	for _, tt := range tests {
		if got := chartOf(tt.files).String(); got != tt.want {
			t.Errorf("%s: reads %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestScripts(t *testing.T) {
	tests := []struct{ script, want string }{
		{`def f(ctx): values.set("a", 1)`, ""},
		{`def f(ctx): return values.get("a.b")`, ""},
		{`def f(ctx): return values.get("global.a.b")`, "a.b"},
		{`def f(ctx): return values.has(path = "global.a")`, "a"},
		{`def f(ctx): return values.get(default = 1, path = "global.a")`, "a"},
		{`def f(ctx): return values.get(["global", "a.b", "c"], 1)`, `["a.b"].c`},
		{`def f(ctx): return values.get("global")`, "all"},
		{`def f(ctx): return values.get(["global"])`, "all"},
		{`def f(ctx): return values.get(ctx.key)`, "all"},
		{`def f(ctx): return values.get("global." + ctx.key)`, "all"},
		{`def f(ctx): return values.get(*["global.a"])`, "all"},
		{`def f(ctx): return values.get(**{"path": "global.a"})`, "all"},
		{`v = values`, "all"},
		{`def f(values): return values[0]`, ""},
		{`def f(values): return [v for v in values]`, ""},
		{`def f(ctx): return lambda values: values.get("global.a")`, ""},
		{`load("x.star", "values")` + "\n" + `def f(ctx): return values.get("global.a")`, ""},
		{`def f(values): return g()` + "\n" + `def g(): return values.get("global.a")`, "a"},
		{`def f(ctx): return getattr(values, "get")("global.a")`, "all"},
		{`def f(ctx): return values.of("cert-manager", "a.b", 1)`, "exports.certManager.a.b"},
		{`def f(ctx): return values.of(path = ["a.b"], module = "auth")`, `exports.auth["a.b"]`},
		{`def f(ctx): return values.of(ctx.key, "a")`, "all"},
		{`def f(ctx): return values.of("auth", ctx.key)`, "all"},
		{`get = values.get`, "all"},
		{`hook(f, values = "keep")`, ""},
		{`def f(ctx): return {}.values()`, ""},
		{`def f(ctx): values.set("a", values.get("global.a"))`, "a"},
		{`def f(ctx): values.merge("a", {"b": [values.get("global.a") for x in values.get("global.b")]})`, "a b"},
	}
	for _, tt := range tests {
		file, err := (&syntax.FileOptions{}).Parse("a.star", tt.script, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := Script(file).String(); got != tt.want {
			t.Errorf("%s\n  reads %q, want %q", tt.script, got, tt.want)
		}
	}
}

// The standard library reads nothing: nobody looks into it.
func TestTheStandardLibraryReadsNothing(t *testing.T) {
	files, err := fs.Glob(stdlib.FS, "*.star")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.star") {
			continue
		}
		data, err := fs.ReadFile(stdlib.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := (&syntax.FileOptions{Set: true}).Parse(name, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := Script(file).String(); got != "" {
			t.Errorf("%s reads %s", name, got)
		}
	}
}

func TestOf(t *testing.T) {
	type m = map[string]any
	at := func(keys ...string) place { return place{keys: keys} }
	there := func(keys ...string) place { return place{keys: keys, truth: true} }
	tests := []struct {
		name string
		at   place
		a, b m
		same bool
	}{
		{"another key", at("a"), m{"a": 1}, m{"a": 1, "b": 2}, true},
		{"the key", at("a"), m{"a": 1}, m{"a": 2}, false},
		{"beside it", at("a", "b"), m{"a": m{"b": 1, "c": 1}}, m{"a": m{"b": 1}}, true},
		{"the map on the way", at("a", "b"), m{"a": m{}}, m{}, false},
		{"no map on the way", at("a", "b"), m{"a": "x"}, m{"a": "y"}, false},
		{"a null on the way", at("a", "b"), m{"a": nil}, m{"a": m{}}, false},
		{"a null at its end", at("a"), m{"a": nil}, m{}, false},
		{"of a map, whether it is empty", there("a"), m{"a": m{"b": 1}}, m{"a": m{"c": 1}}, true},
		{"it is empty now", there("a"), m{"a": m{"b": 1}}, m{"a": m{}}, false},
		{"it is gone now", there("a"), m{"a": m{}}, m{}, false},
		{"it has a null alone", there("a"), m{"a": m{"b": 1}}, m{"a": m{"b": nil}}, false},
		{"whether there are any", there(), m{"a": 1}, m{"b": 1}, true},
		{"there are none", there(), m{"a": 1}, m{}, false},
		{"a dotted path", place{dotted: "a.b"}, m{"a": m{"b": 1}}, m{"a": m{"b": 1}, "x": 1}, true},
		{"a longer key", place{dotted: "a.b"}, m{"a": m{"b": 1}}, m{"a": m{"b": 1}, "a.b": 1}, false},
	}
	for _, tt := range tests {
		r := &Reads{paths: []place{tt.at}}
		a, b := r.Of(tt.a), r.Of(tt.b)
		if same := reflect.DeepEqual(a, b); same != tt.same {
			t.Errorf("%s: %v and %v: same is %v", tt.name, a, b, same)
		}
	}
	asked := &Reads{paths: []place{there("a"), there("a", "b")}}
	if got := asked.Of(m{"a": m{}}); reflect.DeepEqual(got, asked.Of(m{"a": m{"c": 1}})) {
		t.Errorf("a map that is empty, and one that is not, are the same to two questions: %v", got)
	}
	both := &Reads{paths: []place{at("a"), at("a", "b"), there("a"), there("a", "b")}}
	global := m{"a": m{"b": m{}}}
	if got := both.Of(global); !reflect.DeepEqual(got, global) || len(global["a"].(m)) != 1 {
		t.Errorf("%v", got)
	}
	if got := Join(both, nil).Of(global); !reflect.DeepEqual(got, global) {
		t.Errorf("%v", got)
	}
	if keys, all := Join(both, &Reads{paths: []place{{dotted: "x.y"}}}).Keys(); all || !slices.Equal(keys, []string{"a", "x", "x.y"}) {
		t.Error(keys, all)
	}
}

// A chart is given the exports that it may read, and no others.
func TestExportsOfCharts(t *testing.T) {
	vals := map[string]any{"own": "x", "global": map[string]any{"zone": "z", "exports": map[string]any{
		"db": map[string]any{"url": "u", "password": "p"}, "big": map[string]any{"text": "t"},
	}}}
	const all = "map[big:map[text:t] db:map[password:p url:u]]"
	tests := []struct{ name, template, value, want string }{
		{"nothing", "{{ .Values.own }}", "", "map[big:map[] db:map[]]"},
		{"one", "{{ .Values.global.exports.db.url }}", "", "map[big:map[] db:map[url:u]]"},
		{"a module", "{{ .Values.global.exports.db | toYaml }}", "", "map[big:map[] db:map[password:p url:u]]"},
		{"whether", "{{ if .Values.global.exports.db.url }}a{{ end }}", "", "map[big:map[] db:map[url:u]]"},
		{"whether there are any", "{{ if .Values.global.exports }}a{{ end }}", "", "map[big:map[] db:map[]]"},
		{"all", "{{ .Values.global.exports | toYaml }}", "", all},
		{"global", "{{ .Values.global | toYaml }}", "", all},
		{"not known, and no word of it", "{{ tpl .Values.own . }}", "", "map[big:map[] db:map[]]"},
		{"not known, and the word", "{{ tpl .Values.own . }}{{/* exports */}}", "", all},
		{"not known, and the word in the values", "{{ tpl .Values.own . }}", "{{ .Values.global.exports.db.url }}", all},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string][]byte{"Chart.yaml": []byte("name: web\n"), "templates/a.yaml": []byte(tt.template)}
			in := maps.Clone(vals)
			if tt.value != "" {
				in["own"] = tt.value
			}
			out := Exports(Chart(files), files).Exports(in)
			if got := fmt.Sprint(out["global"].(map[string]any)["exports"]); got != tt.want || out["global"].(map[string]any)["zone"] != "z" {
				t.Errorf("the chart is given %s", got)
			}
			if got := fmt.Sprint(vals["global"].(map[string]any)["exports"]); got != all {
				t.Errorf("the values were changed: %s", got)
			}
		})
	}
}
