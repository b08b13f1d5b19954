package chart

import (
	"errors"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/modules/reads"
)

func TestInputsDigest(t *testing.T) {
	caps := func(version string, served ...string) *chartutil.Capabilities {
		return &chartutil.Capabilities{KubeVersion: chartutil.KubeVersion{Version: version}, APIVersions: served}
	}
	target := func() Input {
		return Input{Module: "web", Name: "web", Namespace: "apps", Values: map[string]any{"a": int64(1), "b": map[string]any{"c": "d"}, "global": map[string]any{"zone": "x"}},
			Reads: reads.Chart(map[string][]byte{"templates/a.yaml": []byte("{{ .Values.global.zone }}")})}
	}
	of := func(t *testing.T, target Input, f Facts, c *chartutil.Capabilities) string {
		t.Helper()
		in, err := InputsOf(target, f, c)
		if err != nil {
			t.Fatal(err)
		}
		return in.Digest
	}
	base := of(t, target(), Facts{Digest: "x"}, caps("v1.37.1", "v1"))
	if errs := validation.IsValidLabelValue(base); len(errs) > 0 || len(base) != DigestLength {
		t.Errorf("%q cannot be a label: %v", base, errs)
	}
	tests := []struct {
		name   string
		same   bool
		change func(*Input, *Facts, **chartutil.Capabilities)
	}{
		{"nothing", true, func(*Input, *Facts, **chartutil.Capabilities) {}},
		{"1.0 for 1", true, func(t *Input, _ *Facts, _ **chartutil.Capabilities) { t.Values["a"] = 1.0 }},
		{"value", false, func(t *Input, _ *Facts, _ **chartutil.Capabilities) { t.Values["a"] = "1" }},
		{"global value that the chart reads", false, func(t *Input, _ *Facts, _ **chartutil.Capabilities) {
			t.Values["global"] = map[string]any{"zone": "y"}
		}},
		{"global value that it does not read", true, func(t *Input, _ *Facts, _ **chartutil.Capabilities) {
			t.Values["global"] = map[string]any{"zone": "x", "other": 1}
		}},
		{"no global values", false, func(t *Input, _ *Facts, _ **chartutil.Capabilities) { delete(t.Values, "global") }},
		{"name", false, func(t *Input, _ *Facts, _ **chartutil.Capabilities) { t.Name = "web2" }},
		{"namespace", false, func(t *Input, _ *Facts, _ **chartutil.Capabilities) { t.Namespace = "app" }},
		{"chart", false, func(_ *Input, f *Facts, _ **chartutil.Capabilities) { f.Digest = "y" }},
		{"kubernetes", false, func(_ *Input, _ *Facts, c **chartutil.Capabilities) { *c = caps("v1.37.2", "v1") }},
		{"served, nobody asks", true, func(_ *Input, _ *Facts, c **chartutil.Capabilities) { *c = caps("v1.37.1", "v1", "x/v1") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, f, c := target(), Facts{Digest: "x"}, caps("v1.37.1", "v1")
			tt.change(&target, &f, &c)
			if got := of(t, target, f, c); (got == base) != tt.same {
				t.Errorf("same is %v, want %v", got == base, tt.same)
			}
		})
	}
	asks := Facts{Digest: "x", Asks: true, All: true}
	if of(t, target(), asks, caps("v1.37.1", "v1")) == of(t, target(), asks, caps("v1.37.1", "v1", "x/v1")) {
		t.Error("a chart that asks what is served does not see a new API")
	}
	one := Facts{Digest: "x", Asks: true, Has: "x/v1/Thing\nx/v1"}
	if base := of(t, target(), one, caps("v1.37.1", "v1")); base == of(t, target(), one, caps("v1.37.1", "v1", "x/v1")) || base != of(t, target(), one, caps("v1.37.1", "v1", "y/v1")) {
		t.Error("a chart that asks for x/v1 sees y/v1, or does not see x/v1")
	}
}

