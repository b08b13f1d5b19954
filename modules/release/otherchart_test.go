package release

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

// Another chart takes the place of the one of a release: what both hold stays the same object, be it a hook in one of
// them or in another version of its kind, and the rest goes.
func TestAnotherChartOfARelease(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	gadgets := schema.GroupVersionResource{Group: w.group, Version: "v2", Resource: "gadgets"}
	cm := func(name, of, annotations string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\ndata: {of: " + of + "}\n---\n"
	}
	gadget := func(version string) string {
		return "apiVersion: " + w.group + "/" + version + "\nkind: Gadget\nmetadata: {name: g}\nspec: {count: 1}\n---\n"
	}
	const hook = "helm.sh/hook: \"pre-install,pre-upgrade\""
	one := cm("both", "one", "") + cm("gone", "one", "") + cm("hooked", "one", "") + cm("unhooked", "one", hook) + cm("kept", "one", "helm.sh/resource-policy: keep") + gadget("v1")
	two := cm("both", "two", "") + cm("new", "two", "") + cm("hooked", "two", hook) + cm("unhooked", "two", "") + gadget("v2")
	web := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Installs: []builtins.Grant{{APIVersion: w.group + "/v1", Kind: "Gadget"}, {APIVersion: w.group + "/v2", Kind: "Gadget"}}}}
	uids := func() map[string]string {
		out := map[string]string{"gadget": w.uid(gadgets, "apps", "g")}
		for _, name := range []string{"both", "hooked", "unhooked", "kept"} {
			out[name] = w.uid(configMaps, "apps", name)
		}
		return out
	}
	var before map[string]string
	for i, chart := range []string{one, two, one} {
		web.Chart = chartOf([]string{"one", "two"}[i%2], chart)
		web.Chart.Digest = string(rune('a' + i))
		if res, err := w.Reconcile(t.Context(), web); err != nil || res.Revision != i+1 {
			t.Fatal(res.Revision, err)
		}
		now := uids()
		for name, uid := range before {
			if now[name] != uid {
				t.Errorf("chart %d: %s is another object", i+1, name)
			}
		}
		before = now
		if w.there(configMaps, "apps", "gone") == (i == 1) || w.there(configMaps, "apps", "new") != (i == 1) {
			t.Errorf("chart %d: what one chart alone holds is there, or not", i+1)
		}
	}
}
