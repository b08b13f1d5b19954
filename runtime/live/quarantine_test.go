package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/engine"
)

// Functions of module.star and a filter that were there when two processes ended are
// evaluated no more by the third one.
func TestEvaluationsAreQuarantined(t *testing.T) {
	files := map[string]string{
		"web/module.star": "def enabled():\n    return True\n\ndef readiness():\n    return True\n\ndef settings_check(old, new):\n    pass\n\n" +
			"def chart_values(v):\n    return v\n\nmodule()\n",
		"web/hooks/a.star":     "hook(lambda ctx: None, name = \"a\", on = [k8s.watch(\"v1\", \"ConfigMap\", filter = lambda o: o.data)])\n",
		"web/templates/a.yaml": "{}\n",
	}
	f := newFixture(t, files)
	evaluate := func() map[string]error {
		d := f.newDriver(files)
		m := d.generation.Load().Modules["web"]
		h := m.Hooks[0]
		spec := d.executor.WatchSpec(t.Context(), engine.StartWatch{ID: h.ID + "#cms#1", Watch: h.Bindings[0].Watch, Hook: h})
		_, _, filtered := spec.Filter(map[string]any{"data": map[string]any{}})
		ready := *m
		ready.Enabled = nil
		released, _ := d.executor.Release(t.Context(), engine.Release{Module: m, Values: map[string]any{}})
		return map[string]error{
			"enabled() of web":        d.executor.Evaluate(t.Context(), engine.Evaluate{Module: m, Values: map[string]any{}}).Err,
			"readiness() of web":      d.executor.Evaluate(t.Context(), engine.Evaluate{Module: &ready, Values: map[string]any{}}).Err,
			"settings_check() of web": d.executor.CheckSettings(t.Context(), engine.CheckSettings{Module: m}).Err,
			"chart_values() of web":   released.Err,
			"the filter of web/a#cms": filtered,
		}
	}
	says := func(what string, err error) bool {
		return err != nil && strings.Contains(err.Error(), what+": quarantined: 2 times in a row")
	}
	for what, err := range evaluate() {
		if says(what, err) {
			t.Errorf("at first: %v", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "runs")); err != nil {
		t.Fatal(err)
	}
	m := f.driver.marks // its folder has gone
	for _, begin := range []func(what, digest string) (func(bool), error){m.Evaluating, m.Loading} {
		if ended, err := begin("web", "code"); err != nil {
			t.Errorf("without a folder for marks: %v", err)
		} else {
			ended(true)
		}
	}
	gen := loadTree(t, files)
	module := gen.Modules["web"]
	star := gen.Host.Digest(module.Tree.ModuleFile)
	for range 2 { // killed during all of them
		marks := open(t, f.dir)
		for what, digest := range map[string]string{
			"enabled() of web": star, "readiness() of web": star, "settings_check() of web": star, "chart_values() of web": star, "the filter of web/a#cms": module.Hooks[0].Digest,
		} {
			if err := marks.begin(what, digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, err := range evaluate() {
		if !says(what, err) {
			t.Errorf("%s is evaluated after two kills: %v", what, err)
		}
	}
}
