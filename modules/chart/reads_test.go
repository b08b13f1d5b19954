package chart

import (
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/starling-operator/starling/modules/reads"
)

// pieces are of templates that read global values in all ways: a chart is some of them.
var pieces = []string{
	`a: {{ .Values.global.a }}`,
	`a: {{ $.Values.global.a.b | quote }}`,
	`{{ if .Values.global }}a: {{ .Values.global.c }}{{ end }}`,
	`{{ if .Values.global.a }}yes{{ else }}no{{ end }}`,
	`{{ with .Values.global.a }}{{ .b }}{{ $.Values.global.d }}{{ else }}none{{ end }}`,
	`{{ range $k, $v := .Values.global.a }}{{ $k }}{{ $v }}{{ end }}`,
	`{{ range .Values.global.l }}{{ . }}{{ end }}`,
	`{{ $g := .Values.global }}{{ $g.c }}`,
	`{{ $g := dict }}{{ with .Values.global.c }}{{ $g = $.Values.global.a }}{{ end }}{{ get $g "b" }}`,
	`{{ (.Values.global | default dict).d }}`,
	`{{ ((.Values.global).a).b }}`,
	`{{ index .Values "global" "a" "b" }}`,
	`{{ get .Values.global .Values.key }}`,
	`{{ dig "global" "a" "b" "none" .Values.AsMap }}`,
	`{{ dig "a" "b" "none" .Values.global }}`,
	`{{ hasKey .Values.global "c" }}{{ hasKey .Values.global.a "b" }}`,
	`{{ toYaml .Values.own }}`,
	`{{ include "one" . }}{{ include "one" $ | quote }}`,
	`{{ template "one" . }}`,
	`{{ include "show" .Values.own }}{{ include "show" .Values.global.d }}`,
	`{{ include "of" (dict "ctx" $ "name" "n") }}`,
	`{{ include "of" (dict "ctx" (dict "Values" .Values) "name" .Values.global.c) }}`,
	`{{ include "self" (dict "n" 2 "root" $) }}`,
	`{{ include (print $.Template.BasePath "/file.yaml") . | sha256sum }}`,
	`{{ tpl .Values.text . }}`,
	`{{ tpl .Values.text (dict "Values" .Values "Template" .Template) }}`,
	`{{ tpl "{{ .x }}" (dict "x" .Values.global.a "Template" .Template) }}`,
	`{{ $l := list $ "x" }}{{ (index $l 0).Values.global.c }}{{ index $l 1 }}{{ (first $l).Values.global.d }}`,
	`{{ $_ := set .Values "late" .Values.global.d }}`,
	`{{ $_ := set .Values.global "c" "changed" }}{{ .Values.global.c }}`,
	`{{ .Values.late }}`,
	`{{ $m := mergeOverwrite (deepCopy .Values.own) (.Values.global.a | default dict) }}{{ toJson $m }}`,
	`{{ ternary .Values.global.c .Values.global.d (eq (toString .Values.global.a) "x") }}`,
	`{{ and .Values.global.a .Values.global.c }}{{ or .Values.global.d .Values.global.c }}{{ not .Values.global.a }}{{ empty .Values.global.d }}`,
	`{{ coalesce .Values.global.a .Values.global.c "z" }}`,
	`{{ required "needs c" .Values.global.c }}`,
	`{{ pluck "c" .Values.global .Values.own | first }}`,
	`{{ omit .Values.global "a" | toJson }}`,
	`{{ keys .Values.global | sortAlpha | join "," }}`,
	`{{ len .Values.global }}{{ kindOf .Values.global.a }}`,
	`{{ .Values | toJson }}`,
	`{{ range $k, $v := $ }}{{ if eq $k "Values" }}{{ $v.global.d }}{{ end }}{{ end }}`,
	`{{ with $ }}{{ with .Values }}{{ with .global }}{{ .c }}{{ end }}{{ end }}{{ end }}`,
	`{{ with $x := .Values.global.a }}{{ $x }}{{ end }}`,
	`{{ if $x := .Values.global.a }}{{ $x.b }}{{ end }}`,
	`{{ .Values.db.global.c }}{{ .Values.db.own }}`,
	`{{ toJson .Values.db }}`,
	`{{ $.Subcharts.db.Values.global.d }}`,
	`{{ (.Values.Table "global").c }}`,
	`{{ .Values.PathValue "global.a.b" }}`,
	`{{ block "block" .Values.global.a }}{{ . }}{{ end }}`,
	`{{ range until 2 }}{{ $.Values.global.c }}{{ end }}`,
	`{{ define "web/templates/file.yaml" }}{{ .Values.global.c }}{{ end }}`,
	`{{ define "one" }}again {{ .Values.global.d }}{{ end }}`,
	`{{ $f := .Values.global.a | default (dict "b" $) }}{{ with $f.b }}{{ kindOf . }}{{ end }}`,
	`{{ list .Values.global.c .Values.global.d | join "-" }}`,
	`{{ index (list .Values.global) 0 | toJson }}`,
	`{{ (dict "x" .Values.global).x.c }}`,
	`{{ get (dict "x" .) "x" | toJson | len }}`,
	`{{ (merge (dict) .Values.global).d }}`,
	`{{ $x := . }}{{ range list 1 2 }}{{ $x.Values.global.c }}{{ $x = dict "Values" $.Values }}{{ end }}`,
}

