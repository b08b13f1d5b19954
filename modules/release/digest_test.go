package release

import (
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/modules/reads"
)

func TestInputsDigest(t *testing.T) {
	caps := func(version string, served ...string) *chartutil.Capabilities {
		return &chartutil.Capabilities{KubeVersion: chartutil.KubeVersion{Version: version}, APIVersions: served}
	}
	target := func() Target {
		return Target{Module: "web", Name: "web", Namespace: "apps", Values: map[string]any{"a": int64(1), "b": map[string]any{"c": "d"}, "global": map[string]any{"zone": "x"}},
			Reads: reads.Chart(map[string][]byte{"templates/a.yaml": []byte("{{ .Values.global.zone }}")})}
	}
	of := func(t *testing.T, target Target, f facts, c *chartutil.Capabilities) string {
		t.Helper()
		d, err := inputsDigest(target, f, c)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := of(t, target(), facts{digest: "x"}, caps("v1.37.1", "v1"))
	if errs := validation.IsValidLabelValue(base); len(errs) > 0 || len(base) != digestLength {
		t.Errorf("%q cannot be a label: %v", base, errs)
	}
	tests := []struct {
		name   string
		same   bool
		change func(*Target, *facts, **chartutil.Capabilities)
	}{
		{"nothing", true, func(*Target, *facts, **chartutil.Capabilities) {}},
		{"1.0 for 1", true, func(t *Target, _ *facts, _ **chartutil.Capabilities) { t.Values["a"] = 1.0 }},
		{"timeout", true, func(t *Target, _ *facts, _ **chartutil.Capabilities) { t.Wait, t.Timeout = true, 5 }},
		{"value", false, func(t *Target, _ *facts, _ **chartutil.Capabilities) { t.Values["a"] = "1" }},
		{"global value that the chart reads", false, func(t *Target, _ *facts, _ **chartutil.Capabilities) {
			t.Values["global"] = map[string]any{"zone": "y"}
		}},
		{"global value that it does not read", true, func(t *Target, _ *facts, _ **chartutil.Capabilities) {
			t.Values["global"] = map[string]any{"zone": "x", "other": 1}
		}},
		{"no global values", false, func(t *Target, _ *facts, _ **chartutil.Capabilities) { delete(t.Values, "global") }},
		{"name", false, func(t *Target, _ *facts, _ **chartutil.Capabilities) { t.Name = "web2" }},
		{"namespace", false, func(t *Target, _ *facts, _ **chartutil.Capabilities) { t.Namespace = "app" }},
		{"chart", false, func(_ *Target, f *facts, _ **chartutil.Capabilities) { f.digest = "y" }},
		{"kubernetes", false, func(_ *Target, _ *facts, c **chartutil.Capabilities) { *c = caps("v1.37.2", "v1") }},
		{"served, nobody asks", true, func(_ *Target, _ *facts, c **chartutil.Capabilities) { *c = caps("v1.37.1", "v1", "x/v1") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, f, c := target(), facts{digest: "x"}, caps("v1.37.1", "v1")
			tt.change(&target, &f, &c)
			if got := of(t, target, f, c); (got == base) != tt.same {
				t.Errorf("same is %v, want %v", got == base, tt.same)
			}
		})
	}
	asks := facts{digest: "x", capabilities: true}
	if of(t, target(), asks, caps("v1.37.1", "v1")) == of(t, target(), asks, caps("v1.37.1", "v1", "x/v1")) {
		t.Error("a chart that asks what is served does not see a new API")
	}
}

func TestManifestDigest(t *testing.T) {
	base := manifestDigest(map[string]string{"a": "x", "b": "y"})
	if manifestDigest(map[string]string{"b": "\ny\n", "a": "x ", "c": " \n"}) != base {
		t.Error("white space counts")
	}
	for _, other := range []map[string]string{{"a": "x"}, {"a": "xy"}, {"a": "x", "c": "y"}, {"a": "y", "b": "x"}} {
		if manifestDigest(other) == base {
			t.Errorf("%v gives the same digest", other)
		}
	}
}

func TestFacts(t *testing.T) {
	sub := "charts/sub/"
	plain := chartOf("web", configMapForTest)
	tests := []struct {
		name  string
		chart *Chart
		want  facts
	}{
		{"plain", plain, facts{}},
		{"asks in a helper", with(plain, "templates/_h.tpl", "{{ .Capabilities.KubeVersion }}"), facts{capabilities: true}},
		{"asks in a file", with(plain, "files/a.tpl", "{{ $.Release.IsInstall }}"), facts{branches: true}},
		{"asks in a subchart", with(with(plain, sub+"Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0"),
			sub+"templates/a.yaml", "{{ .Release.IsUpgrade }}"), facts{branches: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ch, err := load(tt.chart)
			if err != nil {
				t.Fatal(err)
			}
			if got := factsOf("", ch); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

const configMapForTest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