// A digest that an earlier version has put on a release counts: an update of Starling makes no revision.
func TestInputsDigestStays(t *testing.T) {
	caps := &chartutil.Capabilities{KubeVersion: chartutil.KubeVersion{Version: "v1.37.1"}, APIVersions: chartutil.VersionSet{"apps/v1", "v1"}}
	const mentions = "{{ .Capabilities.KubeVersion.Version }}"
	for name, tt := range map[string]struct {
		target Input
		want   string
	}{
		"plain":           {Input{Chart: chartOf("web", "a: b"), Values: map[string]any{"a": int64(1), "global": map[string]any{}}}, "37b79c5aff39d1b84eb6d679847a329cf1f54cca7c0fc5085199c15d6702"},
		"no global key":   {Input{Chart: chartOf("web", "a: b"), Values: map[string]any{"a": int64(1)}}, "37b79c5aff39d1b84eb6d679847a329cf1f54cca7c0fc5085199c15d6702"},
		"global values":   {Input{Chart: chartOf("web", "a: b"), Values: map[string]any{"global": map[string]any{"zone": "x"}}}, "f89637dc3b991179f2d28ad182541907e0f64ae1d42d874f7a9d85c481ce"},
		"labels":          {Input{Chart: chartOf("web", "a: b"), Values: map[string]any{"global": map[string]any{}}, Labels: map[string]string{"team": "a"}}, "bfa2c5fe9a0aab071b4dc73d05c384f3f088640bf043056a9bac91394a83"},
		"asks":            {Input{Chart: chartOf("web", mentions), Values: map[string]any{"global": map[string]any{}}}, "f9d00da3eef402d205e1fda235b30417396a65807c0c0d90616f6b4f26db"},
		"values may ask":  {Input{Chart: chartOf("web", "a: b"), Values: map[string]any{"text": mentions, "global": map[string]any{}}}, "d03696f5231d857bd23ace428d9ecc377497788ed07697fc5e915e674ed3"},
		"word ends so":    {Input{Chart: chartOf("web", "allowedCapabilities: []"), Values: map[string]any{"requiredDropCapabilities": []any{"ALL"}, "global": map[string]any{}}}, "d7ede06ae7b70f03a93cf1227c6d4315c20f0311e1a8f5f415793a72f405"},
		"asks for a kind": {Input{Chart: chartOf("web", `{{ .Capabilities.APIVersions.Has "v1" }}`), Values: map[string]any{"global": map[string]any{}}}, "11e3a320b2c74c17aa51550d87231e0a606f184611f8171e2c9b4129dbc9"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.target.Module, tt.target.Name, tt.target.Namespace = "web", "web", "apps"
			ch, err := Installable(tt.target.Chart)
			if err != nil {
				t.Fatal(err)
			}
			in, err := InputsOf(tt.target, factsOf(DigestOf(tt.target.Chart.Files), ch), caps)
			if err != nil {
				t.Fatal(err)
			}
			if in.Digest != tt.want {
				t.Errorf("the digest is %s, and was %s", in.Digest, tt.want)
			}
		})
	}
}

func TestManifestDigest(t *testing.T) {
	base := ManifestDigest(map[string]string{"a": "x", "b": "y"})
	if ManifestDigest(map[string]string{"b": "\ny\n", "a": "x ", "c": " \n"}) != base {
		t.Error("white space counts")
	}
	for _, other := range []map[string]string{{"a": "x"}, {"a": "xy"}, {"a": "x", "c": "y"}, {"a": "y", "b": "x"}} {
		if ManifestDigest(other) == base {
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
		want  Facts
	}{
		{"plain", plain, Facts{}},
		{"asks in a helper", with(plain, "templates/_h.tpl", "{{ .Capabilities.KubeVersion }}"), Facts{Asks: true}},
		{"asks for a kind", with(plain, "templates/_h.tpl", "{{ if or ($.Capabilities.APIVersions.Has `b/v1`) (.Capabilities.APIVersions.Has \"a/v1/A\") }}{{end}}"),
			Facts{Asks: true, Has: "a/v1/A\nb/v1"}},
		{"asks for all", with(plain, "templates/_h.tpl", "{{ .Capabilities.APIVersions.Has \"a/v1\" }}{{ range .Capabilities.APIVersions }}{{end}}"),
			Facts{Asks: true, All: true, Has: "a/v1"}},
		{"asks by a value", with(plain, "templates/_h.tpl", "{{ .Capabilities.APIVersions.Has .Values.a }}"), Facts{Asks: true, All: true}},
		{"a word ends so", with(plain, "templates/psp.yaml", "allowedCapabilities: ['{{ .Capabilities.KubeVersion }}']"),
			Facts{Asks: true}},
		{"asks in a file", with(plain, "files/a.tpl", "{{ $.Release.IsInstall }}"), Facts{Branches: true}},
		{"asks in a subchart", with(with(plain, sub+"Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0"),
			sub+"templates/a.yaml", "{{ .Release.IsUpgrade }}"), Facts{Branches: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ch, err := Installable(tt.chart)
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

// Discovery that has failed for a group leaves the questions about other groups alone.
func TestUnanswered(t *testing.T) {
	failed := map[string]error{"metrics.k8s.io/v1beta1": errors.New("503")}
	for _, tt := range []struct {
		facts Facts
		open  bool
	}{
		{Facts{}, false},
		{Facts{Asks: true, Has: "apps/v1/Deployment\nexample.org/v1"}, false},
		{Facts{Asks: true, Has: "apps/v1/Deployment\nmetrics.k8s.io/v1beta1"}, true},
		{Facts{Asks: true, Has: "metrics.k8s.io/v1beta1/NodeMetrics"}, true},
		{Facts{Asks: true, Has: "metrics.k8s.io/v1beta10/NodeMetrics"}, false},
		{Facts{Asks: true, All: true}, false},
	} {
		if err := tt.facts.Unanswered(failed); (err != nil) != tt.open {
			t.Errorf("%+v: %v", tt.facts, err)
		}
	}
}