const readsHelper = `{{ define "one" }}{{ .Values.global.c }}{{ end }}{{ define "show" }}{{ toYaml . }}{{ end }}
{{ define "of" }}{{ .ctx.Values.global.a.b }}{{ .name | quote }}{{ end }}
{{ define "self" }}{{ if .n }}{{ include "self" (dict "n" (sub .n 1) "root" .root) }}{{ else }}{{ .root.Values.global.d }}{{ end }}{{ end }}`

// anyGlobal makes global values of few keys, so that two of them often differ in one.
func anyGlobal(r *rand.Rand) map[string]any {
	leaf := func() any {
		return []any{nil, "", "x", "y", int64(0), int64(7), true, false, map[string]any{}, []any{}, []any{"l"}}[r.IntN(11)]
	}
	out := map[string]any{}
	for _, k := range []string{"a", "c", "d", "e", "l"} {
		switch r.IntN(4) {
		case 0:
		case 1:
			below := map[string]any{}
			for _, k := range []string{"b", "f"} {
				if r.IntN(3) > 0 {
					below[k] = leaf()
				}
			}
			out[k] = below
		default:
			out[k] = leaf()
		}
	}
	return out
}

// oneMore returns global with one key, or one key of a key, changed.
func oneMore(r *rand.Rand, global map[string]any) map[string]any {
	out, other := maps.Clone(global), anyGlobal(r)
	keys := []string{"a", "c", "d", "e", "l"}
	k := keys[r.IntN(len(keys))]
	if v, there := other[k]; there {
		out[k] = v
	} else {
		delete(out, k)
	}
	if was, ok := global[k].(map[string]any); ok && r.IntN(2) == 0 {
		below := maps.Clone(was)
		below[[]string{"b", "f"}[r.IntN(2)]] = r.IntN(3)
		out[k] = below
	}
	return out
}

