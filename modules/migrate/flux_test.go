package migrate

import (
	"context"
	goflag "flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = goflag.Bool("update", false, "write testdata/flux.txtar anew")

// testdata/flux.txtar holds a stream, and all files that it becomes.
func TestFlux(t *testing.T) {
	a, err := txtar.ParseFile("testdata/flux.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var r *Result
	got := map[string]string{}
	for _, f := range a.Files {
		switch name, file, _ := strings.Cut(f.Name, "/"); name {
		case "stream.yaml":
			if r, err = Flux(t.Context(), "f.yaml", f.Data); err != nil {
				t.Fatal(err)
			}
			loads(t, r)
			for _, f := range r.Files {
				got[f.Path] = string(f.Data)
			}
		case "want":
			if got[file] != string(f.Data) {
				t.Errorf("%s: got\n%s\nwant\n%s", file, got[file], f.Data)
			}
			delete(got, file)
		}
	}
	if *update {
		text := "-- stream.yaml --\n" + string(a.Files[0].Data)
		for _, f := range r.Files {
			text += "-- want/" + f.Path + " --\n" + string(f.Data)
		}
		if err := os.WriteFile("testdata/flux.txtar", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range got {
		t.Errorf("%s is there, too:\n%s", file, text)
	}
}

func helmRelease(spec string) string {
	return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: web}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// withChart is one with its chart.
func withChart(spec string) string {
	return helmRelease(spec+"\nchartRef: {kind: OCIRepository, name: x}") + `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: x, namespace: web}
spec: {url: oci://example.com/x, ref: {tag: 1.0.0}}
`
}

// Each of these is an error of the stream, or a note with its line; the module waits where it would not be what it
// was.
func TestFluxOfBadInput(t *testing.T) {
	for _, test := range []struct {
		name, stream, want string
		waits              bool
	}{
		{"nothing", "", "there is no HelmRelease in it", false},
		{"a list of nothing", "[]", "there is no HelmRelease in it", false},
		{"no YAML", "a: [", "it is broken: line 1:", false},
		{"twice the same key", helmRelease("interval: 1m\ninterval: 2m"), `it is broken: line 6: mapping key "interval" already defined`, false},
		{"bomb", "a: &a [1]\nb: &b [" + strings.Repeat("*a,", 9000) + "]\nc: [" + strings.Repeat("*b,", 9000) + "]\n", "it is too large", false},
		{"endless", "a: &a {b: *a}\n", "it is endless", false},
		{"too large", strings.Repeat("#", 4<<20+1), "it is larger than 4 MiB", false},
		{"version", strings.Replace(helmRelease("interval: 1m"), "/v2", "/v1", 1), "there is no HelmRelease in it; name a file that has one, or the output of kubectl get helmreleases -o yaml; f.yaml: line 1: HelmRelease web/web is of version v1", false},
		{"name", strings.Replace(helmRelease("interval: 1m"), "name: web,", "name: global,", 1), "no HelmRelease could be brought over; f.yaml: line 1: HelmRelease web/global: no module may be named global", false},
		{"no spec", strings.Replace(helmRelease("a: b"), "spec:\n  a: b\n", "", 1), "line 1: chart = …, version = …: it names no chart", true},
		{"spec is a list", helmRelease("- a"), "it names no chart", true},
		{"no chart", helmRelease("interval: 1m"), "it names no chart", true},
		{"another stream has the source", helmRelease("chart: {spec: {chart: x, sourceRef: {kind: HelmRepository, name: y}}}"), "line 5: chart = …, version = …: chart x is of HelmRepository y, which is not in the stream", true},
		{"bucket", helmRelease("chart: {spec: {chart: x, sourceRef: {kind: Bucket, name: y}}}"), "the chart is the folder x of Bucket y", true},
		{"values are a text", helmRelease("values: x"), "line 5: values.yaml: spec.values: it is broken", true},
		{"values from elsewhere", helmRelease("valuesFrom:\n- kind: Pod\n  name: x"), `line 6: spec.valuesFrom: "Pod" is neither a ConfigMap nor a Secret`, true},
		{"values into a list", helmRelease("valuesFrom:\n- {kind: Secret, name: x, targetPath: 'a[0].b'}"), `line 6: spec.valuesFrom: targetPath "a[0].b" leads into a list`, true},
		{"a new field of valuesFrom", helmRelease("valuesFrom:\n- {kind: Secret, name: x, mode: y}"), `line 6: spec.valuesFrom: starling new does not know the field mode`, true},
		{"a field nobody knows", helmRelease("install: {novel: 1}"), "line 5: spec.install.novel: starling new does not know this field", true},
		{"another cluster", withChart("kubeConfig: {secretRef: {name: x}}"), "line 5: spec.kubeConfig: ", true},
		{"patches", withChart("postRenderers: [{kustomize: {patches: []}}]"), "line 5: spec.postRenderers: ", true},
		{"values that were kept", withChart("upgrade: {preserveValues: true}"), "line 5: spec.upgrade.preserveValues: ", true},
		{"no values that were kept", withChart("interval: 1m\nupgrade: {preserveValues: false}"), "line 5: spec.interval: ", false},
		{"other files with values", strings.Replace(withChart("interval: 1m"), "chartRef: {kind: OCIRepository, name: x}",
			"chart: {spec: {chart: x, valuesFiles: [a.yaml], sourceRef: {kind: HelmRepository, name: y}}}", 1),
			"line 6: spec.chart.spec.valuesFiles: ", true},
		{"nothing that is missing", withChart("interval: 1m"), "line 5: spec.interval: ", false},
		{"a duration", helmRelease("timeout: soon"), "line 5: timeout = …: spec.timeout is no duration", true},
		{"a long time", helmRelease("timeout: 3h"), "line 5: spec.timeout: 3h0m0s is more than 2h", true},
		{"an element by place", helmRelease("driftDetection:\n  ignore: [{paths: [/a/0]}]"), `line 6: ignore = […]: spec.driftDetection.ignore: "/a/0" names an element of a list by its place`, true},
		{"objects by label", helmRelease("driftDetection:\n  ignore: [{paths: [/a], target: {labelSelector: a=b}}]"), "line 6: ignore = […]: spec.driftDetection.ignore: target.labelSelector", true},
		{"objects by pattern", helmRelease("driftDetection:\n  ignore: [{paths: [/a], target: {kind: Pod, name: web-.*}}]"), `target: "web-.*" is a pattern`, true},
		{"records elsewhere", helmRelease("storageNamespace: flux-system"), "line 1: Flux keeps the records of the release in namespace flux-system, Starling in that of the release, web", true},
		{"suspended", helmRelease("suspend: true"), "line 5: spec.suspend: the module waits", true},
		{"a name that is none", helmRelease("releaseName: \"a b\\n#\""), "line 1: release = …: no release here has a name", true},
		{"a comment that would end", helmRelease("chartRef: {kind: \"a\\nfail()\", name: x}"), "line 5: chart = …, version = …: spec.chartRef names a", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := Flux(t.Context(), "f.yaml", []byte(test.stream))
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v\nwant %s", err, test.want)
				}
				return
			}
			if !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.Contains(n.Text, test.want) }) {
				t.Errorf("no note %q in %v", test.want, r.Notes)
			}
			for _, f := range r.Files {
				if f.Path == "web/module.star" && strings.Contains(string(f.Data), "return waiting(") != test.waits {
					t.Errorf("waits: want %v, got\n%s", test.waits, f.Data)
				}
			}
			loads(t, r)
		})
	}
}

// Whatever a stream holds, the new tree loads, or there is an error in one line.
func FuzzFlux(f *testing.F) {
	a, err := txtar.ParseFile("testdata/flux.txtar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(a.Files[0].Data))
	f.Add(helmRelease("valuesFrom:\n- {kind: Secret, name: x, targetPath: a.b}"))
	f.Add("apiVersion: v1\nkind: List\nitems: [{kind: x}, *a]\n")
	f.Fuzz(func(t *testing.T, stream string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r, err := Flux(ctx, "f.yaml", []byte(stream))
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "a mistake of starling new") {
				t.Fatal(text)
			}
			return
		}
		if _, err := r.Tree(); err != nil {
			t.Fatal(fmt.Errorf("%w: %v", err, r.Notes))
		}
	})
}