// checkReads renders a chart with two globals. When they are the same in what the chart
// reads, so must be what it renders to.
func checkReads(t *testing.T, c *Chart, a, b map[string]any) (same bool) {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range c.Files {
		files[f.Path] = f.Data
	}
	found := reads.Chart(files)
	if !reflect.DeepEqual(found.Of(a), found.Of(b)) {
		return false
	}
	log.SetOutput(io.Discard) // Helm's warnings
	defer log.SetOutput(os.Stderr)
	render := func(global map[string]any) string {
		values := map[string]any{"global": global, "own": map[string]any{"c": "own"}, "key": "c", "text": "{{ .Values.global.d }}", "db": map[string]any{"own": "o"}}
		ch, err := Installable(c)
		if err != nil {
			t.Fatal(err)
		}
		files, notes, err := renderChart(Input{Name: "web", Namespace: "apps", Values: values}, ch, nil, chartutil.DefaultCapabilities, false, 1)
		return fmt.Sprint(files, notes, err)
	}
	target := Input{Reads: found}
	digests := make([]string, 2)
	for i, global := range []map[string]any{a, b} {
		target.Values = map[string]any{"global": global}
		in, err := InputsOf(target, Facts{}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = in.Digest
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests of the inputs differ for %v and %v", a, b)
	}
	if x, y := render(a), render(b); x != y {
		t.Errorf("the chart reads %q, and differs with\n  %v\n  %v\nit renders to\n  %s\n  %s", found, a, b, x, y)
		for _, f := range c.Files {
			t.Logf("%s: %s", f.Path, f.Data)
		}
	}
	return true
}

func readsChart(some []string, schema string) *Chart {
	c := &Chart{Name: "web", Files: []File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies: [{name: db, version: 0.1.0, condition: global.e}]\n")},
		{Path: "templates/_helpers.tpl", Data: []byte(readsHelper)},
		{Path: "templates/file.yaml", Data: []byte("f: {{ .Release.Name }}")},
		{Path: "charts/db/Chart.yaml", Data: []byte("apiVersion: v2\nname: db\nversion: 0.1.0\n")},
		{Path: "charts/db/values.yaml", Data: []byte("global: {a: {b: 5, f: 6}, d: dd}\n")},
	}}
	if schema != "" {
		c.Files = append(c.Files, File{Path: "values.schema.json", Data: []byte(schema)})
	}
	for i, text := range some {
		dir := "templates/"
		if i%3 == 2 {
			dir = "charts/db/templates/"
		}
		c.Files = append(c.Files, File{Path: fmt.Sprintf("%s%d.yaml", dir, i), Data: []byte(text)})
	}
	return c
}

var readsSchemas = []string{
	"", "", "", "",
	`{"properties": {"global": {"properties": {"l": {"type": "array"}}}}}`,
	`{"properties": {"global": {"required": ["c"]}}, "additionalProperties": true}`,
	`{"properties": {"global": {"type": "object", "title": "global"}}}`,
	`{"properties": {"global": {"minProperties": 3}}}`,
}

// Each way of reading by itself, with many pairs of globals.
func TestChartsRenderTheSameWhereWhatTheyReadIsTheSame(t *testing.T) {
	for i, piece := range pieces {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for n := range 60 {
			some := []string{piece}
			if n%2 == 1 { // in the subchart
				some = []string{"x: y", "x: z", piece}
			}
			a := anyGlobal(r)
			checkReads(t, readsChart(some, ""), a, oneMore(r, a))
		}
		if t.Failed() {
			t.Fatal(piece)
		}
	}
}

func TestRandomChartsRenderTheSameWhereWhatTheyReadIsTheSame(t *testing.T) {
	rounds, same := 600, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 2))
		var some []string
		for range 1 + r.IntN(4) {
			some = append(some, pieces[r.IntN(len(pieces))])
		}
		chart := readsChart(some, readsSchemas[r.IntN(len(readsSchemas))])
		for range 3 {
			a := anyGlobal(r)
			if checkReads(t, chart, a, oneMore(r, a)) {
				same++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, strings.Join(some, "\n"))
		}
	}
	if same < rounds/4 {
		t.Errorf("only %d of %d pairs had the same in them", same, 3*rounds)
	}
}

// FuzzReads looks for templates that read what is not seen.
func FuzzReads(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 2000 || strings.Contains(text, "genCA") || strings.Contains(text, "rand") || strings.Contains(text, "now") || strings.Contains(text, "uuid") {
			return // others each time
		}
		r := rand.New(rand.NewPCG(seed, 3))
		a := anyGlobal(r)
		checkReads(t, readsChart([]string{text}, ""), a, oneMore(r, a))
	})
}

// The methods of Helm's values come before keys in templates.
func TestMethodsOfValuesAreKnown(t *testing.T) {
	of := reflect.TypeFor[chartutil.Values]()
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		r := reads.Chart(map[string][]byte{"Chart.yaml": []byte("name: web"), "templates/a.yaml": []byte("{{ $x := .Values." + name + " }}")})
		if r != nil {
			t.Errorf("reads do not know of .Values.%s", name)
		}
	}
	if of.NumMethod() == 0 {
		t.Error("there are none")
	}
}
